/** Owns: what a verification says of runs that grow while it reads them, and of more problems than it lists. */
import { describe, expect, it } from "vitest";
import type { StoredProblem } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { verifyLedger, type Verification } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { openRun, runIdOf, spawnOf, type Author } from "../support/ledger-fixtures.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import {
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "./workflow-store-tested.ts";

/** More often than a verification reads one coordination, however often it begins anew. */
const OFTEN = 50;

describe("a workflow run that grows whenever the verification reads it", () => {
  it("is no damage", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const author = createWorkflowAuthor("grows");
    await store.workflows.append(author.append([createRunStarted("wf-grows"), createNodeStarted("first")]));
    let reads = 0;
    const growing: WorkflowStore = {
      ...store.workflows,
      read: async (runId, range) => {
        reads += 1;
        await store.workflows.append(author.append([createNodeStarted(`node-${reads}`)]));
        return store.workflows.read(runId, range);
      },
    };
    const { problems, workflowRuns, events } = await verifyWorkflowRuns(growing);
    expect({ problems, workflowRuns, events }).toEqual({ problems: [], workflowRuns: 1, events: 2 });
    expect(reads).toBeGreaterThan(0);
    await store.close();
  });
});

describe("a coordination that grows whenever the verification reads it", () => {
  /** Appends to the coordination before each of many reads of its log and of its references. */
  function growWhenRead(store: SqliteLedger, author: Author): SqliteLedger {
    let times = 0;
    const grow = async (): Promise<void> => {
      times += 1;
      if (times <= OFTEN) await store.append(author.append(spawnOf(`more-${times}`)));
    };
    return {
      ...store,
      read: async (runId, range) => {
        await grow();
        return store.read(runId, range);
      },
      references: async (runId) => {
        await grow();
        return store.references(runId);
      },
    };
  }

  it("is no damage", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const { author, request } = openRun("grows");
    await store.append(request);
    const { ok, problems } = await verifyLedger(growWhenRead(store, author));
    expect({ ok, problems }).toEqual({ ok: true, problems: [] });
    await store.close();
  });

  it("is damaged where an event is not what follows from the one before it", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const before = await openTestLedger(path);
    const { author, request } = openRun("grows");
    await before.append(request);
    await before.close();
    forge(path, "update event set causation_id = 'co-grows:9' where sequence = 3");
    const store = await openTestLedger(path);
    const { problems } = await verifyLedger(growWhenRead(store, author));
    expect(problems).toContainEqual(
      expect.objectContaining({ kind: "projection_differs", runId: "co-grows", sequence: 3 }),
    );
    await store.close();
  });
});

describe("a log that has not as many events as its run counts", () => {
  async function verifyForged(sql: string): Promise<readonly StoredProblem[]> {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const before = await openTestLedger(path);
    await before.append(openRun("co").request);
    await before.workflows.append(
      createWorkflowAuthor("w").append([createRunStarted("wf-w"), createNodeStarted("first")]),
    );
    await before.close();
    forge(path, sql);
    const store = await openTestLedger(path, { mode: "read" });
    const coordinations = await verifyLedger({ ...store, inspect: () => Promise.resolve([]) });
    const runs = await verifyWorkflowRuns(store.workflows);
    await store.close();
    return [...coordinations.problems, ...runs.problems];
  }

  const selectRun = (runId: string): string => `(select run_key from run where run_id = '${runId}')`;

  it.each([runIdOf("co"), nameWorkflowRun("w")])("is damaged where %s lacks the last one", async (runId) => {
    const key = selectRun(runId);
    const problems = await verifyForged(
      `delete from event where run_key = ${key} and sequence = (select length - 1 from run where run_key = ${key})`,
    );
    expect(problems).toContainEqual(expect.objectContaining({ kind: "event_missing", runId }));
  });

  it.each([runIdOf("co"), nameWorkflowRun("w")])("is damaged where %s has one more", async (runId) => {
    const key = selectRun(runId);
    const columns = "sequence, run_key, type, timestamp_ms, node_id, causation_id, payload, hash";
    const problems = await verifyForged(
      `insert into event (${columns}) select sequence + 1, ${columns.slice("sequence, ".length)} from event
       where run_key = ${key} order by sequence desc limit 1`,
    );
    expect(problems).toEqual([expect.objectContaining({ kind: "event_forged", runId })]);
  });
});

describe("more problems than a verification lists", () => {
  it("are cut, and it says so", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    for (let index = 0; index < 201; index += 1) {
      const { request } = openRun(index);
      await store.append({ ...request, references: [] });
      const author = createWorkflowAuthor(String(index));
      await store.workflows.append(author.append([createRunStarted(`wf-${index}`)], { status: "failed" }));
    }
    const coordinations = await verifyLedger(store);
    expect(coordinations.problems).toHaveLength(200);
    expect(coordinations).toMatchObject({ ok: false, coordinations: 200, isCut: true });
    const runs = await verifyWorkflowRuns(store.workflows);
    expect(runs.problems).toHaveLength(200);
    expect(runs).toMatchObject({ workflowRuns: 200, isCut: true });
    await store.close();
  });

  it("are not what a few problems are", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const { request } = openRun("one");
    await store.append({ ...request, references: [] });
    const verification: Verification = await verifyLedger(store);
    expect(verification.problems).toHaveLength(1);
    expect(verification).not.toHaveProperty("isCut");
    expect(await verifyWorkflowRuns(store.workflows)).not.toHaveProperty("isCut");
    await store.close();
  });
});
