/** Owns: what a replay of a workflow run says where the end of its log is missing. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  checkReplay,
  type CheckedRun,
} from "../../src/agents/coordination/runtime/workflow-host/check-replay.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { PLAY_SETTINGS } from "../support/workflow-arbitraries.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { prune } from "./prunable-ledger.ts";
import {
  beginRun,
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
} from "./workflow-store-tested.ts";

const LENGTH = 3;

/** Records a run of one node that has ended. */
async function recordRun(store: SqliteLedger): Promise<CoordinationId> {
  const text = JSON.stringify(createWorkflow("wf-told", { nodes: [createNode("a")] }));
  const definition = hash("sha256", text);
  await store.workflows.putDefinition({ sha256: definition, workflowId: "wf-told", text });
  const author = createWorkflowAuthor("told");
  const started = createRunStarted("wf-told");
  const drafts = [{ ...started, payload: { ...started.payload, definition } }, createNodeStarted("a")];
  await store.workflows.append(author.append(drafts as never));
  await store.workflows.append(author.append([COMPLETED], { status: "completed" }));
  return author.runId;
}

function replay(
  workflows: Parameters<typeof checkReplay>[0],
  runId: CoordinationId,
  from: number,
): Promise<CheckedRun> {
  return checkReplay(workflows, runId, { from, settings: PLAY_SETTINGS });
}

describe("a replay of a run", () => {
  it("goes to the end of a log that is whole", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const runId = await recordRun(store);
    expect(await replay(store.workflows, runId, LENGTH)).toEqual({ runId, from: LENGTH, to: LENGTH });
    await store.close();
  });

  it.each([
    ["the last event", 2, 0],
    ["the last event", 2, LENGTH],
    ["all but the first event", 1, LENGTH],
    ["every event", 0, LENGTH],
  ])("whose log lacks %s says so (from %i on, replayed from %i)", async (_, first, from) => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const before = await openTestLedger(path);
    const runId = await recordRun(before);
    await before.close();
    forge(path, `delete from event where sequence >= ${first}`);
    const store = await openTestLedger(path, { mode: "read" });
    await expect(replay(store.workflows, runId, from)).rejects.toMatchObject({
      code: "LEDGER_CORRUPT",
      message: `the log of ${runId} ends at ${first}, its run counts ${LENGTH} events`,
    });
    await store.close();
  });

  it("that is pruned meanwhile says so", async () => {
    using folder = createTempFolder();
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const runId = await recordRun(store);
    const { workflows } = store;
    // The newest run is never pruned.
    await workflows.append(beginRun("newest").request);
    const pruning: SqliteLedger["workflows"] = {
      ...workflows,
      definition: async (sha256) => {
        const text = await workflows.definition(sha256);
        expect(await prune(store)).toMatchObject({ runs: 1 });
        return text;
      },
    };
    await expect(replay(pruning, runId, 0)).rejects.toMatchObject({
      code: "COORDINATION_NOT_FOUND",
      message: `${runId} was pruned from the ledger meanwhile`,
    });
    await store.close();
  });
});
