/** Owns: what is particular to forks in a ledger file: damage that is found in slices, and what verifying says of them. */
import { setImmediate as othersTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import { summarizeRun } from "../../src/agents/coordination/workflow/state/run-view.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { hashChainedRow, computeGenesisHash, createEventRow } from "../../src/infra/ledger/event-row.ts";
import { forge, rehashRun, verify } from "../support/ledger-fixtures-damage.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import {
  branchOf,
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

const SOURCE = nameWorkflowRun("source");
const FORK = nameWorkflowRun("fork");
const LONG = 2_000;

async function createLongLedger(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  const nodes = Array.from({ length: LONG - 1 }, (_, index) => createNodeStarted(`n${index}`));
  await store.workflows.append(createWorkflowAuthor("source").append([createRunStarted(), ...nodes]));
  await store.close();
  return path;
}

describe("damage to a long log", () => {
  it("is looked for in slices, between which others have their turn, and found behind the first", async () => {
    using folder = createTempFolder();
    const path = await createLongLedger(folder);
    const store = await openTestLedger(path, { mode: "read" });
    let turns = 0;
    let isOver = false;
    const counting = (async () => {
      for (; !isOver; turns += 1) await othersTurn();
    })();
    expect(await store.workflows.damage(SOURCE, { before: LONG })).toBeUndefined();
    isOver = true;
    await counting;
    expect(turns).toBeGreaterThanOrEqual(LONG / 250 - 1);
    await store.close();
    for (const sequence of [249, 250, 1_777, LONG - 1]) {
      using copy = createTempFolder();
      const damaged = await createLongLedger(copy);
      forge(damaged, `update event set type = 'node.failed' where sequence = ${sequence}`);
      const reader = await openTestLedger(damaged, { mode: "read" });
      expect(await reader.workflows.damage(SOURCE, { before: LONG })).toEqual({
        sequence,
        problem: "event_changed",
      });
      expect(await reader.workflows.damage(SOURCE, { before: sequence })).toBeUndefined();
      await reader.close();
    }
  });

  it("is found where the last event was exchanged together with its hash", async () => {
    using folder = createTempFolder();
    const path = await createLongLedger(folder);
    forge(path, (database) => {
      const last = LONG - 1;
      const previous = database
        .prepare<[number], Buffer>("select hash from event where sequence = ?")
        .pluck()
        .get(last - 1);
      const other = { ...createNodeStarted("forged"), sequence: last, timestamp: "2026-01-02T03:04:05.678Z" };
      const row = createEventRow(other);
      database
        .prepare("update event set payload = ?, node_id = ?, timestamp_ms = ?, hash = ? where sequence = ?")
        .run(
          row.payload,
          row.node_id,
          row.timestamp_ms,
          hashChainedRow(previous ?? computeGenesisHash(null), SOURCE, row),
          last,
        );
    });
    const reader = await openTestLedger(path, { mode: "read" });
    const damage = { sequence: LONG - 1, problem: "event_changed" };
    expect(await reader.workflows.damage(SOURCE, { before: LONG })).toEqual(damage);
    await reader.close();
  });
});

/** With the summary that the core makes of it, so that verifying has nothing to say. */
function createSummarized(
  author: WorkflowAuthor,
  drafts: readonly WorkflowDraft[],
  origin?: RunOrigin,
): WorkflowAppend {
  const request = author.append(drafts);
  const run = foldWorkflow(request.events, origin);
  if (!run) throw new Error("a run");
  return { ...request, summary: summarizeRun(run, "driver-1") };
}

async function createForkedLedger(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  const drafts = [createRunStarted(), createNodeStarted("a"), createNodeStarted("b"), COMPLETED];
  await store.workflows.append(createSummarized(createWorkflowAuthor("source"), drafts));
  const branch = branchOf(SOURCE, "fork", 3);
  await store.workflows.append(
    createSummarized(createWorkflowAuthor("fork", branch), [...drafts.slice(0, 3), COMPLETED], branch),
  );
  const second: RunOrigin = {
    ...branchOf(FORK, "second", 2),
    ids: [{ before: 2, runId: SOURCE }],
  };
  const ownDrafts = [{ ...createNodeStarted("c"), causationId: "run-source:1" as never }, COMPLETED];
  await store.workflows.append(
    createSummarized(createWorkflowAuthor("second", second), [...drafts.slice(0, 2), ...ownDrafts], second),
  );
  await store.close();
  return path;
}

describe("verifying forks", () => {
  const findProblems = async (path: string): Promise<readonly StoredProblem[]> =>
    (await verify(path)).problems;

  it("says nothing of those that are whole, nor of causes among the events that they took", async () => {
    using folder = createTempFolder();
    expect(await findProblems(await createForkedLedger(folder))).toEqual([]);
  });

  it.each<[string, string, CoordinationId]>([
    [
      "a changed origin",
      "update run set origin = json_set(origin, '$.fromSeq', 1) where run_id = 'run-fork'",
      FORK,
    ],
    ["no origin", "update run set origin = null where run_id = 'run-fork'", FORK],
    [
      "an origin that it never had",
      "update run set origin = (select origin from run where run_id = 'run-fork') where run_id = 'run-source'",
      SOURCE,
    ],
  ])("finds %s at the first event", async (_, sql, runId) => {
    using folder = createTempFolder();
    const path = await createForkedLedger(folder);
    forge(path, sql);
    expect(await findProblems(path)).toContainEqual({
      kind: "event_changed",
      runId,
      sequence: 0,
      message: expect.stringMatching(/0 \(run\.started\) does not match its hash$/) as string,
    });
  });

  it("finds a branch whose events are not its source's, also where somebody knew the hashes", async () => {
    using folder = createTempFolder();
    const path = await createForkedLedger(folder);
    forge(path, (database) => {
      const ofFork = "run_key = (select run_key from run where run_id = 'run-fork')";
      database.exec(`update event set timestamp_ms = timestamp_ms - 1 where sequence = 1 and ${ofFork}`);
      rehashRun(database, FORK);
    });
    const forged = { kind: "event_forged", sequence: 1 };
    expect(await findProblems(path)).toMatchObject([
      { ...forged, runId: FORK, message: "event 1 is not that of its source run-source" },
      { ...forged, runId: "run-second", message: "event 1 is not that of its source run-fork" },
    ]);
  });

  it.each([
    ["is not there", "$.sourceRunId", "'run-none'", "its source run-none is not there"],
    ["is shorter", "$.until", "9", "it takes 9 events of run-source, which has 4"],
  ])("finds a fork whose source %s", async (_, path, value, message) => {
    using folder = createTempFolder();
    const ledger = await createForkedLedger(folder);
    forge(ledger, (database) => {
      database.exec(
        `update run set origin = json_set(origin, '${path}', ${value}) where run_id = 'run-fork'`,
      );
      rehashRun(database, FORK);
    });
    const missing = { kind: "event_missing", runId: FORK, sequence: 0, message };
    expect(await findProblems(ledger)).toContainEqual(missing);
  });
});

describe("the database itself", () => {
  it.each([
    ["changing an origin", "update run set origin = '{}', length = length + 1 where run_id = 'run-fork'"],
    ["taking an origin", "update run set origin = null, length = length + 1 where run_id = 'run-fork'"],
    [
      "giving an origin later",
      "update run set origin = '{}', length = length + 1 where run_id = 'run-source'",
    ],
    [
      "an origin that is not JSON",
      "insert into run (run_id, length, head_hash, ended, summary, origin) values ('x', 1, zeroblob(32), 0, '{}', '{')",
    ],
  ])("refuses %s", async (_, sql) => {
    using folder = createTempFolder();
    const database = new Database(await createForkedLedger(folder));
    expect(() => database.exec(sql)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^SQLITE_CONSTRAINT/) as string }),
    );
    database.close();
  });
});

describe("damage to the log of a coordination", () => {
  it.each([
    [
      "changed",
      "update event set causation_id = null where sequence = 3",
      { sequence: 3, problem: "event_changed" },
    ],
    ["taken out", "delete from event where sequence = 3", { sequence: 3, problem: "event_missing" }],
  ] as const)("is named where an event was %s, and only from there on", async (_, sql, damage) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const { author: writer, request } = openRun("a");
    await store.append(request);
    const next = writer.append(spawnOf("more"));
    await store.append(next);
    const before = request.events.length + next.events.length;
    expect(await store.damage(writer.runId, { before })).toBeUndefined();
    await store.close();
    forge(path, sql);
    const reader = await openTestLedger(path, { mode: "read" });
    expect(await reader.damage(writer.runId, { before })).toEqual(damage);
    expect(await reader.damage(writer.runId, { before: damage.sequence })).toBeUndefined();
    await reader.close();
  });

  it.each(["payload = '{}'", "timestamp_ms = 8640000000000001"])(
    "is named where an event is none, whatever its hash says: %s",
    async (change) => {
      using folder = createTempFolder();
      const path = folder.file("ledger.sqlite");
      const store = await openTestLedger(path);
      const { author: writer, request } = openRun("a");
      await store.append(request);
      await store.close();
      forge(path, (database) => {
        database.exec(`update event set ${change} where sequence = 0`);
        rehashRun(database, writer.runId);
      });
      const reader = await openTestLedger(path, { mode: "read" });
      expect(await reader.damage(writer.runId, { before: 1 })).toEqual({
        sequence: 0,
        problem: "event_unreadable",
      });
      expect((await verify(path)).problems).toContainEqual(
        expect.objectContaining({ kind: "event_unreadable", sequence: 0 }),
      );
      await reader.close();
    },
  );
});
