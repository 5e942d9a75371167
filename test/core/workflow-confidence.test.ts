import { describe, expect, test } from "vitest";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import {
  codeOf,
  createWorkflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const UNSURE = { ...sendNextWorker("worker-a"), confidence: 0.3 };
const FIRST = { ...sendNextWorker("worker-a"), confidence: 0.9 };

function createScene(plan: readonly unknown[], options: SceneOptions = {}): WorkflowScene {
  return createWorkflowScene({
    definitions: [createSupervised("loop", plan), createWorker("worker-a"), createWorker("worker-b")],
    ...options,
  });
}

function from(types: readonly string[], first: string): readonly string[] {
  return types.slice(types.indexOf(first));
}

describe("a decision below the floor", () => {
  test("is escalated, suspends, interrupts, and is decided and dispatched only after it was agreed to", async () => {
    const scene = createScene([UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "waiting-approval",
      currentNodeId: "supervisor",
      interrupt: { kind: "approval" },
    });
    expect(scene.types(runId)).toEqual([
      "run.started",
      "node.started",
      "core.workflowChain.confidence-escalated",
      "node.suspended",
      "interrupt.requested",
    ]);
    await scene.answer(runId, "supervisor", { action: "accept" });
    expect(from(scene.types(runId), "interrupt.resolved").slice(0, 5)).toEqual([
      "interrupt.resolved",
      "runOrchestrator.decided",
      "node.completed",
      "node.started",
      "core.workflowChain.event",
    ]);
    expect(await scene.status(runId)).toBe("completed");
  });

  test("says how sure the supervisor was, and of what", async () => {
    const scene = createScene([UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    const escalated = scene.events(runId).find(({ type }) => type.endsWith("confidence-escalated"));
    expect(escalated?.payload).toEqual({
      confidence: 0.3,
      floor: 0.5,
      escalationKind: "escalate",
      parentRunId: runId,
      workerId: "worker-a",
      originalDecision: UNSURE,
    });
    expect(escalated).not.toHaveProperty("causationId");
  });

  test("is decided exactly once, as the decision of the same iteration", async () => {
    const scene = createScene([FIRST, UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    expect(scene.payloads(runId, "runOrchestrator.decided")).toHaveLength(1);
    await scene.answer(runId, "supervisor", { action: "accept" });
    const decided = scene.payloads(runId, "runOrchestrator.decided");
    expect(decided.map(({ iteration }) => iteration)).toEqual([1, 2, 3]);
    expect(decided[1]?.decision).toEqual(UNSURE);
    expect(scene.payloads(runId, "node.dispatched")).toHaveLength(2);
    expect(scene.payloads(runId, "core.workflowChain.confidence-escalated")).toHaveLength(1);
  });

  test("is held as well when it would end the run, and names no worker then", async () => {
    const scene = createScene([{ kind: "terminate", confidence: 0.1 }]);
    const runId = await scene.run("loop");
    expect(await scene.status(runId)).toBe("waiting-approval");
    expect(scene.types(runId)).not.toContain("runOrchestrator.decided");
    expect(scene.payloads(runId, "core.workflowChain.confidence-escalated")[0]).not.toHaveProperty(
      "workerId",
    );
    await scene.answer(runId, "supervisor", { action: "accept" });
    expect(from(scene.types(runId), "interrupt.resolved")).toEqual([
      "interrupt.resolved",
      "node.completed",
      "runOrchestrator.decided",
      "run.completed",
    ]);
  });

  test.each([
    ["at the floor", { ...UNSURE, confidence: 0.5 }],
    ["stating nothing", sendNextWorker("worker-a")],
    ["asking the user", { kind: "ask-user", prompt: "?" }],
  ])("%s is none, and is not held", async (_, decision) => {
    const scene = createScene([decision, TERMINATE]);
    const runId = await scene.run("loop");
    expect(scene.types(runId)).not.toContain("core.workflowChain.confidence-escalated");
    expect(scene.types(runId)).toContain("runOrchestrator.decided");
  });

  test("is measured by the operator's stricter floor", async () => {
    const scene = createScene([{ ...UNSURE, confidence: 0.6 }, TERMINATE], {
      settings: { confidenceFloor: 0.8 },
    });
    const runId = await scene.run("loop");
    expect(scene.payloads(runId, "core.workflowChain.confidence-escalated")[0]).toMatchObject({
      confidence: 0.6,
      floor: 0.8,
    });
  });

  test("that was rejected is never executed", async () => {
    const scene = createScene([UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    await scene.answer(runId, "supervisor", { action: "reject" });
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "decision_rejected" },
    });
    expect(scene.types(runId)).not.toContain("runOrchestrator.decided");
    expect(scene.types(runId)).not.toContain("node.dispatched");
  });

  test("that was rejected is not tried again by retries of the workflow", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createSupervised("loop", [UNSURE], { settings: { maxRetries: 3 } }),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("loop");
    await scene.answer(runId, "supervisor", { action: "reject" });
    expect(await scene.status(runId)).toBe("failed");
    expect(scene.payloads(runId, "core.workflowChain.confidence-escalated")).toHaveLength(1);
  });

  test("that was edited is executed as it was edited", async () => {
    const scene = createScene([UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    await scene.answer(runId, "supervisor", {
      action: "edit-accept",
      editedArtifactData: sendNextWorker("worker-b"),
    });
    const [first] = scene.payloads(runId, "runOrchestrator.decided");
    expect(first).toMatchObject({ iteration: 1, decision: sendNextWorker("worker-b") });
    expect(scene.payloads(runId, "node.dispatched").map(({ childWorkflowId }) => childWorkflowId)).toEqual([
      "worker-b",
    ]);
  });

  test("is not executed in its original form when the edit is no decision", async () => {
    const scene = createScene([UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    const answered = await scene.answer(runId, "supervisor", {
      action: "edit-accept",
      editedArtifactData: { kind: "next-worker", nextWorkerIds: "worker-b" },
    });
    expect(codeOf(answered)).toBe("validation_error");
    expect(await scene.status(runId)).toBe("waiting-approval");
    expect(scene.types(runId)).not.toContain("runOrchestrator.decided");
  });

  test("that was rejected where an edge takes the failure is asked anew, with an escalation of its own", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("again", {
          nodes: [
            createNode("s", "core.orchestrator.supervisor", { mockDispatchPlan: [UNSURE, TERMINATE] }),
            createNode("d", "core.dispatch"),
            createNode("think"),
          ],
          edges: [
            createEdge("s>d"),
            createEdge("d>s", { triggerRule: "any_success" }),
            createEdge("s>think", { triggerRule: "any_failed" }),
            createEdge("think>s", { triggerRule: "any_success" }),
          ],
        }),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("again");
    await scene.answer(runId, "s", { action: "reject" });
    expect(await scene.status(runId)).toBe("waiting-approval");
    const kinds = scene.types(runId).filter((type) => /escalated|suspended|decided/.test(type));
    expect(kinds).toEqual([
      "core.workflowChain.confidence-escalated",
      "node.suspended",
      "core.workflowChain.confidence-escalated",
      "node.suspended",
    ]);
    await scene.answer(runId, "s", { action: "accept" });
    expect(scene.payloads(runId, "runOrchestrator.decided").map(({ iteration }) => iteration)).toEqual([
      1, 2,
    ]);
  });

  test("is answered once: the second answer is told so", async () => {
    const scene = createScene([UNSURE, TERMINATE]);
    const runId = await scene.run("loop");
    await scene.answer(runId, "supervisor", { action: "accept" });
    expect(codeOf(await scene.answer(runId, "supervisor", { action: "reject" }))).toBe(
      "interrupt_already_resolved",
    );
  });
});

describe("an agent's own confidence", () => {
  const createAgent = (mockConfidence: number) =>
    createWorkflow("agent", {
      nodes: [
        createNode("a", "core.conformance.mock-agent", { agentId: "doubter", mockConfidence }),
        createNode("b"),
      ],
      edges: [createEdge("a>b")],
    });

  test.each([
    [0.69, {}, "waiting-approval"],
    [0.7, {}, "completed"],
    [0.69, { escalationThreshold: 0.6 }, "completed"],
    [0.8, { escalationThreshold: 0.9 }, "waiting-approval"],
  ])("of %d with %o leaves the run %s", async (confidence, configurable, status) => {
    const scene = createWorkflowScene({ definitions: [createAgent(confidence)] });
    expect(await scene.status(await scene.run("agent", { configurable }))).toBe(status);
  });

  test("below the threshold says who doubts and how much, and goes on when somebody agrees", async () => {
    const scene = createWorkflowScene({ definitions: [createAgent(0.4)] });
    const runId = await scene.run("agent");
    expect(scene.payloads(runId, "node.suspended")[0]).toMatchObject({
      reason: "low-confidence",
      agentId: "doubter",
      threshold: 0.7,
      observed: 0.4,
    });
    await scene.answer(runId, "a", { action: "accept" });
    expect(await scene.status(runId)).toBe("completed");
  });

  test.each([{ action: "reject" }, { decision: "rejected" }])("is not accepted by %o", async (answer) => {
    const scene = createWorkflowScene({ definitions: [createAgent(0.4)] });
    const runId = await scene.run("agent");
    await scene.answer(runId, "a", answer);
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "low_confidence_rejected" },
    });
  });

  test("holds a supervisor's first decision, which is not held again once it was agreed to", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("conservative", {
          nodes: [
            createNode("s", "core.orchestrator.supervisor", {
              mockConfidence: 0.5,
              mockPendingDecision: sendNextWorker("worker-a"),
            }),
            createNode("d", "core.dispatch"),
          ],
          edges: [createEdge("s>d"), createEdge("d>s")],
        }),
        createWorker("worker-a"),
      ],
    });
    const runId = await scene.run("conservative");
    expect(scene.types(runId)).not.toContain("runOrchestrator.decided");
    expect(scene.types(runId)).not.toContain("core.workflowChain.confidence-escalated");
    expect(scene.payloads(runId, "node.suspended")[0]).toMatchObject({ reason: "low-confidence" });
    await scene.answer(runId, "s", { action: "accept" });
    expect(scene.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision.kind)).toEqual([
      "next-worker",
      "terminate",
    ]);
    expect(await scene.status(runId)).toBe("completed");
  });
});
