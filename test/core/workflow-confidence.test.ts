import { describe, expect, test } from "vitest";
import {
  edge,
  nextWorker,
  node,
  supervised,
  TERMINATE,
  worker,
  workflow,
} from "../support/workflow-definitions.ts";
import { codeOf, workflowScene, type SceneOptions, type WorkflowScene } from "../support/workflow-scene.ts";

const UNSURE = { ...nextWorker("worker-a"), confidence: 0.3 };
const FIRST = { ...nextWorker("worker-a"), confidence: 0.9 };

function scene(plan: readonly unknown[], options: SceneOptions = {}): WorkflowScene {
  return workflowScene({
    definitions: [supervised("loop", plan), worker("worker-a"), worker("worker-b")],
    ...options,
  });
}

function from(types: readonly string[], first: string): readonly string[] {
  return types.slice(types.indexOf(first));
}

describe("a decision below the floor", () => {
  test("is escalated, suspends, interrupts, and is decided and dispatched only after it was agreed to", async () => {
    const it = scene([UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    expect(await it.snapshot(runId)).toMatchObject({
      status: "waiting-approval",
      currentNodeId: "supervisor",
      interrupt: { kind: "approval" },
    });
    expect(it.types(runId)).toEqual([
      "run.started",
      "node.started",
      "core.workflowChain.confidence-escalated",
      "node.suspended",
      "interrupt.requested",
    ]);
    await it.answer(runId, "supervisor", { action: "accept" });
    expect(from(it.types(runId), "interrupt.resolved").slice(0, 5)).toEqual([
      "interrupt.resolved",
      "runOrchestrator.decided",
      "node.completed",
      "node.started",
      "core.workflowChain.event",
    ]);
    expect(await it.status(runId)).toBe("completed");
  });

  test("says how sure the supervisor was, and of what", async () => {
    const it = scene([UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    const escalated = it.events(runId).find(({ type }) => type.endsWith("confidence-escalated"));
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
    const it = scene([FIRST, UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    expect(it.payloads(runId, "runOrchestrator.decided")).toHaveLength(1);
    await it.answer(runId, "supervisor", { action: "accept" });
    const decided = it.payloads(runId, "runOrchestrator.decided");
    expect(decided.map(({ iteration }) => iteration)).toEqual([1, 2, 3]);
    expect(decided[1]?.decision).toEqual(UNSURE);
    expect(it.payloads(runId, "node.dispatched")).toHaveLength(2);
    expect(it.payloads(runId, "core.workflowChain.confidence-escalated")).toHaveLength(1);
  });

  test("is held as well when it would end the run, and names no worker then", async () => {
    const it = scene([{ kind: "terminate", confidence: 0.1 }]);
    const runId = await it.run("loop");
    expect(await it.status(runId)).toBe("waiting-approval");
    expect(it.types(runId)).not.toContain("runOrchestrator.decided");
    expect(it.payloads(runId, "core.workflowChain.confidence-escalated")[0]).not.toHaveProperty("workerId");
    await it.answer(runId, "supervisor", { action: "accept" });
    expect(from(it.types(runId), "interrupt.resolved")).toEqual([
      "interrupt.resolved",
      "node.completed",
      "runOrchestrator.decided",
      "run.completed",
    ]);
  });

  test.each([
    ["at the floor", { ...UNSURE, confidence: 0.5 }],
    ["stating nothing", nextWorker("worker-a")],
    ["asking the user", { kind: "ask-user", prompt: "?" }],
  ])("%s is none, and is not held", async (_, decision) => {
    const it = scene([decision, TERMINATE]);
    const runId = await it.run("loop");
    expect(it.types(runId)).not.toContain("core.workflowChain.confidence-escalated");
    expect(it.types(runId)).toContain("runOrchestrator.decided");
  });

  test("is measured by the operator's stricter floor", async () => {
    const it = scene([{ ...UNSURE, confidence: 0.6 }, TERMINATE], { settings: { confidenceFloor: 0.8 } });
    const runId = await it.run("loop");
    expect(it.payloads(runId, "core.workflowChain.confidence-escalated")[0]).toMatchObject({
      confidence: 0.6,
      floor: 0.8,
    });
  });

  test("that was rejected is never executed", async () => {
    const it = scene([UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    await it.answer(runId, "supervisor", { action: "reject" });
    expect(await it.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "decision_rejected" },
    });
    expect(it.types(runId)).not.toContain("runOrchestrator.decided");
    expect(it.types(runId)).not.toContain("node.dispatched");
  });

  test("that was rejected is not tried again by retries of the workflow", async () => {
    const it = workflowScene({
      definitions: [supervised("loop", [UNSURE], { settings: { maxRetries: 3 } }), worker("worker-a")],
    });
    const runId = await it.run("loop");
    await it.answer(runId, "supervisor", { action: "reject" });
    expect(await it.status(runId)).toBe("failed");
    expect(it.payloads(runId, "core.workflowChain.confidence-escalated")).toHaveLength(1);
  });

  test("that was edited is executed as it was edited", async () => {
    const it = scene([UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    await it.answer(runId, "supervisor", {
      action: "edit-accept",
      editedArtifactData: nextWorker("worker-b"),
    });
    const [first] = it.payloads(runId, "runOrchestrator.decided");
    expect(first).toMatchObject({ iteration: 1, decision: nextWorker("worker-b") });
    expect(it.payloads(runId, "node.dispatched").map(({ childWorkflowId }) => childWorkflowId)).toEqual([
      "worker-b",
    ]);
  });

  test("is not executed in its original form when the edit is no decision", async () => {
    const it = scene([UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    const answered = await it.answer(runId, "supervisor", {
      action: "edit-accept",
      editedArtifactData: { kind: "next-worker", nextWorkerIds: "worker-b" },
    });
    expect(codeOf(answered)).toBe("validation_error");
    expect(await it.status(runId)).toBe("waiting-approval");
    expect(it.types(runId)).not.toContain("runOrchestrator.decided");
  });

  test("that was rejected where an edge takes the failure is asked anew, with an escalation of its own", async () => {
    const it = workflowScene({
      definitions: [
        workflow("again", {
          nodes: [
            node("s", "core.orchestrator.supervisor", { mockDispatchPlan: [UNSURE, TERMINATE] }),
            node("d", "core.dispatch"),
            node("think"),
          ],
          edges: [
            edge("s>d"),
            edge("d>s", { triggerRule: "any_success" }),
            edge("s>think", { triggerRule: "any_failed" }),
            edge("think>s", { triggerRule: "any_success" }),
          ],
        }),
        worker("worker-a"),
      ],
    });
    const runId = await it.run("again");
    await it.answer(runId, "s", { action: "reject" });
    expect(await it.status(runId)).toBe("waiting-approval");
    const kinds = it.types(runId).filter((type) => /escalated|suspended|decided/.test(type));
    expect(kinds).toEqual([
      "core.workflowChain.confidence-escalated",
      "node.suspended",
      "core.workflowChain.confidence-escalated",
      "node.suspended",
    ]);
    await it.answer(runId, "s", { action: "accept" });
    expect(it.payloads(runId, "runOrchestrator.decided").map(({ iteration }) => iteration)).toEqual([1, 2]);
  });

  test("is answered once: the second answer is told so", async () => {
    const it = scene([UNSURE, TERMINATE]);
    const runId = await it.run("loop");
    await it.answer(runId, "supervisor", { action: "accept" });
    expect(codeOf(await it.answer(runId, "supervisor", { action: "reject" }))).toBe(
      "interrupt_already_resolved",
    );
  });
});

describe("an agent's own confidence", () => {
  const agent = (mockConfidence: number) =>
    workflow("agent", {
      nodes: [node("a", "core.conformance.mock-agent", { agentId: "doubter", mockConfidence }), node("b")],
      edges: [edge("a>b")],
    });

  test.each([
    [0.69, {}, "waiting-approval"],
    [0.7, {}, "completed"],
    [0.69, { escalationThreshold: 0.6 }, "completed"],
    [0.8, { escalationThreshold: 0.9 }, "waiting-approval"],
  ])("of %d with %o leaves the run %s", async (confidence, configurable, status) => {
    const it = workflowScene({ definitions: [agent(confidence)] });
    expect(await it.status(await it.run("agent", { configurable }))).toBe(status);
  });

  test("below the threshold says who doubts and how much, and goes on when somebody agrees", async () => {
    const it = workflowScene({ definitions: [agent(0.4)] });
    const runId = await it.run("agent");
    expect(it.payloads(runId, "node.suspended")[0]).toMatchObject({
      reason: "low-confidence",
      agentId: "doubter",
      threshold: 0.7,
      observed: 0.4,
    });
    await it.answer(runId, "a", { action: "accept" });
    expect(await it.status(runId)).toBe("completed");
  });

  test.each([{ action: "reject" }, { decision: "rejected" }])("is not accepted by %o", async (answer) => {
    const it = workflowScene({ definitions: [agent(0.4)] });
    const runId = await it.run("agent");
    await it.answer(runId, "a", answer);
    expect(await it.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "low_confidence_rejected" },
    });
  });

  test("holds a supervisor's first decision, which is not held again once it was agreed to", async () => {
    const it = workflowScene({
      definitions: [
        workflow("conservative", {
          nodes: [
            node("s", "core.orchestrator.supervisor", {
              mockConfidence: 0.5,
              mockPendingDecision: nextWorker("worker-a"),
            }),
            node("d", "core.dispatch"),
          ],
          edges: [edge("s>d"), edge("d>s")],
        }),
        worker("worker-a"),
      ],
    });
    const runId = await it.run("conservative");
    expect(it.types(runId)).not.toContain("runOrchestrator.decided");
    expect(it.types(runId)).not.toContain("core.workflowChain.confidence-escalated");
    expect(it.payloads(runId, "node.suspended")[0]).toMatchObject({ reason: "low-confidence" });
    await it.answer(runId, "s", { action: "accept" });
    expect(it.payloads(runId, "runOrchestrator.decided").map(({ decision }) => decision.kind)).toEqual([
      "next-worker",
      "terminate",
    ]);
    expect(await it.status(runId)).toBe("completed");
  });
});
