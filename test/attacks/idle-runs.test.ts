/** Runs that wait must not hold their values: whoever starts enough of them would end the host. */
import { describe, expect, test } from "vitest";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";

const VALUE_CHARS = 950_000;
/** Together more than the host keeps of all runs. */
const RUNS = 70;
const WAIT_MS = 60_000;

const slow = createWorkflow("slow", {
  nodes: [createNode("wait", "core.delay", { delayMs: WAIT_MS }), createNode("after")],
  edges: [createEdge("wait>after")],
});
const small = createWorkflow("small", { nodes: [createNode("wait", "core.delay", { delayMs: WAIT_MS })] });
const parent = createWorkflow("parent", {
  nodes: [createNode("sub", "core.subWorkflow", { workflowId: "small" })],
});
const definitions = [slow, small, parent];
const inputs = { text: "x".repeat(VALUE_CHARS) };

/** A ledger that tells which runs are read from their beginning. */
function watchLedger(): { readonly ledger: MemoryWorkflowLedger; readonly loaded: Set<string> } {
  const ledger = createMemoryWorkflowLedger();
  const loaded = new Set<string>();
  const open = (): ReturnType<MemoryWorkflowLedger["open"]> => {
    const store = ledger.open();
    const read: WorkflowStore["read"] = (runId, range) => {
      if (range.from === 0) loaded.add(runId);
      return store.read(runId, range);
    };
    return { ...store, read };
  };
  return { ledger: { ...ledger, open }, loaded };
}

describe("a run that waits", () => {
  test.each([
    ["for a time", "slow"],
    ["for a child", "parent"],
  ])("is read again when it is due, because its values were not kept: %s", async (_what, workflowId) => {
    const { ledger, loaded } = watchLedger();
    const scene = createWorkflowScene({ definitions, ledger });
    const first = await scene.run(workflowId, { inputs });
    for (let made = 1; made < RUNS; made += 1) await scene.run(workflowId, { inputs });
    loaded.clear();
    await scene.clock.advance(WAIT_MS);
    expect(loaded).toContain(first);
    expect(await scene.status(first)).toBe("completed");
  });

  test("is listed and not read when its host starts again, and goes on when it is due", async () => {
    const { ledger, loaded } = watchLedger();
    const clock = createFakeClock();
    const before = createWorkflowScene({ definitions, ledger, clock, pid: 1 });
    const runId = await before.run("slow", { inputs });
    before.die();
    const after = createWorkflowScene({ definitions, ledger, clock, pid: 2, alive: new Set([2]) });
    await after.host.start();
    await after.settle();
    expect([...loaded]).toEqual([]);
    await clock.advance(WAIT_MS);
    expect(loaded).toContain(runId);
    expect(await after.status(runId)).toBe("completed");
    await after.host.stop();
  });
});
