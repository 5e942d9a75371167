import { hash } from "node:crypto";
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { contentOf, openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { createAcquired, entryOf, createReleased } from "./ledger-store-claim-play.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import {
  migrationOf,
  createOlderLedger,
  SCHEMAS,
  texts,
  versionOf,
  type OlderLedger,
} from "./older-ledger.ts";
import {
  definitionOf,
  createMemoryEntry,
  NOW,
  readAll,
  SCOPE,
  createRunStarted,
  createWorkflowAuthor,
} from "./workflow-store-tested.ts";

const NEWEST = loadMigrations().length;
const AGED = (TEST_EPOCH_MS + 1) as EpochMs;
/** Everything that was written is read again, and nothing is found wrong. */
async function expectWhole(store: SqliteLedger, { runs }: OlderLedger): Promise<void> {
  const entries = await store.list({ limit: 10 });
  expect(entries.toReversed()).toEqual(
    runs.map(({ requests }, index) => ({
      runId: requests[0]!.runId,
      ordinal: index + 1,
      length: requests.flatMap(({ events }) => events).length,
      summary: requests.at(-1)!.summary,
    })),
  );
  for (const { requests } of runs) {
    const { runId } = requests[0]!;
    const events = await store.read(runId, { from: 0, limit: 1_000 });
    expect(events).toEqual(requests.flatMap((request) => request.events));
    const references = requests.flatMap((request) => request.references);
    expect(references.length).toBeGreaterThan(0);
    expect(await store.references(runId)).toEqual(references);
    for (const { name } of references) expect(await store.find(name)).toMatchObject({ runId });
  }
  for (const { ref, text } of texts) expect(await store.get(ref.sha256)).toBe(text);
  expect(await store.claims({ after: 0, limit: 9 })).toEqual([]);
  expect((await store.getMany(texts.map(({ ref }) => ref.sha256))).size).toBe(texts.length);
  expect(await store.inspect()).toEqual([]);
}

function bytesOf(folder: TempFolder): Record<string, { bytes: Buffer; changed: number }> {
  return Object.fromEntries(
    readdirSync(folder.path).map((name) => {
      const path = folder.file(name);
      return [name, { bytes: readFileSync(path), changed: statSync(path).mtimeMs }];
    }),
  );
}

/** Every answer about workflows and what lies beside their runs. */
async function listWorkflows({ workflows }: SqliteLedger): Promise<unknown[]> {
  const { runId, memory } = WORKFLOW;
  const [{ at, entry } = { at: SCOPE, entry: createMemoryEntry("none") }] = memory ?? [];
  return [
    (await workflows.list({ status: "running", order: "oldest", limit: 9 })).map((open) => open.runId),
    await readAll(workflows, runId),
    (await workflows.entry(runId))?.length,
    await workflows.memory.list(at, { now: NOW, limit: 9, asOf: { runId, sequence: 9 } }),
    await workflows.memory.get(at, entry.id, { now: NOW }),
    await workflows.definition(definitionOf("wf").sha256),
    await workflows.registered("acme", "wf"),
    await workflows.owners.beats(),
  ];
}

const NO_WORKFLOWS = [[], [], undefined, [], undefined, undefined, undefined, []];
const WORKFLOW = createWorkflowAuthor("new").append([createRunStarted()], {
  entries: [createMemoryEntry("m")],
});

async function writeWorkflow({ workflows }: SqliteLedger): Promise<unknown[]> {
  await workflows.append(WORKFLOW);
  await workflows.putDefinition(definitionOf("wf", "acme"));
  await workflows.owners.beat({ id: "d", process: "p" });
  const { text } = definitionOf("wf");
  return [
    [WORKFLOW.runId],
    WORKFLOW.events,
    2,
    [createMemoryEntry("m")],
    createMemoryEntry("m"),
    text,
    definitionOf("wf", "acme"),
    [{ id: "d", process: "p", count: 1 }],
  ];
}

/** Every answer about claims; some are of the coordination that a test adds. */
async function listClaims(store: SqliteLedger): Promise<unknown[]> {
  const runId = runIdOf("new");
  return [
    await store.claims({ after: 0, limit: 9 }),
    await store.claims({ after: 0, limit: 9, runId }),
    await store.overlapping({ resource: "file:/a/b", atMs: 0 as EpochMs, limit: 9 }),
  ];
}

describe.each(SCHEMAS)("a ledger of schema $schema", ({ schema, sha256, next }) => {
  it("is made of the migration that was released", () => {
    expect(hash("sha256", migrationOf(schema))).toBe(sha256);
  });

  it("is brought to the newest schema when it is opened for writing, with all that it held", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const store = await openTestLedger(old.path);
    expect(versionOf(old.path)).toBe(NEWEST);
    await expectWhole(store, old);
    await store.close();
    const again = await openTestLedger(old.path);
    await expectWhole(again, old);
    await again.close();
  });

  it("is brought to it also from what a crashed writer left in the -wal file", async () => {
    using folder = createTempFolder();
    using copy = createTempFolder();
    const old = createOlderLedger(folder, schema);
    for (const name of ["ledger.sqlite", "ledger.sqlite-wal"])
      copyFileSync(folder.file(name), copy.file(name));
    old.database.close();
    const store = await openTestLedger(copy.file("ledger.sqlite"));
    expect(versionOf(copy.file("ledger.sqlite"))).toBe(NEWEST);
    await expectWhole(store, old);
    await store.close();
  });

  it("goes on afterwards: runs grow, texts of before are kept when asked for, and the others get old", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const store = await openTestLedger(old.path);
    const { author, request } = openRun("new");
    const [needed, ...others] = texts as [(typeof texts)[0], ...typeof texts];
    await store.append({ ...request, contents: [{ ...needed, keepWhileRunning: true }] });
    expect(await store.deleteBefore(AGED)).toBe(others.length);
    expect(await store.get(needed.ref.sha256)).toBe(needed.text);
    await store.append({
      ...appendEnd(author),
      claims: [createAcquired(1, "file:/a"), createAcquired(2, "queue:q"), createReleased(1)],
    });
    expect(await store.deleteBefore(AGED)).toBe(1);
    expect((await store.claims({ after: 0, limit: 9 })).map(({ token }) => token)).toEqual([2]);
    expect(await listWorkflows(store)).toEqual(NO_WORKFLOWS);
    const written = await writeWorkflow(store);
    expect(await listWorkflows(store)).toEqual(written);
    expect((await store.list({ limit: 9 })).map(({ runId }) => runId)).not.toContain(WORKFLOW.runId);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });

  it("stays as it was when bringing it to the newest schema fails", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    // In the way of a statement of the migration behind it.
    old.database.exec(`create table ${next} (a)`);
    old.database.close();
    await expect(openTestLedger(old.path)).rejects.toMatchObject({ code: "LEDGER_CORRUPT" });
    const database = new Database(old.path);
    expect(database.pragma("user_version", { simple: true })).toBe(schema);
    database.exec(`drop table ${next}`);
    database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    await expectWhole(reader, old);
    await reader.close();
    const store = await openTestLedger(old.path);
    await expectWhole(store, old);
    await store.close();
  });
});

describe.each(SCHEMAS)("a ledger of schema $schema opened for reading", ({ schema, nextTable }) => {
  it("is read and inspected as it is, and left byte for byte", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const before = bytesOf(folder);
    const reader = await openTestLedger(old.path, { mode: "read" });
    await expectWhole(reader, old);
    await reader.close();
    expect(bytesOf(folder)).toEqual(before);
    expect(versionOf(old.path)).toBe(schema);
    expect(existsSync(`${old.path}-wal`)).toBe(false);
  });

  it("answers that it has no claims", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    expect(await listClaims(reader)).toEqual([[], [], { claims: [], lastToken: 0 }]);
    await reader.close();
  });

  it("answers that it has no workflows", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    expect(await listWorkflows(reader)).toEqual(NO_WORKFLOWS);
    await reader.close();
  });

  it("cannot be appended to, and nothing deleted from it", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    const unavailable = { code: "LEDGER_UNAVAILABLE" };
    await expect(reader.append(openRun("new").request)).rejects.toMatchObject(unavailable);
    await expect(reader.deleteBefore(AGED)).rejects.toMatchObject(unavailable);
    await expect(reader.workflows.append(WORKFLOW)).rejects.toMatchObject(unavailable);
    await expect(reader.workflows.owners.remove("d")).rejects.toMatchObject(unavailable);
    await expectWhole(reader, old);
    await reader.close();
  });

  it.each([
    ["a dropped trigger", "drop trigger event_no_update", "trigger event_no_update was changed or dropped"],
    ["a table of a later schema", `create table ${nextTable} (a)`, `table ${nextTable} was added`],
    [
      "another hash of its migration",
      "update migration set sha256 = '0' where number = 1",
      "migration 1 is recorded",
    ],
  ])("is reported where it was changed: %s", async (_, sql, message) => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.exec(sql);
    old.database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    expect(await reader.inspect()).toEqual([
      { kind: "schema_changed", message: expect.stringContaining(message) as string },
    ]);
    await reader.close();
  });

  it("is read on by who has it open while a writer brings it to the newest schema", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, schema);
    old.database.close();
    const reader = await openTestLedger(old.path, { mode: "read" });
    await expectWhole(reader, old);
    const store = await openTestLedger(old.path);
    await expectWhole(reader, old);
    const { author, request } = openRun("new");
    const claims = [createAcquired(1, "file:/a")];
    await store.append({ ...request, contents: [contentOf("new")], claims });
    const entry = entryOf(author.runId, claims[0]!);
    expect(await listClaims(reader)).toEqual([[entry], [entry], { claims: [entry], lastToken: 1 }]);
    expect(await reader.read(author.runId, { from: 0, limit: 100 })).toEqual(request.events);
    expect(await reader.get(contentOf("new").ref.sha256)).toBe("new");
    const written = await writeWorkflow(store);
    expect(await listWorkflows(reader)).toEqual(written);
    const listed = await reader.list({ limit: 9, status: "running" });
    expect(listed.map(({ runId }) => runId)).toEqual([author.runId, old.runs[0]!.requests[0]!.runId]);
    expect(await reader.read(WORKFLOW.runId, { from: 0, limit: 9 })).toEqual([]);
    expect(await reader.inspect()).toEqual([]);
    await store.close();
    await reader.close();
  });
});

describe("a ledger of schema 2 whose texts are kept", () => {
  it("keeps them for the same coordination after it was brought to the newest schema", async () => {
    using folder = createTempFolder();
    const old = createOlderLedger(folder, 2);
    const [needed, ...others] = texts as [(typeof texts)[0], ...typeof texts];
    const { sha256 } = needed.ref;
    old.database.prepare("insert into content_use (run_key, sha256) values (1, ?)").run(sha256);
    old.database.prepare("update content set kept = 1 where sha256 = ?").run(sha256);
    old.database.close();
    const store = await openTestLedger(old.path);
    await expectWhole(store, old);
    expect(await store.deleteBefore(AGED)).toBe(others.length);
    expect(await store.get(sha256)).toBe(needed.text);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});
