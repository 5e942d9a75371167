import { describe, expect, test } from "vitest";
import {
  chain,
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene, type WorkflowScene } from "../support/workflow-scene.ts";

function findBreach(scene: WorkflowScene, runId: string) {
  expect(scene.types(runId).filter((type) => type === "cap.breached")).toHaveLength(1);
  expect(scene.types(runId).at(-1)).toBe("run.failed");
  return scene.payloads(runId, "cap.breached")[0];
}

describe("the limit of node executions", () => {
  const six = createWorkflow("six", {
    nodes: [1, 2, 3, 4, 5, 6].map((n) => createNode(`n${n}`)),
    edges: chain("n1>n2>n3>n4>n5>n6"),
  });

  test("is breached before the node that is one too many starts", async () => {
    const scene = createWorkflowScene({ definitions: [six] });
    const runId = await scene.run("six", { configurable: { recursionLimit: 3 } });
    expect(findBreach(scene, runId)).toEqual({
      kind: "node-executions",
      limit: 3,
      observed: 4,
      nodeId: "n4",
    });
    expect(scene.payloads(runId, "node.started")).toHaveLength(3);
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "recursion_limit_exceeded" } });
  });

  test("is the host's where the caller asks for more, and is not breached by exactly as many", async () => {
    const scene = createWorkflowScene({ definitions: [six], settings: { nodeExecutionsMax: 5 } });
    const runId = await scene.run("six", { configurable: { recursionLimit: 1_000_000 } });
    expect(findBreach(scene, runId)).toMatchObject({ limit: 5, observed: 6 });
    expect(await scene.status(await scene.run("six", { configurable: { recursionLimit: 6 } }))).toBe(
      "failed",
    );
    const wide = createWorkflowScene({ definitions: [six] });
    expect(await wide.status(await wide.run("six", { configurable: { recursionLimit: 6 } }))).toBe(
      "completed",
    );
  });

  test("counts retries, however many the workflow allows", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", { nodes: [createNode("a", "core.fail")], settings: { maxRetries: 1_000_000 } }),
      ],
      settings: { nodeExecutionsMax: 20 },
    });
    const runId = await scene.run("w");
    await scene.clock.advance(1);
    expect(findBreach(scene, runId)).toMatchObject({ kind: "node-executions", limit: 20, observed: 21 });
    expect(scene.payloads(runId, "node.started")).toHaveLength(20);
  });

  test("tells what else is at work that it ends", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [createNode("wait", "core.delay", { delayMs: 60_000 }), createNode("a"), createNode("b")],
          edges: [createEdge("a>b")],
        }),
      ],
    });
    const runId = await scene.run("w", { configurable: { recursionLimit: 2 } });
    expect(scene.types(runId).slice(-3)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
  });
});

describe("the limit of time", () => {
  const delay = createWorkflow("delay", { nodes: [createNode("wait", "core.delay", { delayMs: 5_000 })] });
  const gated = createWorkflow("gated", {
    nodes: [createNode("gate", "core.approvalGate"), createNode("wait", "core.delay", { delayMs: 800 })],
    edges: [createEdge("gate>wait")],
  });

  test("is breached when it is exceeded, not when it is reached", async () => {
    const scene = createWorkflowScene({ definitions: [delay] });
    const runId = await scene.run("delay", { configurable: { runTimeoutMs: 1_000 } });
    await scene.clock.advance(1_000);
    expect(await scene.status(runId)).toBe("running");
    await scene.clock.advance(1);
    expect(findBreach(scene, runId)).toEqual({ kind: "run-duration", limit: 1_000, observed: 1_001 });
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "run_timeout" } });
    expect(scene.types(runId).slice(-3)).toEqual(["cap.breached", "node.cancelled", "run.failed"]);
  });

  test("is the workflow's own where that is stricter, and the host's else", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("strict", { nodes: delay.nodes, settings: { timeout: 300 } }),
        createWorkflow("wide", { nodes: delay.nodes, settings: { timeout: 3_600_000 } }),
        delay,
      ],
      settings: { runDurationMsMax: 700 },
    });
    const runIds = [await scene.run("strict"), await scene.run("wide"), await scene.run("delay")];
    await scene.clock.advance(1_000);
    expect(runIds.map((runId) => findBreach(scene, runId))).toMatchObject(
      [300, 700, 700].map((limit) => ({ limit, observed: limit + 1 })),
    );
  });

  test("does not run while a person is waited for, and goes on behind", async () => {
    const scene = createWorkflowScene({ definitions: [gated] });
    const runId = await scene.run("gated", { configurable: { runTimeoutMs: 1_000 } });
    await scene.clock.advance(3_600_000);
    expect(await scene.status(runId)).toBe("waiting-approval");
    await scene.answer(runId, "gate", { action: "accept" });
    await scene.clock.advance(800);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("does not run while the run is paused", async () => {
    const scene = createWorkflowScene({ definitions: [delay] });
    const runId = await scene.run("delay", { configurable: { runTimeoutMs: 6_000 } });
    await scene.clock.advance(500);
    await scene.host.pause(ALICE, runId, { drainPolicy: "immediate" });
    await scene.clock.advance(3_600_000);
    await scene.host.resume(ALICE, runId);
    await scene.clock.advance(5_001);
    expect(await scene.status(runId)).toBe("completed");
  });

  test.each([0, -1, 1.5, "1000", 600_001])(
    "of %o is refused when the run is asked for",
    async (runTimeoutMs) => {
      const scene = createWorkflowScene({ definitions: [delay] });
      const created = await scene.host.create(ALICE, {
        workflowId: "delay",
        inputs: {},
        transport: "rest",
        configurable: { runTimeoutMs },
      });
      expect(codeOf(created)).toBe("validation_error");
      expect(scene.ledger.runs.size).toBe(0);
    },
  );
});

describe("the limit of the loop", () => {
  const endless = createSupervised(
    "endless",
    Array.from({ length: 20 }, () => sendNextWorker("worker-a")),
  );

  test("refuses turn N + 1, and no decision is recorded for it", async () => {
    const scene = createWorkflowScene({ definitions: [endless, createWorker("worker-a")] });
    const runId = await scene.run("endless", { configurable: { maxLoopIterations: 3 } });
    expect(findBreach(scene, runId)).toEqual({
      kind: "loop-iterations",
      limit: 3,
      observed: 4,
      nodeId: "supervisor",
    });
    expect(scene.payloads(runId, "runOrchestrator.decided")).toHaveLength(3);
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "loop_limit_exceeded" } });
  });

  test("is the host's where the caller asks for more, and is not that of loopbacks", async () => {
    const scene = createWorkflowScene({
      definitions: [endless, createWorker("worker-a")],
      settings: { loopIterationsMax: 9 },
    });
    const runId = await scene.run("endless", { configurable: { maxLoopIterations: 50 } });
    expect(findBreach(scene, runId)).toMatchObject({ limit: 9, observed: 10 });
  });

  test("counts for each run by itself", async () => {
    const inner = createSupervised("inner", [sendNextWorker("worker-a"), sendNextWorker("worker-a")]);
    const outer = createSupervised("outer", [sendNextWorker("inner"), sendNextWorker("inner")]);
    const scene = createWorkflowScene({
      definitions: [inner, outer, createWorker("worker-a")],
      settings: { loopIterationsMax: 3 },
    });
    expect(await scene.status(await scene.run("outer"))).toBe("completed");
  });
});
