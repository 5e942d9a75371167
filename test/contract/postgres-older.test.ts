/** Owns: that a ledger of an older release on a server is proven as it is, without being brought to the newest schema. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { loadMigrations } from "../../src/infra/postgres/database/migrate-schema.ts";
import { contentOf, openRun, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import { copyIntoOlderServerLedger, createOlderServerLedger } from "./older-ledger.ts";

const OLDER = loadMigrations()
  .slice(0, -1)
  .map(({ number }) => number);

let newest: TestSchema;

beforeAll(async () => {
  newest = await createTestSchema();
  const store = await openTestPostgres(newest.url);
  const [grown, ended] = [openRun("grown"), openRun("ended")];
  await store.append({ ...grown.request, contents: [contentOf("kept")] });
  await store.append(ended.request);
  await store.append(grown.author.append(spawnOf("more")));
  await store.append(appendEnd(ended.author));
  await store.close();
});

afterAll(() => newest[Symbol.asyncDispose]());

interface OlderReader extends AsyncDisposable {
  readonly schema: TestSchema;
  readonly reader: OpenedLedger;
}

/** Opens the same ledger for reading as a release with so many migrations has it. */
async function openOlder(migrations: number): Promise<OlderReader> {
  const schema = await createTestSchema();
  await createOlderServerLedger(schema, migrations);
  await copyIntoOlderServerLedger(newest, schema);
  const reader = await openTestPostgres(schema.url, { mode: "read" });
  return {
    schema,
    reader,
    [Symbol.asyncDispose]: async () => {
      await reader.close();
      await schema[Symbol.asyncDispose]();
    },
  };
}

async function readHeads({ heads }: OpenedLedger): Promise<unknown> {
  return {
    newest: await heads.newestNumber(),
    page: await heads.page({ events: 5, after: 0, limit: 10 }),
    hash: await heads.hashAt({ runId: runIdOf("grown"), sequence: 1 }),
    unknown: await heads.hashAt({ runId: runIdOf("nobody"), sequence: 1 }),
  };
}

describe.each(OLDER)("a ledger on a server with %i migrations", (migrations) => {
  it("is whole", async () => {
    await using older = await openOlder(migrations);
    expect(await verifyLedger(older.reader)).toMatchObject({ ok: true, problems: [], coordinations: 2 });
    expect(await verifyWorkflowRuns(older.reader.workflows)).toMatchObject({ problems: [] });
  });

  it("has the heads by which it is anchored", async () => {
    await using older = await openOlder(migrations);
    const store = await openTestPostgres(newest.url, { mode: "read" });
    expect(await readHeads(older.reader)).toEqual(await readHeads(store));
    await store.close();
  });
});

it.each(OLDER)(
  "an older ledger with %i migrations has no export that holds back its pruning",
  async (migrations) => {
    await using older = await openOlder(migrations);
    expect(await older.reader.exports.holder("spans")).toBeUndefined();
  },
);

describe("damage of a ledger of an older release on a server", () => {
  it.each([
    ["trigger event_stays was changed or dropped", "drop trigger event_stays on event"],
    ["table extra was added", "create table extra (a integer)"],
    ["table export_cursor was added", "delete from migration where number = 4"],
    [
      "function count_events was changed",
      "create or replace function count_events() returns trigger language plpgsql as 'begin return null; end'",
    ],
  ])("is told: %s", async (message, sql) => {
    await using older = await openOlder(4);
    await older.schema.query(sql);
    expect(await older.reader.inspect()).toEqual([{ kind: "schema_changed", message }]);
  });

  it("is told also where events are missing", async () => {
    await using older = await openOlder(4);
    await older.schema.query(
      `alter table event disable trigger user;
       delete from event where event_key = 2;
       alter table event enable trigger user`,
    );
    const problems = await older.reader.inspect();
    expect(problems).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining("between event number 1 and 3") as string }),
    );
    expect(problems.map(({ kind }) => kind)).not.toContain("file_damaged");
  });
});
