/** Owns: that copies and inspections wait for statements that read whole tables, however long those take. */
import { expect, it } from "vitest";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";
import { contentOf, openRun } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, withSetting } from "../support/postgres-server.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const LIMIT_MS = 500;

/** Returns the URL of the ledger where neither the driver nor the server lets a statement take longer than the limit. */
function limitAnswers(ledgerUrl: string): string {
  const url = new URL(withSetting(ledgerUrl, `statement_timeout=${LIMIT_MS}`));
  url.searchParams.set("query_timeout", String(LIMIT_MS));
  return url.href;
}

/** Returns the problems that an inspection finds, besides that the table is slow. */
async function inspect(url: string): Promise<readonly unknown[]> {
  const store = await openTestPostgres(url, { mode: "read" });
  try {
    return (await store.inspect()).filter(({ kind }) => kind !== "schema_changed");
  } finally {
    await store.close();
  }
}

async function copyToFile(url: string): Promise<readonly unknown[]> {
  using folder = createTempFolder();
  const { grownBy } = await copyLedgerBetween({ from: url, to: folder.file("to.sqlite") }, () => undefined);
  return grownBy === 0 ? [] : [grownBy];
}

it.each([
  ["an inspection", inspect],
  ["a copy", copyToFile],
])("%s waits for a statement that takes longer than others may", async (_, work) => {
  await using schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  await store.append({ ...openRun("a").request, contents: [contentOf("a text")] });
  await store.close();
  const seconds = (LIMIT_MS * 2) / 1_000;
  await schema.query(
    `alter table content rename to stored_content;
     create view content as select *, xmin from stored_content where pg_sleep(${seconds}) is not null`,
  );
  expect(await work(limitAnswers(schema.url))).toEqual([]);
});
