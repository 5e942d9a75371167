import { describe, expect, it } from "vitest";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import { isFact, type FactDraft, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { loadOpenWopSchemas } from "./openwop-schemas.ts";
import {
  acknowledge,
  timeAt,
  nameChild,
  complete,
  fail,
  openScene,
  OPEN,
  SETTLE,
  spawn,
  stepId,
  timeOut,
  type Scene,
} from "./scene.ts";

const openWop = loadOpenWopSchemas();

/** The OpenWOP events behind the newest fact of a type, as far as they are its own. */
function listBehind(scene: Scene, type: RunEvent["type"]): RunEvent[] {
  const start = scene.log.findLastIndex((event) => event.type === type);
  const rest = scene.log.slice(start + 1);
  const end = rest.findIndex(isFact);
  return end === -1 ? rest : rest.slice(0, end);
}

const chain = (phase: string, more: object = {}): object => ({
  type: "core.workflowChain.event",
  nodeId: "step-1",
  payload: { phase, workerId: "step-1", parentRunId: "co-1", ...more },
});
const child = { childRunId: "run-of-1" };
const createError = (code: string, message = "it went wrong"): object => ({ error: { code, message } });
const running = [OPEN, spawn("a"), acknowledge(1)];

describe("the OpenWOP counterpart", () => {
  it.each([
    [
      "coordination.created",
      "run.started",
      openScene(OPEN),
      { type: "run.started", payload: { workflowId: "openclaw.observed-coordination" } },
    ],
    [
      "coordination.created",
      "run.started of a plan",
      openScene({ ...OPEN, origin: "plan" } as typeof OPEN),
      { payload: { workflowId: "openclaw.coordination-plan" } },
    ],
    [
      "step.admitted",
      "runOrchestrator.decided",
      openScene(OPEN, spawn("a")),
      {
        type: "runOrchestrator.decided",
        nodeId: "orchestrator",
        payload: {
          agentId: "agent:main",
          decision: { kind: "next-worker", nextWorkerIds: ["step-1"] },
          iteration: 1,
        },
      },
    ],
    ["step.dispatched", "dispatch.began", openScene(OPEN, spawn("a")), chain("dispatch.began")],
    ["step.acknowledged", "dispatch.succeeded", openScene(...running), chain("dispatch.succeeded", child)],
    [
      "step.completed",
      "child.completed",
      openScene(...running, complete(1)),
      chain("child.completed", child),
    ],
    [
      "step.failed",
      "child.failed",
      openScene(...running, fail(1)),
      chain("child.failed", { ...child, ...createError("child_failed") }),
    ],
    [
      "step.failed",
      "dispatch.failed before the acknowledgement",
      openScene(OPEN, spawn("a"), fail(1, "spawn_refused")),
      chain("dispatch.failed", createError("spawn_refused")),
    ],
    [
      "step.failed",
      "child.cancelled",
      openScene(...running, fail(1, "child_cancelled")),
      chain("child.cancelled", child),
    ],
    [
      "step.failed",
      "dispatch.failed for what was cancelled before the acknowledgement",
      openScene(OPEN, spawn("a"), fail(1, "child_cancelled")),
      chain("dispatch.failed", createError("child_cancelled")),
    ],
    [
      "step.timed_out",
      "child.failed with timed_out",
      openScene(...running, timeOut(1)),
      chain("child.failed", { ...child, ...createError("timed_out", "the step passed its deadline") }),
    ],
    [
      "step.timed_out",
      "dispatch.failed with timed_out before the acknowledgement",
      openScene(OPEN, spawn("a"), timeOut(1)),
      chain("dispatch.failed", createError("timed_out", "the step passed its deadline")),
    ],
    [
      "coordination.terminal",
      "run.completed of a success",
      openScene(...running, complete(1), SETTLE),
      { type: "run.completed", payload: { durationMs: 4_000 } },
    ],
    [
      "coordination.terminal",
      "run.completed of a partial success",
      openScene(...running, spawn("b"), complete(1), fail(2), SETTLE),
      { type: "run.completed" },
    ],
    [
      "coordination.terminal",
      "run.failed",
      openScene(...running, fail(1), SETTLE),
      { type: "run.failed", payload: createError("coordination_failed", "0 of 1 steps completed") },
    ],
    [
      "coordination.terminal",
      "run.cancelled",
      openScene(...running, fail(1, "child_cancelled"), SETTLE),
      { type: "run.cancelled" },
    ],
  ])("of %s is %s", (type, _, scene, expected) => {
    const events = listBehind(scene, type as RunEvent["type"]);
    expect(events).toEqual([expect.objectContaining({ runId: "co-1" })]);
    expect(events[0]).toMatchObject(expected);
    if ("payload" in expected && type.startsWith("step"))
      expect(events[0]?.payload).toEqual(expected.payload);
  });

  it("of an escalated coordination's end is run.failed", () => {
    const scene = openScene(...running, fail(1));
    const steps = { total: 1, completed: 0, failed: 1, timedOut: 0, cancelled: 0 };
    scene.happened([{ type: "coordination.terminal", payload: { status: "escalated", steps } }]);
    expect(listBehind(scene, "coordination.terminal")).toMatchObject([
      { type: "run.failed", payload: { error: { code: "coordination_escalated" } } },
    ]);
  });

  it("of a conflict is nothing", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"));
    scene.happened(conflict);
    expect(scene.log.slice(-2).map(({ type }) => type)).toEqual(["conflict.detected", "conflict.resolved"]);
  });

  it("counts the decisions of the orchestrator", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"), spawn("c"));
    const decided = scene.log.filter((event) => event.type === "runOrchestrator.decided");
    expect(decided.map(({ payload }) => payload.iteration)).toEqual([1, 2, 3]);
  });
});

const claims = [1, 2].map((number) => ({
  stepId: stepId(number),
  priority: "normal" as const,
  claimedSequence: number,
}));
const conflict: FactDraft[] = [
  { type: "conflict.detected", payload: { conflictId: "c-1", resource: "file:/a", claims } },
  {
    type: "conflict.resolved",
    payload: {
      conflictId: "c-1",
      strategy: "owner_wins",
      winner: stepId(1),
      losers: [stepId(2)],
      because: "first",
    },
  },
];

function createEscalation(change: Partial<FactPayloads["coordination.escalated"]>): FactDraft {
  return {
    type: "coordination.escalated",
    payload: {
      escalationId: "e-1",
      cause: "agent",
      kind: "clarification",
      deadlineAtMs: timeAt(60_000),
      ...change,
    },
  };
}

describe("the OpenWOP counterpart of an escalation", () => {
  const projectEscalated = (change: Partial<FactPayloads["coordination.escalated"]>): RunEvent[] => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    scene.happened([createEscalation(change)], 10_000);
    const events = listBehind(scene, "coordination.escalated");
    for (const event of events) expect(openWop.problemsOf(event)).toEqual([]);
    return events;
  };

  it("is a question and a suspended node", () => {
    expect(projectEscalated({})).toMatchObject([
      {
        type: "interrupt.requested",
        nodeId: "orchestrator",
        payload: {
          kind: "clarification",
          key: "e-1",
          data: { questions: [{ id: "e-1" }] },
          timeoutMs: 50_000,
        },
      },
      { type: "node.suspended", payload: { nodeId: "orchestrator", interruptId: "e-1" } },
    ]);
  });

  it("asks for an approval of the step that it is about", () => {
    expect(projectEscalated({ kind: "approval", cause: "verifier", stepId: stepId(1) })).toMatchObject([
      { nodeId: "step-1", payload: { data: { artifactId: "step-1", actions: ["accept", "reject"] } } },
      { type: "node.suspended", nodeId: "step-1" },
    ]);
  });

  it.each([
    ["approval", "escalate"],
    ["clarification", "clarify"],
  ] as const)("begins with the confidence that was too low, for %s as %s", (kind, escalationKind) => {
    const confidence = { measured: 4_200, floor: 5_000 };
    const [first, ...rest] = projectEscalated({ kind, cause: "confidence", stepId: stepId(1), confidence });
    expect(first).toMatchObject({
      type: "core.workflowChain.confidence-escalated",
      payload: { confidence: 0.42, floor: 0.5, escalationKind, workerId: "step-1", parentRunId: "co-1" },
    });
    expect(rest.map(({ type }) => type)).toEqual(["interrupt.requested", "node.suspended"]);
  });

  it("says no confidence where another thing was the cause or none was measured", () => {
    expect(projectEscalated({ cause: "agent", confidence: { measured: 1, floor: 5_000 } })).toHaveLength(2);
    expect(projectEscalated({ cause: "confidence" })).toHaveLength(2);
  });
});

describe("a whole log", () => {
  const scene = openScene(
    ...[
      OPEN,
      spawn("a"),
      acknowledge(1),
      spawn("b", { parentStepId: stepId(1), sourceSession: nameChild(1) }),
      acknowledge(2),
    ],
    ...[spawn("c"), spawn("d"), spawn("e"), acknowledge(5), spawn("f"), complete(2), complete(1)],
    ...[fail(3, "spawn_refused"), timeOut(4), fail(5, "child_cancelled"), fail(6)],
  );
  scene.happened(conflict);
  scene.happened([
    createEscalation({ cause: "confidence", kind: "approval", confidence: { measured: 1, floor: 9_000 } }),
  ]);
  scene.when({ type: "expireEscalation", escalationId: "e-1" }, 90_000);
  scene.when(SETTLE);

  it("has every fact in it", () => {
    expect(new Set(scene.log.filter(isFact).map(({ type }) => type)).size).toBe(12);
  });

  it.each(scene.log.map((event) => [event.sequence, event.type, event] as const))(
    "has a valid event at %i: %s",
    (_, __, event) => {
      expect(openWop.problemsOf(event)).toEqual([]);
    },
  );

  it("is told from an invalid one", () => {
    const [first] = scene.log;
    expect(() => openWop.problemsOf({ ...first!, sequence: -1 })).toThrow("sequence");
  });
});
