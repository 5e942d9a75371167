/** Owns: that the server refuses to change what is recorded, and that damage done behind its back is found. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { contentOf, openRun, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, withSetting, type TestSchema } from "../support/postgres-server.ts";
import { createAcquired } from "./ledger-store-claim-play.ts";
import {
  beginRun,
  createMemoryEntry,
  createWorkflowAuthor,
  createRunStarted,
  nameWorkflowRun,
  NOW,
  SCOPE,
} from "./workflow-store-tested.ts";

/** A ledger with something in every table. */
async function fillLedger(schema: TestSchema): Promise<void> {
  const store = await openTestPostgres(schema.url);
  const { author, request } = openRun("a");
  await store.append({ ...request, contents: [{ ...contentOf("kept"), keepWhileRunning: true }] });
  await store.append({ ...author.append(spawnOf("b")), claims: [createAcquired(1, "queue:q")] });
  const { workflows } = store;
  const run = createWorkflowAuthor("memory");
  await workflows.append(
    run.append([createRunStarted()], { entries: [createMemoryEntry("m", { tags: ["t"] })] }),
  );
  await workflows.append(run.append([], { entries: [createMemoryEntry("m")] }));
  await workflows.append(beginRun("other").request);
  const at = { tenant: SCOPE.tenant, scope: "files" };
  for (const text of ["one", "two"])
    await workflows.workspace.write({
      at,
      path: "a.txt",
      content: { contentType: "text/plain", text },
      updatedAt: new Date(NOW).toISOString(),
    });
  await store.close();
}

let schema: TestSchema;

beforeAll(async () => {
  schema = await createTestSchema();
  await fillLedger(schema);
});

afterAll(() => schema[Symbol.asyncDispose]());

/** Inspects the ledger as it is with a damage, which is undone again. */
async function inspectDamaged(sql: string): Promise<StoredProblem[]> {
  const copy = await createTestSchema();
  await fillLedger(copy);
  await copy.query(sql);
  const reader = await openTestPostgres(copy.url, { mode: "read" });
  const problems = await reader.inspect();
  await reader.close();
  await copy[Symbol.asyncDispose]();
  return problems;
}

const WITHOUT_TRIGGERS = ["event", "run", "run_label", "memory_entry", "workspace_version", "ledger_count"]
  .map((table) => `alter table ${table} disable trigger user;`)
  .join(" ");
const WITH_TRIGGERS = WITHOUT_TRIGGERS.replaceAll("disable", "enable");

it("a server that is busy is no damage", async () => {
  await using copy = await createTestSchema();
  await fillLedger(copy);
  const url = new URL(copy.url);
  url.searchParams.set("options", `${url.searchParams.get("options") ?? ""} -c lock_timeout=100`);
  const reader = await openTestPostgres(url.href, { mode: "read" });
  const holder = new pg.Client({ connectionString: copy.url });
  await holder.connect();
  await holder.query("begin");
  await holder.query("lock table content in access exclusive mode");
  await expect(reader.inspect()).rejects.toMatchObject({ code: "LEDGER_BUSY" });
  await holder.query("rollback");
  await holder.end();
  await reader.close();
});

it("damage that was found before the server was busy is kept, as a part of what there may be", async () => {
  await using copy = await createTestSchema();
  await fillLedger(copy);
  await copy.query(
    `${WITHOUT_TRIGGERS} update event set payload = '{}' where event_key = 2; ${WITH_TRIGGERS}`,
  );
  const reader = await openTestPostgres(withSetting(copy.url, "lock_timeout=100"), { mode: "read" });
  const holder = new pg.Client({ connectionString: copy.url });
  await holder.connect();
  await holder.query("begin; lock table content in access exclusive mode");
  const verification = await verifyLedger(reader);
  await holder.end();
  expect(verification).toMatchObject({ ok: false, isCut: true, coordinations: 0 });
  expect(verification.problems).toContainEqual(expect.objectContaining({ kind: "event_changed" }));
  await reader.close();
});

/** Has each reading of a text fail with an error of the server. */
async function failReadsOfTexts(schema: TestSchema, state: string, message: string): Promise<void> {
  await schema.query(
    `create function fail_to_read() returns boolean language plpgsql as
     $$ begin raise exception '${message}' using errcode = '${state}'; end $$;
     alter table content rename to stored_content;
     create view content as select * from stored_content where fail_to_read()`,
  );
}

it("a server whose disk is full is no damage", async () => {
  await using copy = await createTestSchema();
  await fillLedger(copy);
  await failReadsOfTexts(copy, "disk_full", "no space left on device");
  const reader = await openTestPostgres(copy.url, { mode: "read" });
  await expect(reader.inspect()).rejects.toMatchObject({ code: "LEDGER_FULL" });
  await reader.close();
});

it.each([
  ["58030", 'could not read block 0 in file "base/1/2": Input/output error'],
  ["58P01", 'could not open file "base/1/2": No such file or directory'],
  ["XX000", "invalid memory alloc request size 18446744073709551613"],
])("a server that cannot read what it holds (%s: %s) is damage", async (state, message) => {
  await using copy = await createTestSchema();
  await fillLedger(copy);
  await failReadsOfTexts(copy, state, message);
  const reader = await openTestPostgres(copy.url, { mode: "read" });
  const expected = expect.stringContaining(`${message} (${state})`) as string;
  expect(await reader.inspect()).toContainEqual({ kind: "file_damaged", message: expected });
  await expect(reader.get(contentOf("kept").ref.sha256)).rejects.toMatchObject({
    code: "LEDGER_UNAVAILABLE",
  });
  await reader.close();
});

it.each<[string, (store: OpenedLedger) => Promise<unknown>]>([
  ["coordinations", verifyLedger],
  ["workflow runs", ({ workflows }) => verifyWorkflowRuns(workflows)],
])("a server that is busy for a while as logs of %s are read is no damage", async (_, verify) => {
  await using copy = await createTestSchema();
  await fillLedger(copy);
  const store = await openTestPostgres(withSetting(copy.url, "lock_timeout=100"), { mode: "read" });
  const holder = new pg.Client({ connectionString: copy.url });
  await holder.connect();
  const readBusy = async <T>(read: () => Promise<T>): Promise<T> => {
    await holder.query("begin; lock table event in access exclusive mode");
    try {
      return await read();
    } finally {
      await holder.query("rollback");
    }
  };
  const workflows: OpenedLedger["workflows"] = {
    ...store.workflows,
    read: (runId, range) => readBusy(() => store.workflows.read(runId, range)),
  };
  const read: OpenedLedger["read"] = (runId, range) => readBusy(() => store.read(runId, range));
  await expect(verify({ ...store, workflows, read })).rejects.toMatchObject({ code: "LEDGER_BUSY" });
  await holder.end();
  await store.close();
});

describe("the schema", () => {
  it.each([
    ["an event is changed", "update event set payload = '{}'"],
    ["an event is removed", "delete from event where type = 'step.dispatched'"],
    ["events are truncated", "truncate event cascade"],
    ["a run is removed", "delete from run where kind = 'workflow'"],
    ["a trace is removed", "delete from pruned_run"],
    ["a run shrinks", "update run set length = length - 1"],
    [
      "a run gets another kind",
      "update run set kind = 'workflow', length = length + 1 where kind = 'coordination'",
    ],
    ["a reference is changed", "update reference set name = 'x'"],
    ["a label is removed", "delete from run_label"],
    ["a claim is moved", "update claim set resource = 'queue:other'"],
    ["the count goes back", "update ledger_count set claim_token = 0"],
    ["the count is removed", "delete from ledger_count"],
    ["a memory entry is changed", "update memory_entry set content = 'x'"],
    ["a version is changed", "update workspace_version set sha256 = 'x'"],
    [
      "an event leaves a gap",
      `insert into event (event_key, run_key, sequence, type, timestamp_ms, payload, hash)
       select events + 1, 1, 900, 'x', 0, '{}', decode(repeat('00', 32), 'hex') from ledger_count`,
    ],
    [
      "an event is not the next of the ledger",
      `insert into event (event_key, run_key, sequence, type, timestamp_ms, payload, hash)
       select events + 2, 1, (select length from run where run_key = 1), 'x', 0, '{}', decode(repeat('00', 32), 'hex')
       from ledger_count`,
    ],
    [
      "a token is not the next one",
      `insert into claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)
       values (7, 'queue:q', 1, 's', 'normal', 0, 1)`,
    ],
  ])("refuses when %s", async (_, sql) => {
    await expect(schema.query(sql)).rejects.toMatchObject({ code: "23000" });
  });

  it("holds a ledger in which nothing is wrong", async () => {
    const reader = await openTestPostgres(schema.url, { mode: "read" });
    expect(await reader.inspect()).toEqual([]);
    await reader.close();
  });
});

describe("inspection", () => {
  const runId = runIdOf("a");
  it.each([
    [
      "event_changed",
      "an event was changed",
      "update event set timestamp_ms = 1 where event_key = 2",
      { runId, sequence: 1 },
    ],
    [
      "event_changed",
      "the newest event was exchanged",
      "update run set head_hash = decode(repeat('00', 32), 'hex') where run_key = 1",
      { runId },
    ],
    [
      "event_missing",
      "an event was removed",
      "delete from event where event_key = 2",
      { runId, sequence: 1 },
    ],
    ["event_missing", "the count was raised", "update ledger_count set events = events + 1", {}],
    ["index_differs", "a label was removed", "delete from run_label where kind = 'trace'", { runId }],
    [
      "index_differs",
      "a label was added",
      "insert into run_label select 'session', 'forged', started_at_ms, run_key, step_id from run_label limit 1",
      { runId },
    ],
    ["index_differs", "a run is listed as ended", "update run set ended = 1 where run_key = 1", { runId }],
    ["content_changed", "a text was changed", "update content set text = 'x'", {}],
    ["index_differs", "a text lost its mark", "update content set kept = 0 where kept = 1", {}],
    ["index_differs", "the count of claims fell", "update ledger_count set claim_token = 0", {}],
    [
      "content_changed",
      "memory was changed",
      "update memory_entry set content = 'x'",
      { runId: nameWorkflowRun("memory") },
    ],
    ["index_differs", "a tag was removed", "delete from memory_tag", {}],
    ["index_differs", "an entry that was replaced is back", "update memory_entry set replaced_by = null", {}],
    [
      "content_changed",
      "a version was changed",
      "update workspace_version set content = 'x' where version = 1",
      {},
    ],
    [
      "index_differs",
      "a version was moved",
      "update workspace_version set until_position = 1 where version = 1",
      {},
    ],
  ] as const)("finds %s when %s", async (kind, _, sql, place) => {
    const problems = await inspectDamaged(`${WITHOUT_TRIGGERS} ${sql}; ${WITH_TRIGGERS}`);
    expect(problems).toContainEqual(expect.objectContaining({ kind, ...place }));
  });

  it("says nothing of what extensions have in the schema", async () => {
    const problems = await inspectDamaged(
      `create extension pg_buffercache;
       create table spatial (id integer);
       create index spatial_by_id on spatial (id);
       create trigger spatial_stays before update on spatial for each statement execute function refuse_change('x');
       alter extension pg_buffercache add table spatial;`,
    );
    expect(problems).toEqual([]);
  });

  it.each([
    ["trigger event_stays was changed or dropped", "drop trigger event_stays on event"],
    ["trigger run_grows was changed or dropped", "alter table run disable trigger run_grows"],
    ["table extra was added", "create table extra (a integer)"],
    ["index event_by_time was changed or dropped", "drop index event_by_time"],
    [
      "function refuse_change was changed",
      "create or replace function refuse_change() returns trigger language plpgsql as 'begin return new; end'",
    ],
    ["migration 1 is recorded with another hash", "update migration set sha256 = 'x' where number = 1"],
  ])("says that %s", async (message, sql) => {
    const copy = await createTestSchema();
    await fillLedger(copy);
    const reader = await openTestPostgres(copy.url, { mode: "read" });
    await copy.query(sql);
    expect(await reader.inspect()).toContainEqual({ kind: "schema_changed", message });
    await reader.close();
    await copy[Symbol.asyncDispose]();
  });
});
