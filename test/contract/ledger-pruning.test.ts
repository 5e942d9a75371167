/** Owns: removing old runs from a ledger file, and what somebody who has the file can do about the traces. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { createSourceTaking } from "../../src/agents/coordination/runtime/workflow-host/driving/take-events.ts";
import { beginWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { runIdOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createManualClock, createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { PLAY_SETTINGS } from "../support/workflow-arbitraries.ts";
import { createGraph } from "../core/workflow-view-scene.ts";
import { describeLedgerPruning } from "./ledger-pruning.suite.ts";
import { addCoordination, addWorkflow, listProblems, listRunIds, prune } from "./prunable-ledger.ts";
import { branchOf, createRunStarted, createWorkflowAuthor } from "./workflow-store-tested.ts";

describeLedgerPruning("SQLite", async () => {
  const folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
});

describeLedgerPruning("PostgreSQL", async () => {
  const schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await schema[Symbol.asyncDispose]();
    },
  };
});

/** As somebody does who knows the tables. */
const REMOVE_RUNNING = `
  delete from run_label where run_key = 3;
  delete from reference where run_key = 3;
  delete from content_use where run_key = 3;
  delete from event where run_key = 3;
  delete from run where run_key = 3`;

describe("a pruned ledger file", () => {
  async function buildPruned(path: string): Promise<void> {
    const store = await openTestLedger(path);
    await addCoordination(store, "old", { claims: 1 });
    await addCoordination(store, "other");
    await addCoordination(store, "running", { isOpen: true });
    await prune(store);
    await store.close();
  }

  async function inspect(path: string): Promise<readonly unknown[]> {
    const store = await openTestLedger(path, { mode: "read" });
    try {
      return await listProblems(store);
    } finally {
      await store.close();
    }
  }

  it.each([
    ["a trace that was removed", "delete from pruned_run where run_id = 'co-old'"],
    ["a trace that was shortened", "update pruned_run set length = length - 1 where run_id = 'co-old'"],
    ["claims of a trace that were changed", "update pruned_run set claims = 7 where run_id = 'co-old'"],
    ["a run that was removed without a trace", REMOVE_RUNNING],
  ])("shows %s", async (_, sql) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await buildPruned(path);
    expect(await inspect(path)).toEqual([]);
    forge(path, sql);
    expect(await inspect(path)).not.toEqual([]);
  });

  it("refuses to let go of an event, a run or a trace", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    await buildPruned(path);
    const database = new Database(path);
    for (const table of ["event", "run", "reference", "run_label", "pruned_run"])
      expect(() => database.exec(`delete from ${table}`), table).toThrow(/cannot be removed/u);
    const insert = `insert into pruned_run
      select run_key, run_id, kind, length, head_hash, 1, 1, 0, 0 from run where run_id = 'co-running'`;
    expect(() => database.exec(insert)).toThrow(/only a run that has ended/u);
    database.close();
  });

  it("keeps the newest run, so that no number is given twice", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    await addCoordination(store, "first");
    await addCoordination(store, "second");
    expect((await prune(store)).kept).toMatchObject({ recent: 1 });
    expect(await listRunIds(store)).toEqual([runIdOf("second")]);
    await addCoordination(store, "third");
    expect(await prune(store)).toMatchObject({ runs: 1 });
    expect(await listProblems(store)).toEqual([]);
    await store.close();
  });

  it("ends a fork whose source was removed before its first event was there, and says why", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const sourceId = await addWorkflow(store, "source");
    await addCoordination(store, "running", { isOpen: true });
    expect(await prune(store)).toMatchObject({ runs: 1 });
    const { workflows } = store;
    const origin = branchOf(sourceId, "fork", 2);
    const fork = createWorkflowAuthor("fork", origin);
    const begun = fork.append([createRunStarted("wf-fork")]);
    await workflows.append(begun);
    const dependencies = {
      store: workflows,
      clock: createManualClock(),
      settings: PLAY_SETTINGS,
      askAgain: () => Promise.resolve([]),
    };
    const run = beginWorkflow(begun.events[0]!, origin);
    const ending = await createSourceTaking(dependencies, origin).next(
      { run, graph: createGraph() },
      new AbortController().signal,
    );
    const { type, payload } = ending.events.at(-1)!;
    expect([type, payload]).toEqual([
      "run.failed",
      {
        error: {
          code: "replay_source_missing",
          message: "the source was pruned from the ledger meanwhile",
        },
      },
    ]);
    await workflows.append(fork.append([{ type, payload } as never], { status: "failed" }));
    expect(await listProblems(store)).toEqual([]);
    await store.close();
  });

  it("keeps a run with damaged bytes, so that they can be looked into", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const store = await openTestLedger(path);
    await addCoordination(store, "damaged");
    await addCoordination(store, "running", { isOpen: true });
    await store.close();
    forge(
      path,
      "update event set payload = replace(payload, 'main', 'mine') where sequence = 0 and event_key = 1",
    );
    const opened = await openTestLedger(path);
    expect(await prune(opened)).toMatchObject({ runs: 0, kept: { damaged: 1, open: 1 } });
    await opened.close();
  });
});
