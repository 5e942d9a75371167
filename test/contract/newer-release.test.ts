/** Owns: what a process may still do on a ledger that a newer release migrates while the process has it open. */
import Database from "better-sqlite3";
import pg from "pg";
import { expect, it, vi } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { loadMigrations as loadServerMigrations } from "../../src/infra/postgres/database/migrate-schema.ts";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { createOlderServerLedger } from "./older-ledger.ts";
import { createRunStarted, createWorkflowAuthor } from "./workflow-store-tested.ts";

const TOO_NEW = { code: "LEDGER_TOO_NEW" };

/** Expects that the process reads on, and changes nothing that the newer release may have given another meaning. */
async function expectOnlyReads(
  store: OpenedLedger,
  { author, request }: ReturnType<typeof openRun>,
): Promise<void> {
  await expect(store.append(author.append(spawnOf("later")))).rejects.toMatchObject(TOO_NEW);
  const run = createWorkflowAuthor("later").append([createRunStarted()]);
  await expect(store.workflows.append(run)).rejects.toMatchObject(TOO_NEW);
  await expect(store.owners.beat({ id: "older" })).rejects.toMatchObject(TOO_NEW);
  await expect(store.deleteBefore(Number.MAX_SAFE_INTEGER as EpochMs)).rejects.toMatchObject(TOO_NEW);
  expect(await store.read(author.runId, { from: 0, limit: 10 })).toEqual(request.events);
  expect(await store.counts()).toEqual({ coordinations: 1, workflowRuns: 0 });
}

/** Resolves when so many others wait for the lock of the ledger. */
async function waitForWaiting(schema: TestSchema, count: number): Promise<void> {
  await vi.waitFor(async () => {
    const waiting = await schema.query(
      "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%ledger_count%'",
    );
    expect(waiting).toHaveLength(count);
  });
}

it("a process stops writing to a file when a newer release has migrated it meanwhile", async () => {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  const opened = openRun("before");
  await store.append(opened.request);
  const newer = new Database(path);
  newer.pragma(`user_version = ${loadMigrations().length + 1}`);
  newer.close();
  await expectOnlyReads(store, opened);
  await store.close();
});

it("a process stops writing to a server when a newer release has migrated it meanwhile", async () => {
  await using schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  const opened = openRun("before");
  await store.append(opened.request);
  const newer = loadServerMigrations().length + 1;
  await schema.query("update ledger_count set newest_migration = $1", [newer]);
  await expectOnlyReads(store, opened);
  await store.close();
});

it("an append that waits for the migration of a newer release is not written behind it", async () => {
  await using schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  const { author, request } = openRun("before");
  await store.append(request);
  const newer = new pg.Client({ connectionString: schema.url });
  await newer.connect();
  await newer.query("begin");
  await newer.query("lock table ledger_count in access exclusive mode");
  const refused = expect(store.append(author.append(spawnOf("later")))).rejects.toMatchObject(TOO_NEW);
  await waitForWaiting(schema, 1);
  await newer.query("update ledger_count set newest_migration = newest_migration + 1");
  await newer.query("commit");
  await refused;
  expect(await store.read(author.runId, { from: 0, limit: 10 })).toEqual(request.events);
  await newer.end();
  await store.close();
});

it("a ledger is migrated while processes of the older release append to it and wait for each other", async () => {
  await using schema = await createTestSchema();
  await createOlderServerLedger(schema, 5);
  const clients = [1, 2].map(() => new pg.Client({ connectionString: schema.url }));
  for (const client of clients) {
    await client.connect();
    await client.query("begin");
  }
  const [first, second] = clients;
  const lock = "select events, runs, claim_token from ledger_count where only_row = 1 for update";
  await first?.query(lock);
  const migrating = openTestPostgres(schema.url);
  migrating.catch(() => undefined);
  await waitForWaiting(schema, 1);
  const locked = second?.query(lock);
  await waitForWaiting(schema, 2);
  await first?.query("commit");
  expect((await locked)?.rows).toHaveLength(1);
  await second?.query("commit");
  const store = await migrating;
  expect(await store.readMovedFrom()).toBeUndefined();
  for (const client of clients) await client.end();
  await store.close();
});
