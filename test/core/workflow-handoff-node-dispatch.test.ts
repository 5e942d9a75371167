/** Owns: the dispatch node: which worker of the newest decision it hands work to, and by which names of variables. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { OrchestratorDecision } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  NodeStep,
  NodeView,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { dispatch } from "../../src/agents/coordination/workflow/nodes/dispatch.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  InterruptAnswer,
  Handoff,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createHandoff, createView, type Scene } from "./workflow-node-view-scene.ts";
import { chain, createNode } from "../support/workflow-definitions.ts";
import { createAsking, createGraph, RUN, withDecision } from "./workflow-view-scene.ts";

/** The event of the newest decision. */
const DECIDED = createEventId(RUN, 5);

/** A dispatch that was started after the decision. */
function createDispatch(decision: OrchestratorDecision, scene: Scene = {}): NodeView {
  return createView({
    ...scene,
    run: { ...withDecision(decision), ...scene.run },
    nodeRun: { enteredSequence: 6, ...scene.nodeRun },
  });
}

function stepAfter(decision: OrchestratorDecision, scene: Scene = {}): NodeStep {
  return dispatch.step(createDispatch(decision, scene));
}

function sendTo(...nextWorkerIds: string[]): OrchestratorDecision {
  return { kind: "next-worker", nextWorkerIds };
}

function createBegan(workerId: string): NodeStep {
  return {
    kind: "record",
    drafts: [
      {
        nodeId: "a",
        type: "core.workflowChain.event",
        causationId: DECIDED,
        payload: { phase: "dispatch.began", workerId, parentRunId: RUN },
      },
    ],
  };
}

describe("a dispatch", () => {
  it("says what is wrong with its gate", () => {
    const { node, graph, settings } = createView({ config: { verifier: { agentId: "x" } } });
    expect(dispatch.check?.(node, graph, settings)).toEqual([
      expect.stringMatching(/^node a: verifier\.agentId: /) as string,
    ]);
  });

  it("fails where nothing is decided", () => {
    expect(dispatch.step(createView())).toStrictEqual({
      kind: "fail",
      error: {
        code: "no_pending_decision",
        message: "no supervisor has decided anything that could be dispatched",
      },
    });
  });

  it("completes where the supervisor ends the run, or names nobody", () => {
    expect(stepAfter({ kind: "terminate" })).toStrictEqual({ kind: "complete", outputs: {} });
    expect(stepAfter(sendTo())).toStrictEqual({ kind: "complete", outputs: {} });
  });

  it("follows the nearest supervisor before it, as of when it was started", () => {
    const nodes = [
      createNode("far", "core.orchestrator.supervisor"),
      createNode("near", "core.orchestrator.supervisor"),
      ...["between", "a"].map((id) => createNode(id)),
    ];
    const graph = createGraph({ nodes, edges: chain("far>near>between>a>between") });
    const decisions = [
      ["near", "early"],
      ["near", "right"],
      ["far", "other"],
      ["near", "late"],
    ].map(([nodeId = "", workerId = ""], index) => {
      const sequence = index + 2;
      return { nodeId, decision: sendTo(workerId), eventId: createEventId(RUN, sequence), sequence };
    });
    const [last, ...earlier] = decisions.toReversed();
    const orchestrator = { decided: 4, revisions: 0, earlier: earlier.toReversed(), ...(last && { last }) };
    const view = createView({ run: { orchestrator }, nodeRun: { enteredSequence: 5 } });
    expect(dispatch.step({ ...view, graph })).toMatchObject({
      drafts: [{ causationId: createEventId(RUN, 3), payload: { workerId: "right" } }],
    });
  });

  it("has nothing to settle where no work is handed over", () => {
    const outcome = { kind: "child_created", childRunId: "child-1" } as const;
    expect(settle(createView(), outcome)).toEqual([]);
  });
});

describe("a question of the supervisor", () => {
  const ASK: OrchestratorDecision = { kind: "ask-user", prompt: "Which color?" };

  function createAnswer(resumeValue: unknown): InterruptAnswer {
    const eventId = createEventId(RUN, 6);
    return { interruptId: "i", kind: "clarification", resumeValue, eventId, asked: { data: {} } };
  }

  it("is asked, and waited for", () => {
    expect(stepAfter(ASK)).toStrictEqual({
      kind: "suspend",
      interrupt: { kind: "clarification", data: { questions: [{ id: "q1", question: "Which color?" }] } },
    });
    const { interrupt } = createAsking("a", { kind: "clarification" });
    expect(stepAfter(ASK, { nodeRun: interrupt ? { interrupt } : {} })).toStrictEqual({ kind: "wait" });
  });

  it.each<[title: string, values: readonly unknown[], answers: Values]>([
    ["of the newest answer", [{ answers: { q1: "red" } }, { answers: { q1: "blue" } }], { q1: "blue" }],
    ["that are none where the answer has none", [{ note: "later" }], {}],
    ["that are none where the answer is no object", [null], {}],
  ])("is answered with the words %s", (_title, values, answers) => {
    const nodeRun = { answers: values.map(createAnswer) };
    expect(stepAfter(ASK, { nodeRun })).toStrictEqual({ kind: "complete", outputs: { answers } });
  });
});

describe("the workers of a decision", () => {
  function stepWith(handoff: Partial<Handoff>, scene: Scene = {}): NodeStep {
    return stepAfter(sendTo("writer", "reader"), { ...scene, nodeRun: { handoff: createHandoff(handoff) } });
  }

  it("are sent one after the other", () => {
    expect(stepAfter(sendTo("writer", "reader"))).toStrictEqual(createBegan("writer"));
    expect(stepWith({ phase: "running" })).toMatchObject({ kind: "act", effect: { workflowId: "writer" } });
    expect(stepWith({ phase: "harvested" })).toStrictEqual(createBegan("reader"));
  });

  it("are over with the last one, of which the node tells", () => {
    expect(
      stepWith({
        phase: "harvested",
        index: 1,
        childRunId: "child-2",
        childStatus: "completed",
        gaveUp: true,
      }),
    ).toStrictEqual({
      kind: "complete",
      outputs: { childRunId: "child-2", childStatus: "completed", childGoalSatisfied: false },
    });
    expect(stepWith({ phase: "harvested", index: 1 })).toStrictEqual({ kind: "complete", outputs: {} });
  });

  it("are at most one where the node refuses several", () => {
    const config = { fanOutPolicy: "reject" };
    expect(stepAfter(sendTo("writer", "reader"), { config })).toStrictEqual({
      kind: "fail",
      error: {
        code: "fan_out_unsupported",
        message: "the decision names several workers, and fanOutPolicy is reject",
      },
    });
    expect(stepAfter(sendTo("writer"), { config })).toStrictEqual(createBegan("writer"));
  });

  it("may be several where the policy is another one", () => {
    const config = { fanOutPolicy: "sequential" };
    expect(stepAfter(sendTo("writer", "reader"), { config })).toStrictEqual(createBegan("writer"));
  });
});

describe("what a dispatch hands over", () => {
  const COMMON = { inputMapping: { topic: "common" }, outputMapping: { common: "result" } };

  function createRunning(config: Values, workerId: string): NodeView {
    const handoff = createHandoff({ workerId, index: 1, childRunId: "child-1" });
    const started = { inputs: { common: "c", special: "s" } };
    return createDispatch(sendTo("first", workerId), {
      config,
      started,
      nodeRun: { handoff, executions: 3 },
    });
  }

  it.each<[title: string, perWorker: unknown, workerId: string, topic: Values]>([
    ["the worker's own", { writer: { subject: "special" } }, "writer", { subject: "s" }],
    ["nothing where the worker's own is no mapping", { writer: "all" }, "writer", {}],
    [
      "the common one where the worker has none",
      { reader: { subject: "special" } },
      "writer",
      { topic: "c" },
    ],
    ["the common one where that of the worker is not set", { writer: undefined }, "writer", { topic: "c" }],
    ["the common one where there is none by workers", undefined, "writer", { topic: "c" }],
    ["the common one for a worker whose name every object has", {}, "constructor", { topic: "c" }],
  ])("is %s", (_title, perWorkerInputMappings, workerId, inputs) => {
    const view = createRunning({ ...COMMON, perWorkerInputMappings }, workerId);
    expect(dispatch.step(view)).toMatchObject({
      kind: "act",
      effect: { cause: "core.dispatch", ordinal: "a:3:1", workflowId: workerId },
    });
    expect(dispatch.step(view)).toHaveProperty("effect.inputs", inputs);
  });

  it.each<[title: string, config: Values, name: string]>([
    ["by the common names", COMMON, "common"],
    [
      "by the worker's names",
      { ...COMMON, perWorkerOutputMappings: { writer: { special: "result" } } },
      "special",
    ],
  ])("comes back %s", (_title, config, name) => {
    const outcome = { kind: "child_ended", status: "completed", variables: { result: "r" } } as const;
    expect(settle(createRunning(config, "writer"), outcome)).toMatchObject([
      { payload: { phase: "child.completed" } },
      { type: "variable.changed", payload: { name, next: "r" } },
      { payload: { phase: "output.harvested", harvestedKeys: [name] } },
    ]);
  });

  it("follows from the decision, where there is one", () => {
    const outcome = { kind: "child_created", childRunId: "child-1" } as const;
    const nodeRun = { handoff: createHandoff({ phase: "dispatching" }) };
    const decided = settle(createDispatch(sendTo("writer"), { nodeRun }), outcome);
    expect(decided[0]).toMatchObject({ type: "node.dispatched", causationId: DECIDED });
    const [undecided] = settle(createView({ nodeRun }), outcome);
    expect(undecided).not.toHaveProperty("causationId");
  });
});

function settle(view: NodeView, outcome: EffectOutcome) {
  return dispatch.settle?.(view, { kind: "cause_side_effect", id: "e", nodeId: "a" }, outcome) ?? [];
}
