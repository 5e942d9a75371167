/** Owns: a run within a run as a node: what is wrong with its configuration, its child, and how it ends with or without a gate. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  EffectOutcome,
  NodeEffect,
  NodeStep,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { subWorkflow } from "../../src/agents/coordination/workflow/nodes/sub-workflow.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  InterruptAnswer,
  Handoff,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  createHandoff,
  createJudged,
  createPlay,
  createView,
  type Scene,
} from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

const NAMED: Values = { workflowId: "writer" };
const VERIFIED: Values = { ...NAMED, verifier: { agentId: "acme.critic" } };
/** A gate behind which nothing is asked for. */
const OPEN: Values = { ...NAMED, outputAttestation: {} };
const STARTED = createEventId(RUN, 1);
const ERROR = { code: "broken", message: "it broke" };
const CHILD = { childRunId: "child-1" };
const EFFECT: NodeEffect = { kind: "cause_side_effect", id: "a:1", nodeId: "a" };

const step = (scene: Scene): NodeStep => subWorkflow.step(createView(scene));
const settle = (scene: Scene, outcome: EffectOutcome) =>
  subWorkflow.settle?.(createView(scene), EFFECT, outcome);
const withHandoff = (change: Partial<Handoff> = {}): Pick<Scene, "nodeRun"> => ({
  nodeRun: { handoff: createHandoff(change) },
});

describe("the configuration of a run within a run", () => {
  function check(config: Values, settings: Scene["settings"] = {}) {
    const view = createView({ config, settings });
    return subWorkflow.check?.(view.node, view.graph, view.settings);
  }

  it.each<[title: string, config: Values]>([
    ["names a workflow", NAMED],
    ["does not wait for its child", { ...NAMED, waitForCompletion: false }],
    ["has its child verified", VERIFIED],
    ["waits for the child that is verified", { ...VERIFIED, waitForCompletion: true }],
  ])("is right where it %s", (_title, config) => {
    expect(check(config)).toStrictEqual([]);
  });

  it.each<[title: string, config: Values]>([
    ["nothing", {}],
    ["the empty text", { workflowId: "" }],
    ["no text", { workflowId: 5 }],
  ])("names no workflow where it says %s", (_title, config) => {
    expect(check(config)).toStrictEqual(["node a names no workflow in its configuration (workflowId)"]);
  });

  it.each<[title: string, gate: Values]>([
    ["a verifier", VERIFIED],
    ["an attestation", OPEN],
  ])("does not go with %s where the child is not waited for", (_title, gate) => {
    expect(check({ ...gate, waitForCompletion: false })).toStrictEqual([
      "node a does not wait for its child: nothing of it can be verified",
    ]);
  });

  it("tells what is wrong with its gate", () => {
    const problems = check({ ...NAMED, verifier: {} });
    expect(problems).toHaveLength(1);
    expect(problems?.[0]).toMatch(/^node a: .*verifier/);
  });

  it("tells a critic's criteria without a form apart from those of a script", () => {
    const config = { ...NAMED, verifier: { agentId: "acme.critic", criteria: ["no key at all"] } };
    expect(check(config)).toHaveLength(1);
    expect(check(config, { play: createPlay({ isVerdictPlayed: () => true }) })).toStrictEqual([]);
  });
});

describe("the child of a node without a gate", () => {
  it("runs the workflow that is named, with the inputs that are mapped", () => {
    const config = { ...NAMED, inputMapping: { topic: "goal" } };
    const scene = { config, started: { inputs: { goal: "win" } }, nodeRun: { executions: 3 } };
    expect(step(scene)).toStrictEqual({
      kind: "act",
      effect: {
        kind: "run_child",
        id: "a:3",
        nodeId: "a",
        ordinal: "a:3",
        cause: "core.subWorkflow",
        workflowId: "writer",
        inputs: { topic: "win" },
        memoryScope: "w",
      },
    });
  });

  it.each<[title: string, config: Values]>([
    ["that says nothing of it", NAMED],
    ["that says so", { ...NAMED, waitForCompletion: true }],
  ])("is waited for by a node %s", (_title, config) => {
    expect(step({ config, ...withHandoff(CHILD) })).toMatchObject({
      kind: "act",
      effect: { kind: "run_child", childRunId: "child-1" },
    });
  });

  it("is no child yet where the handing over has not told of one", () => {
    const config = { ...NAMED, waitForCompletion: false };
    for (const scene of [{ config }, { config, ...withHandoff() }]) {
      expect(step(scene)).toMatchObject({
        kind: "act",
        effect: { kind: "run_child", workflowId: "writer", isLeftAlone: true },
      });
      expect(step(scene)).not.toHaveProperty("effect.childRunId");
    }
  });

  it("is left alone once it runs, where nobody waits for it", () => {
    const config = { ...NAMED, waitForCompletion: false };
    expect(step({ config, ...withHandoff(CHILD) })).toStrictEqual({
      kind: "complete",
      outputs: { childRunId: "child-1", childStatus: "running" },
    });
  });

  it("is on record when it is created, and once only", () => {
    const created: EffectOutcome = { kind: "child_created", childRunId: "child-1" };
    const dispatched = {
      type: "node.dispatched",
      nodeId: "a",
      payload: { childRunId: "child-1", childWorkflowId: "writer" },
    };
    expect(settle({ config: NAMED }, created)).toStrictEqual([dispatched]);
    expect(settle({ config: NAMED, ...withHandoff() }, created)).toStrictEqual([dispatched]);
    expect(settle({ config: NAMED, ...withHandoff(CHILD) }, created)).toStrictEqual([]);
  });

  it.each<EffectOutcome>([
    { kind: "child_refused", error: ERROR },
    { kind: "failed", error: ERROR },
  ])("fails the node where it never began: $kind", (outcome) => {
    const failed = { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: ERROR } };
    expect(settle({ config: { ...NAMED, onChildFailure: "absorb" } }, outcome)).toStrictEqual([failed]);
  });

  it("brings nothing by what is no outcome of a child", () => {
    expect(settle({ config: NAMED }, { kind: "side_effect_caused", effectId: "e" })).toStrictEqual([]);
  });
});

describe("the end of a child without a gate", () => {
  type ChildEndOutcome = EffectOutcome & { readonly kind: "child_ended" };

  function end(config: Values, change: Partial<ChildEndOutcome> = {}) {
    const outcome: ChildEndOutcome = {
      kind: "child_ended",
      status: "completed",
      variables: { result: 1 },
      ...change,
    };
    return settle({ config: { ...NAMED, ...config }, ...withHandoff(CHILD) }, outcome);
  }
  const complete = (outputs: Values) => ({
    type: "node.completed",
    nodeId: "a",
    payload: { nodeId: "a", outputs },
  });

  it("completes the node, behind the variables that are mapped", () => {
    expect(end({ outputMapping: { text: "result", other: "absent" } })).toStrictEqual([
      { type: "variable.changed", nodeId: "a", payload: { name: "text", next: 1, nodeId: "a" } },
      complete({ childRunId: "child-1", childStatus: "completed" }),
    ]);
  });

  it.each<[title: string, handoff: Partial<Handoff> | undefined]>([
    ["nothing was handed over", undefined],
    ["the handing over told of no child", {}],
  ])("names no child where %s", (_title, handoff) => {
    const view = { config: NAMED, ...(handoff && withHandoff(handoff)) };
    const outcome: ChildEndOutcome = {
      kind: "child_ended",
      status: "completed",
      variables: {},
      unmet: ["style"],
    };
    expect(settle(view, outcome)).toStrictEqual([complete({ childStatus: "completed" })]);
  });

  it("tells first that the child gave up, and then what it produced", () => {
    expect(end({ outputMapping: { text: "result" } }, { unmet: ["style"] })).toStrictEqual([
      {
        type: "coordination.child_gave_up",
        nodeId: "a",
        payload: { childRunId: "child-1", unmet: ["style"] },
      },
      { type: "variable.changed", nodeId: "a", payload: { name: "text", next: 1, nodeId: "a" } },
      complete({ childRunId: "child-1", childStatus: "completed", childGoalSatisfied: false }),
    ]);
  });

  it.each<
    [status: ChildEndOutcome["status"], error: typeof ERROR | undefined, code: string, message: string]
  >([
    ["failed", ERROR, "child_failed", "the child run failed: it broke"],
    ["failed", undefined, "child_failed", "the child run failed"],
    ["cancelled", undefined, "child_cancelled", "the child run was cancelled"],
  ])("fails the node where the child %s: %o", (status, error, code, message) => {
    const config = { outputMapping: { text: "result" }, onChildFailure: "fail" };
    expect(end(config, { status, ...(error && { error }) })).toStrictEqual([
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: { code, message } } },
    ]);
  });

  it.each(["absorb", "continue"])("completes the node without outputs of a failed child: %s", (word) => {
    const config = { outputMapping: { text: "result" }, onChildFailure: word };
    expect(end(config, { status: "failed", error: ERROR })).toStrictEqual([
      complete({ childRunId: "child-1", childStatus: "failed" }),
    ]);
  });
});

describe("the child of a node behind a gate", () => {
  const config = { ...VERIFIED, inputMapping: { topic: "goal" }, outputMapping: { text: "result" } };

  it("is handed over because the node began", () => {
    expect(step({ config })).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "core.workflowChain.event",
          nodeId: "a",
          causationId: STARTED,
          payload: { phase: "dispatch.began", workerId: "writer", parentRunId: RUN },
        },
      ],
    });
  });

  it("runs with the inputs that are mapped", () => {
    const nodeRun = { executions: 3, handoff: createHandoff({ phase: "dispatching" }) };
    expect(step({ config, nodeRun, started: { inputs: { goal: "win" } } })).toMatchObject({
      kind: "act",
      effect: { kind: "run_child", id: "a:3", cause: "core.subWorkflow", inputs: { topic: "win" } },
    });
  });

  it("is on record when it is created", () => {
    const created: EffectOutcome = { kind: "child_created", childRunId: "child-1" };
    expect(settle({ config, ...withHandoff({ phase: "dispatching" }) }, created)).toMatchObject([
      { type: "node.dispatched", causationId: STARTED, payload: { childRunId: "child-1" } },
      { type: "core.workflowChain.event", payload: { phase: "dispatch.succeeded" } },
    ]);
  });

  it("brings nothing before it is handed over", () => {
    expect(settle({ config }, { kind: "child_created", childRunId: "child-1" })).toStrictEqual([]);
  });

  it("is judged when it has completed, and merged where the gate lets it through", () => {
    const ended = withHandoff({ phase: "ended", childStatus: "completed", ...CHILD });
    const scene = { config: { ...OPEN, outputMapping: { text: "result" } }, ...ended };
    expect(step(scene)).toMatchObject({ kind: "act", effect: { kind: "judge_child", id: "a:1:judge" } });
    expect(settle(scene, createJudged({ variables: { result: 1 } }))).toMatchObject([
      { type: "variable.changed", payload: { name: "text", next: 1 } },
      { type: "core.workflowChain.event", payload: { phase: "output.harvested", harvestedKeys: ["text"] } },
    ]);
  });
});

describe("the end of a node behind a gate", () => {
  const createAnswer = (resumeValue: unknown): InterruptAnswer => ({
    interruptId: "a~1",
    kind: "approval",
    resumeValue,
    eventId: createEventId(RUN, 7),
    asked: { data: {} },
  });
  const end = (handoff: Partial<Handoff>, config: Values = OPEN): NodeStep =>
    step({ config, ...withHandoff({ phase: "ended", ...handoff }) });
  const FAIL = { agentId: "acme.critic", verdict: "fail" } as const;
  const COMPLETED = { ...CHILD, childStatus: "completed" } as const;

  it.each<[title: string, handoff: Partial<Handoff>, outputs: Values]>([
    ["nothing was to be merged", {}, { merged: false }],
    ["its child gave up", { gaveUp: true }, { childGoalSatisfied: false, merged: false }],
    ["the outputs are merged", { phase: "harvested" }, { merged: true }],
    [
      "the verdict lets them through",
      { phase: "harvested", verdict: { ...FAIL, verdict: "pass" } },
      { verdict: "pass", merged: true },
    ],
    [
      "people let them through against the verdict",
      {
        phase: "harvested",
        verdict: { ...FAIL, verdict: "revise" },
        answer: createAnswer({ action: "accept" }),
      },
      { verdict: "revise", merged: true },
    ],
  ])("completes it where %s", (_title, handoff, outputs) => {
    expect(end({ ...COMPLETED, ...handoff })).toStrictEqual({
      kind: "complete",
      outputs: { childRunId: "child-1", childStatus: "completed", ...outputs },
    });
  });

  type Failure = readonly [title: string, handoff: Partial<Handoff>, code: string, message: string];
  const cases: readonly Failure[] = [
    ["its child was refused", { error: ERROR }, "broken", "it broke"],
    ["nobody knows why there is no child", {}, "child_failed", "the child run failed"],
    ["its child failed", { ...CHILD, error: ERROR }, "child_failed", "the child run failed: it broke"],
    [
      "its child was cancelled",
      { ...CHILD, childStatus: "cancelled" },
      "child_cancelled",
      "the child run was cancelled",
    ],
    [
      "the verdict does not let the outputs through",
      { ...COMPLETED, verdict: FAIL },
      "verification_failed",
      "the verifier did not accept what the child produced",
    ],
    [
      "nobody answered in time",
      { ...COMPLETED, answer: createAnswer({ action: "timeout" }) },
      "approval_timeout",
      "nobody let the child's outputs through in time",
    ],
    ...[{ action: "reject" }, "timeout", null].map((value): Failure => [
      `people did not let the outputs through: ${JSON.stringify(value)}`,
      { ...COMPLETED, answer: createAnswer(value) },
      "approval_rejected",
      "the child's outputs were not let through",
    ]),
  ];

  it.each(cases)("fails it where %s", (_title, handoff, code, message) => {
    expect(end(handoff)).toStrictEqual({ kind: "fail", error: { code, message } });
  });

  it.each(["absorb", "continue"])("completes it where its child failed and that is taken: %s", (word) => {
    const config = { ...OPEN, onChildFailure: word };
    expect(end({ ...CHILD, childStatus: "failed" }, config)).toStrictEqual({
      kind: "complete",
      outputs: { childRunId: "child-1", childStatus: "failed" },
    });
    expect(end(CHILD, config)).toStrictEqual({ kind: "complete", outputs: { childRunId: "child-1" } });
  });

  it("fails it where the child was never there, whatever is taken of its failures", () => {
    const config = { ...OPEN, onChildFailure: "absorb" };
    expect(end({ error: ERROR }, config)).toStrictEqual({ kind: "fail", error: ERROR });
  });

  it("fails it where its child failed and that is not taken", () => {
    const config = { ...OPEN, onChildFailure: "fail" };
    expect(end({ ...CHILD, childStatus: "failed" }, config)).toHaveProperty("error.code", "child_failed");
  });
});
