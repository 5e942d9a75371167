/** A pause that waits for the running nodes: how it is taken back, seen, and made one at once. */
import { describe, expect, test } from "vitest";
import { expectReplayOf, forkIn } from "../support/forks.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

const delay = (ms: number) => createNode("wait", "core.delay", { delayMs: ms });
const gated = createWorkflow("gated", { nodes: [createNode("gate", "core.approvalGate")] });

function findChild(scene: WorkflowScene, runId: string): string {
  return scene.payloads(runId, "node.dispatched").at(-1)?.childRunId ?? "";
}

/** A run that drains: its delay has ended, and the child of its other branch waits for people. */
async function createDraining(): Promise<{ readonly scene: WorkflowScene; readonly runId: string }> {
  const draining = createWorkflow("draining", {
    nodes: [
      createNode("sub", "core.subWorkflow", { workflowId: "gated" }),
      delay(3_000),
      createNode("after", "core.delay", { delayMs: 1_000 }),
    ],
    edges: [createEdge("wait>after")],
  });
  const scene = createWorkflowScene({ definitions: [gated, draining] });
  const runId = await scene.run("draining");
  await scene.host.pause(ALICE, runId, { reason: "lunch" });
  await scene.clock.advance(3_000);
  return { scene, runId };
}

describe("a pause", () => {
  test("that still drains is taken back by a resumption, and what ended meanwhile goes on", async () => {
    const { scene, runId } = await createDraining();
    expect(codeOf(await scene.host.pause(ALICE, runId, {}))).toBe("run_not_pausable");
    expect(await scene.host.resume(ALICE, runId)).toMatchObject({ value: { status: "running" } });
    await scene.settle();
    expect(scene.types(runId).slice(-4)).toEqual([
      "coordination.pause_requested",
      "node.completed",
      "run.resumed",
      "node.started",
    ]);
    await scene.clock.advance(1_000);
    expect(await scene.snapshot(runId)).toMatchObject({ nodeStates: { after: { status: "completed" } } });
    expect(codeOf(await scene.host.resume(ALICE, runId))).toBe("run_not_paused");
    await scene.answer(findChild(scene, runId), "gate", { action: "accept" });
    await scene.settle();
    expect(await scene.status(runId)).toBe("completed");
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });

  test("that is taken back begins no node anew", async () => {
    const scene = createWorkflowScene({ definitions: [createWorkflow("slow", { nodes: [delay(3_000)] })] });
    const runId = await scene.run("slow");
    await scene.host.pause(ALICE, runId, {});
    await scene.host.resume(ALICE, runId);
    await scene.clock.advance(3_000);
    expect(await scene.status(runId)).toBe("completed");
    expect(scene.payloads(runId, "node.started")).toHaveLength(1);
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });

  test("that still drains is seen, and becomes one at once where that is asked for", async () => {
    const { scene, runId } = await createDraining();
    const pauseRequested = { drainPolicy: "drain-current-node", reason: "lunch" };
    expect(await scene.snapshot(runId)).toMatchObject({ pauseRequested });
    expect(await scene.host.pause(ALICE, runId, {})).toMatchObject({
      code: "run_not_pausable",
      message: "the run is already asked to pause, and does when its running nodes have ended",
      details: { pauseRequested },
    });
    const answered = await scene.host.pause(ALICE, runId, { drainPolicy: "immediate" });
    expect(answered).toMatchObject({ value: { status: "paused" } });
    expect(await scene.snapshot(runId)).not.toHaveProperty("pauseRequested");
    await scene.host.resume(ALICE, runId);
    await scene.answer(findChild(scene, runId), "gate", { action: "accept" });
    await scene.clock.advance(1_000);
    expect(await scene.status(runId)).toBe("completed");
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });
});
