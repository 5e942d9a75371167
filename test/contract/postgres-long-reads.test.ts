/** Owns: that copies and inspections wait for statements that read whole tables, however long those take. */
import pg from "pg";
import { expect, it } from "vitest";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, withSetting } from "../support/postgres-server.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const LIMIT_MS = 500;

/** Returns the URL of the ledger where neither the driver nor the server lets a statement take longer than the limit. */
function limitAnswers(ledgerUrl: string): string {
  const url = new URL(withSetting(ledgerUrl, `statement_timeout=${LIMIT_MS}`));
  url.searchParams.set("query_timeout", String(LIMIT_MS));
  return url.href;
}

async function inspect(url: string): Promise<readonly unknown[]> {
  const store = await openTestPostgres(url, { mode: "read" });
  try {
    return await store.inspect();
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
  await store.append(openRun("a").request);
  await store.close();
  const holder = new pg.Client({ connectionString: schema.url });
  await holder.connect();
  await holder.query("begin; lock table content in access exclusive mode");
  const worked = work(limitAnswers(schema.url)).catch((error: unknown) => [error]);
  // Within its transaction the holder would see the same activity each time.
  const findWaiting = `
    select waiting.pid
    from pg_stat_activity as waiting
    join pg_locks as lock on lock.pid = any (pg_blocking_pids(waiting.pid))
    where lock.relation = 'content'::regclass and clock_timestamp() - waiting.query_start > '1s'`;
  const hasWaited = waitFor(async () => (await schema.query(findWaiting)).length > 0, {
    what: "a statement that waits longer than the limit",
  });
  try {
    await Promise.race([hasWaited, worked]);
  } finally {
    await holder.end();
  }
  expect(await worked).toEqual([]);
});
