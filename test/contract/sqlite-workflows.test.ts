/** Owns: what is particular to workflow runs in a ledger file: beside coordinations, in one queue, by index, whole. */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import { readSchemaVersion } from "../../src/infra/sqlite/database/migrate.ts";
import type { RunKind } from "../../src/infra/ledger/stored-run.ts";
import { prepareRunReads } from "../../src/infra/sqlite/database/run-reads.ts";
import {
  prepareWorkflowReads,
  prepareWorkflowWrites,
} from "../../src/infra/sqlite/workflows/workflow-statements.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import {
  timeAt,
  beginRun,
  definitionOf,
  createMemoryEntry,
  createNodeStarted,
  NOW,
  readAll,
  SCOPE,
  SOON,
  createRunStarted,
  createWholeRun,
  createWorkflowAuthor,
} from "./workflow-store-tested.ts";

const KEY = { tenant: "acme", endpoint: "POST /v1/runs", key: "k" };
const ASKED = { ...KEY, digest: "d", subject: "run-k", now: NOW, leaseUntilMs: SOON };

function planOf(database: Database.Database, { source }: { readonly source: string }): string[] {
  return database
    .prepare<[], { detail: string }>(`explain query plan ${source.replaceAll(/\?|@\w+/gu, "1")}`)
    .all()
    .map(({ detail }) => detail);
}

/** The transactions that a -wal file holds: their last frames tell the size of the database. */
function countCommits(path: string): number {
  const file = readFileSync(`${path}-wal`);
  const pageBytes = file.readUInt32BE(8);
  let commits = 0;
  for (let frame = 32; frame < file.length; frame += 24 + pageBytes)
    if (file.readUInt32BE(frame + 4) > 0) commits += 1;
  return commits;
}

describe("workflow runs and coordinations in one ledger", () => {
  it("do not see each other", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const coordination = openRun("a");
    const over = openRun("b");
    const workflow = beginRun("c");
    await store.append(coordination.request);
    await store.append(over.request);
    await store.workflows.append(workflow.request);
    await store.append(appendEnd(over.author));
    await store.workflows.append(createWholeRun("d"));
    const [a, b, c] = [coordination.author.runId, over.author.runId, workflow.author.runId];
    const listRunIds = async (query = {}) =>
      (await store.list({ limit: 9, ...query })).map(({ runId }) => runId);
    expect(await listRunIds()).toEqual([b, a]);
    expect(await listRunIds({ status: "running" })).toEqual([a]);
    expect(await listRunIds({ status: "ended" })).toEqual([b]);
    expect(await listRunIds({ idPrefix: "run-" })).toEqual([]);
    expect(await store.read(c, { from: 0, limit: 9 })).toEqual([]);
    expect(await store.references(c)).toEqual([]);
    expect(
      (await store.workflows.list({ status: "running", order: "oldest", limit: 9 })).map(
        ({ runId }) => runId,
      ),
    ).toEqual([c]);
    expect(await store.workflows.entry(a)).toBeUndefined();
    expect(await readAll(store.workflows, a)).toEqual([]);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });

  it("cannot take each other's log over", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const coordination = openRun("a");
    const workflow = beginRun("c");
    await store.append(coordination.request);
    await store.workflows.append(workflow.request);
    const [a, c] = [coordination.author.runId, workflow.author.runId];
    const conflict = { code: "LEDGER_CONFLICT" };
    const events = coordination.request.events.length;
    for (const sequence of [0, events]) {
      const [event] = workflow.request.events;
      const forged = {
        ...workflow.request,
        runId: a,
        events: event ? [{ ...event, runId: a, sequence }] : [],
      };
      await expect(store.workflows.append(forged)).rejects.toMatchObject(conflict);
    }
    const grown = coordination.author.append(spawnOf("more"));
    const moved = grown.events.map((event, index) => ({ ...event, runId: c, sequence: 2 + index }));
    await expect(store.append({ ...grown, runId: c, events: moved })).rejects.toMatchObject(conflict);
    expect(await readAll(store.workflows, c)).toEqual(workflow.request.events);
    expect(await store.read(a, { from: 0, limit: 99 })).toEqual(coordination.request.events);
    await store.close();
  });

  it("are committed together, with all else that waits, in one transaction", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    await store.append(openRun("first").request);
    const before = countCommits(path);
    const { workflows } = store;
    await Promise.all([
      ...Array.from({ length: 10 }, (_, index) => store.append(openRun(`co-${index}`).request)),
      ...Array.from({ length: 10 }, (_, index) => workflows.append(createWholeRun(`w-${index}`))),
      workflows.requests.begin(ASKED),
      workflows.putDefinition(definitionOf("wf", "acme")),
      workflows.owners.beat({ id: "d" }),
    ]);
    expect(countCommits(path) - before).toBe(1);
    await store.close();
  });

  it("do not fail where a torn append of the other kind waits with them", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const { request } = openRun("torn");
    const whole = createWholeRun("w");
    const results = await Promise.allSettled([
      store.workflows.append(whole),
      store.append({ ...request, events: request.events.toSpliced(2, 1) }),
      store.workflows.requests.begin(ASKED),
      store.append(openRun("good").request),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(results[2]).toMatchObject({ value: { kind: "new", subject: ASKED.subject } });
    expect(await readAll(store.workflows, whole.runId)).toEqual(whole.events);
    expect(await store.list({ limit: 9 })).toHaveLength(1);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});

describe("what resolved", () => {
  it("is on the disk, also when the process is gone with the next line", async () => {
    using folder = createTempFolder();
    using copy = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const request = createWorkflowAuthor("a").append([createRunStarted()], {
      entries: [createMemoryEntry("m")],
    });
    await store.workflows.append(request);
    expect(await store.workflows.requests.begin(ASKED)).toMatchObject({ kind: "new" });
    for (const end of ["", "-wal"]) copyFileSync(`${path}${end}`, `${copy.file("ledger.sqlite")}${end}`);
    await store.close();
    const { workflows, close } = await reopenLedger(copy);
    expect(await readAll(workflows, request.runId)).toEqual(request.events);
    expect(await workflows.memory.get(SCOPE, "m", { now: NOW })).toEqual(createMemoryEntry("m"));
    const again = { ...ASKED, subject: "run-again" };
    expect(await workflows.requests.begin(again)).toEqual({ kind: "in_flight" });
    const begun = await workflows.requests.begin({ ...again, now: SOON, leaseUntilMs: timeAt(90_000) });
    expect(begun).toEqual({ kind: "new", subject: ASKED.subject });
    await close();
  });
});

async function reopenLedger(folder: TempFolder) {
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  return { workflows: store.workflows, close: () => store.close() };
}

describe("the statements of workflows", () => {
  it("reach their rows through an index and sort nothing, so that other runs and scopes cost nothing", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await (await openTestLedger(path)).close();
    const database = new Database(path);
    const reads = prepareWorkflowReads(database);
    const { request, lease, answer, release, deleteRequests, deleteEntries } =
      prepareWorkflowWrites(database);
    const writes = { request, lease, answer, release, deleteRequests, deleteEntries };
    for (const [name, statement] of [
      ...Object.entries({ ...reads, ...writes }),
      ...runStatementsOf(database, "coordination"),
      ...runStatementsOf(database, "workflow"),
    ]) {
      const steps = planOf(database, statement);
      const from = /^SCAN (?!\(subquery)/u;
      const isOrdered = (step: string) => step.includes("run USING INDEX run_coordination");
      expect(steps.filter((step) => from.test(step) && !isOrdered(step), name)).toEqual([]);
      expect(
        steps.filter((step) => step.includes("TEMP B-TREE")),
        name,
      ).toEqual([]);
      expect(steps.filter((step) => step.startsWith("SEARCH")).length, name).toBeGreaterThan(0);
    }
    database.close();
  });

  it("go by the indexes made for them", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await (await openTestLedger(path)).close();
    const database = new Database(path);
    const { entries, taggedEntries, newestEntry } = prepareWorkflowReads(database);
    const { deleteEntries } = prepareWorkflowWrites(database);
    const block =
      "SEARCH narrow USING PRIMARY KEY (tenant=? AND scope=? AND lane=? AND bits=? AND block>? AND block<?)";
    const version = readSchemaVersion(database);
    const coordinations = prepareRunReads(database, { kind: "coordination", version });
    const workflowRuns = prepareRunReads(database, { kind: "workflow", version });
    const plans: readonly [{ readonly source: string }, string][] = [
      [workflowRuns.oldest.running, "SEARCH run USING INDEX run_open (kind=? AND run_key>?)"],
      [workflowRuns.newest.running, "SEARCH run USING INDEX run_open (kind=? AND run_key<?)"],
      [coordinations.oldest.running, "SEARCH run USING INDEX run_open (kind=? AND run_key>?)"],
      [coordinations.newest.running, "SEARCH run USING INDEX run_open (kind=? AND run_key<?)"],
      [coordinations.newest.all, "SEARCH run USING INDEX run_coordination (run_key<?)"],
      [coordinations.oldest.all, "SEARCH run USING INDEX run_coordination (run_key>?)"],
      [entries, block],
      [
        entries,
        "SEARCH memory_entry USING INDEX memory_by_scope (tenant=? AND scope=? AND rowid>? AND rowid<?)",
      ],
      [
        newestEntry,
        "SEARCH memory_entry USING INDEX memory_by_id (tenant=? AND scope=? AND memory_id=? AND rowid<?)",
      ],
      [taggedEntries, block],
      [
        taggedEntries,
        "SEARCH memory_tag USING PRIMARY KEY (tenant=? AND scope=? AND tag=? AND event_key>? AND event_key<?)",
      ],
      [deleteEntries, "SEARCH memory_entry USING COVERING INDEX memory_by_expiry (expires_at_ms<?)"],
    ];
    for (const [statement, step] of plans) expect(planOf(database, statement)).toContain(step);
    database.close();
  });
});

function runStatementsOf(database: Database.Database, kind: RunKind) {
  const { newest, oldest, ...reads } = prepareRunReads(database, {
    kind,
    version: readSchemaVersion(database),
  });
  return [...Object.entries(reads), ...Object.entries(newest), ...Object.entries(oldest)];
}

const UNCOUNTED = "the memory entries from event 0 on are not counted as they are";
const UNCOUNTED_BY_TAG = "the memory entries with the tag t from event 0 on are not counted as they are";

describe("damage to a workflow run", () => {
  const createLedgerIn = async (folder: TempFolder): Promise<string> => {
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    await store.append(openRun("co").request);
    const { author, request } = beginRun("w");
    await store.workflows.append(request);
    const entries = [createMemoryEntry("m", { content: "remembered", tags: ["t"] })];
    await store.workflows.append(author.append([createNodeStarted("here-it-is")], { entries }));
    await store.workflows.append(createWholeRun("v"));
    const waits = { status: "waiting-approval" } as const;
    await store.workflows.append(createWorkflowAuthor("u").append([createRunStarted()], waits));
    await store.workflows.putDefinition(definitionOf("wf", "acme"));
    await store.close();
    return path;
  };
  const problemsOf = async (path: string): Promise<StoredProblem[]> => {
    const store = await openTestLedger(path, { mode: "read" });
    const problems = await store.inspect();
    await store.close();
    return problems;
  };

  it("is not found where there is none", async () => {
    using folder = createTempFolder();
    expect(await problemsOf(await createLedgerIn(folder))).toEqual([]);
  });

  it("is found at its place when one byte of an event is another", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const file = readFileSync(path);
    const places: number[] = [];
    for (let from = file.indexOf("here-it-is"); from !== -1; from = file.indexOf("here-it-is", from + 1))
      places.push(from);
    // In the column of the node, in the payload, and in the index of the events of a step.
    expect(places).toHaveLength(3);
    const changed = { kind: "event_changed", runId: "run-w", sequence: 2 };
    const unindexed = { kind: "file_damaged", message: expect.stringContaining("event_by_step") as string };
    const found = [];
    for (const place of places) {
      using copy = createTempFolder();
      const damaged = Buffer.from(file);
      damaged.writeUInt8(damaged.readUInt8(place) ^ 1, place);
      const to = copy.file("ledger.sqlite");
      writeFileSync(to, damaged);
      found.push(await problemsOf(to));
    }
    expect(found).toMatchObject([[unindexed, changed], [changed], [unindexed]]);
  });

  it.each([
    [
      "content of memory",
      "drop trigger memory_no_update; update memory_entry set content = 'forged'",
      [{ kind: "schema_changed" }, { kind: "content_changed", runId: "run-w", sequence: 3 }],
    ],
    [
      "another's memory",
      "drop trigger memory_no_update; update memory_entry set tenant = 'evil'",
      [
        { kind: "schema_changed" },
        { kind: "content_changed", runId: "run-w", sequence: 3 },
        { kind: "index_differs", message: "memory entry m is not found by its tags" },
        { kind: "index_differs", message: UNCOUNTED },
      ],
    ],
    [
      "a tag that was taken",
      "delete from memory_tag",
      [
        { kind: "index_differs", message: "memory entry m is not found by its tags" },
        { kind: "index_differs", message: UNCOUNTED_BY_TAG },
      ],
    ],
    [
      "a tag that was changed",
      "update memory_tag set tag = 'forged'",
      [
        { kind: "index_differs", message: "memory entry m is not found by its tags" },
        {
          kind: "index_differs",
          message: "the memory entries with the tag forged from event 0 on are not counted as they are",
        },
        { kind: "index_differs", message: UNCOUNTED_BY_TAG },
      ],
    ],
    [
      "a block of memory that is gone",
      "delete from memory_block where lane = '' and bits = 8",
      [{ kind: "index_differs", message: UNCOUNTED }],
    ],
    [
      "a block of memory that hides an entry",
      "update memory_block set expires_at_ms = 0 where lane = '#t' and bits = 16",
      [{ kind: "index_differs", message: UNCOUNTED_BY_TAG }],
    ],
    [
      "an entry that is said to be replaced",
      "update memory_entry set replaced_by = (select max(event_key) from event)",
      [{ kind: "index_differs", message: "memory entry m is not replaced by the next with its id" }],
    ],
    [
      "a definition",
      "update workflow_definition set text = '{}'",
      [{ kind: "content_changed", message: expect.stringContaining("definition") as string }],
    ],
    [
      "a run that is listed as ended",
      "drop trigger run_grows; update run set ended = 1 where run_id = 'run-w'",
      [{ kind: "schema_changed" }, { kind: "index_differs", runId: "run-w" }],
    ],
    [
      "a run that is listed as running",
      "drop trigger run_grows; update run set ended = 0 where run_id = 'run-v'",
      [{ kind: "schema_changed" }, { kind: "index_differs", runId: "run-v" }],
    ],
    [
      "a run that is listed as a coordination",
      "drop trigger run_grows; update run set kind = 'coordination' where run_id = 'run-w'",
      [{ kind: "schema_changed" }, { kind: "index_differs", runId: "run-w" }],
    ],
  ])("is found: %s", async (_, sql, expected) => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const database = new Database(path);
    database.exec(sql);
    database.close();
    expect(await problemsOf(path)).toMatchObject(expected);
  });
});
