/** Owns: what a supervisor makes of its model's answer, and that its run does not end over work that was not accepted. */
import { Map as ImmutableMap } from "immutable";
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  OrchestratorDecision,
  WorkflowDraft,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  NodeEffect,
  NodeStep,
  NodeView,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { supervisor } from "../../src/agents/coordination/workflow/nodes/supervisor.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type { Review } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { createPlay, createView, type Scene } from "./workflow-node-view-scene.ts";
import { createGraph, RUN } from "./workflow-view-scene.ts";

const SEND: OrchestratorDecision = { kind: "next-worker", nextWorkerIds: ["writer"] };
const END: OrchestratorDecision = { kind: "terminate", reason: "all is there" };
const ERROR = { code: "broken", message: "it broke" };
const EFFECT: NodeEffect = { kind: "cause_side_effect", id: "a:1", nodeId: "a" };

const createDecided = (decision: OrchestratorDecision) => ({
  type: "runOrchestrator.decided",
  nodeId: "a",
  payload: { agentId: "node:a", decision, iteration: 1 },
});
const fail = (code: string, message: string) => ({
  type: "node.failed",
  nodeId: "a",
  payload: { nodeId: "a", error: { code, message } },
});
const complete = (decision: OrchestratorDecision) => ({
  type: "node.completed",
  nodeId: "a",
  payload: { nodeId: "a", outputs: { decision } },
});

/** The verdict on the work of a worker whose node is `nodeId`. */
const createReview = (nodeId: string, workerId: string): Review => ({
  nodeId,
  workerId,
  verdict: { agentId: "acme.critic", verdict: "fail" },
  isMerged: false,
});

/** A supervisor `a` whose worker's work was not accepted, behind each of these verifiers: nodes `d0`, `d1` and so on. */
function createDoubtedWork(verifiers: readonly Values[], scene: Scene = {}): NodeView {
  const reviews = [
    createReview("ghost", "writer"),
    createReview("b", "editor"),
    ...verifiers.map((_, index) => createReview(`d${index}`, `worker-${index}`)),
  ];
  const nodes = verifiers.map((verifier, index) =>
    createNode(`d${index}`, "core.noop", { verifier: { agentId: "acme.critic", ...verifier } }),
  );
  const run = { ...scene.run, reviews: ImmutableMap(reviews.map((review) => [review.workerId, review])) };
  const graph = createGraph({ nodes: [createNode("a"), createNode("b"), ...nodes] });
  return { ...createView({ ...scene, run }), graph };
}

const withTurn = (decision: OrchestratorDecision): Scene => ({
  settings: { play: createPlay({ playTurn: () => ({ kind: "decided", decision }) }) },
});

describe("the answer of a supervisor's model", () => {
  type ModelOutcome = EffectOutcome & { readonly kind: "model_answered" };
  const settle = (outcome: EffectOutcome, view = createView()): readonly WorkflowDraft[] | undefined =>
    supervisor.settle?.(view, EFFECT, outcome);
  const say = (text: string, object?: unknown): ModelOutcome => ({
    kind: "model_answered",
    text,
    model: "m",
    usage: {},
    ...(object !== undefined && { object }),
  });

  it("is carried out at once: the decision is ahead of the node's end", () => {
    expect(settle(say(JSON.stringify(SEND)))).toStrictEqual([createDecided(SEND), complete(SEND)]);
  });

  it("is carried out at once: the decision to end is behind the node's end", () => {
    expect(settle(say(JSON.stringify(END)))).toStrictEqual([complete(END), createDecided(END)]);
  });

  it("may be no text but an object", () => {
    expect(settle(say("", SEND))).toStrictEqual([createDecided(SEND), complete(SEND)]);
  });

  it.each(["", " \n"])("fails the node where it is empty: %o", (text) => {
    expect(settle(say(text))).toStrictEqual([fail("model_answer_empty", "the model answered nothing")]);
  });

  it.each([
    ["a text without one", "I do not know"],
    ["another kind", '{"kind":"dance"}'],
  ])("fails the node where it is no decision: %s", (_title, text) => {
    expect(settle(say(text))).toStrictEqual([
      fail("decision_malformed", "the model's answer is no decision"),
    ]);
  });

  it("fails the node where it is cut off, also behind a whole decision", () => {
    const cutOff = fail(
      "decision_malformed",
      "the model's answer was cut off where the bound of its length is",
    );
    const text = `${JSON.stringify(SEND)} or ${JSON.stringify(END).slice(0, -5)}`;
    expect(settle({ ...say(text), isCutOff: true })).toStrictEqual([cutOff]);
    expect(settle({ ...say("", SEND), isCutOff: true })).toStrictEqual([cutOff]);
    expect(settle({ ...say(""), isCutOff: true })).toStrictEqual([
      fail("model_answer_empty", "the model answered nothing"),
    ]);
  });

  it("may send nobody but the supervisor's workers", () => {
    const answer = say(JSON.stringify(SEND));
    expect(settle(answer, createView({ config: { workers: ["writer"] } }))).toHaveLength(2);
    expect(settle(answer, createView({ config: { workers: ["editor"] } }))).toStrictEqual([
      fail(
        "decision_malformed",
        "the model's decision names a worker that is not among the supervisor's workers",
      ),
    ]);
  });

  it("is escalated below the floor, and nothing more", () => {
    const decision = { ...SEND, confidence: 0.4 };
    expect(settle(say(JSON.stringify(decision)))).toMatchObject([
      { type: "core.workflowChain.confidence-escalated", payload: { originalDecision: decision } },
    ]);
  });

  it("asks people where it would end the run over work that was not accepted", () => {
    expect(settle(say(JSON.stringify(END)), createDoubtedWork([]))).toMatchObject([
      { type: "node.suspended", payload: { interruptId: "a~1", reason: "verification-failed" } },
      { type: "interrupt.requested", payload: { data: { title: "Let the run end here?" } } },
    ]);
  });

  it("fails the node where it would end the run, and people are not asked", () => {
    const view = createDoubtedWork([{ onUnresolved: "fail" }]);
    expect(settle(say(JSON.stringify(END)), view)).toStrictEqual([
      fail("verification_failed", "what writer, editor, worker-0 produced was not accepted"),
    ]);
  });

  it("fails the node where the model refuses, or cannot be asked", () => {
    expect(settle({ kind: "model_refused", model: "m", usage: {} })).toStrictEqual([
      fail("envelope_refused_by_provider", "the model refused to decide"),
    ]);
    expect(settle({ kind: "failed", error: ERROR })).toStrictEqual([fail("broken", "it broke")]);
  });

  it("is nothing in the outcome of something else", () => {
    expect(settle({ kind: "side_effect_caused", effectId: "e" })).toStrictEqual([]);
  });
});

describe("work that was not accepted", () => {
  it("keeps nobody from being sent", () => {
    expect(supervisor.step(createDoubtedWork([], withTurn(SEND)))).toHaveProperty("before", [
      createDecided(SEND),
    ]);
  });

  it("is put to people before the run ends over it", () => {
    const scene = { ...withTurn(END), run: { orchestrator: { decided: 2, revisions: 0 } } };
    expect(supervisor.step(createDoubtedWork([{}], scene))).toStrictEqual({
      kind: "suspend",
      interrupt: {
        kind: "approval",
        reason: "verification-failed",
        data: {
          artifactId: `${RUN}:a:3`,
          artifactType: "orchestrator-decision",
          title: "Let the run end here?",
          description:
            "What writer, editor, worker-0 produced was not accepted by the verifier, and nothing of it was merged.",
          artifactData: END,
          actions: ["accept", "reject", "edit-accept"],
        },
      },
    });
  });

  it("waits for people as long as the most hurried verifier says", () => {
    const view = createDoubtedWork(
      [{ approvalTimeoutMs: 9_000 }, {}, { approvalTimeoutMs: 4_000 }],
      withTurn(END),
    );
    expect(supervisor.step(view)).toHaveProperty("interrupt.timeoutMs", 4_000);
  });

  it("fails the node where one of the verifiers says so", () => {
    expect(supervisor.step(createDoubtedWork([{}, { onUnresolved: "fail" }], withTurn(END)))).toStrictEqual({
      kind: "fail",
      error: {
        code: "verification_failed",
        message: "what writer, editor, worker-0, worker-1 produced was not accepted",
      },
    });
  });
});

describe("the answer of people who know that work was not accepted", () => {
  function answer(resumeValue: unknown, artifactData: unknown = END): NodeStep {
    const question = { data: { artifactData }, reason: "verification-failed" };
    const eventId = createEventId(RUN, 7);
    const answers = [
      { interruptId: "a~1", kind: "approval", resumeValue, eventId, asked: question } as const,
    ];
    return supervisor.step(createDoubtedWork([{ onUnresolved: "fail" }], { nodeRun: { answers } }));
  }

  it("ends the run with the decision that they were shown", () => {
    for (const value of [{ action: "accept" }, { action: "accept", editedArtifactData: SEND }])
      expect(answer(value)).toStrictEqual({
        kind: "complete",
        outputs: { decision: END },
        after: [createDecided(END)],
      });
  });

  it("puts another decision in its place", () => {
    expect(answer({ action: "edit-accept", editedArtifactData: SEND })).toStrictEqual({
      kind: "complete",
      outputs: { decision: SEND },
      before: [createDecided(SEND)],
    });
  });

  it.each<[title: string, resumeValue: unknown, artifactData: unknown]>([
    ["a no", { action: "reject" }, END],
    ["no record", "accept", END],
    ["nothing", null, END],
    ["an edit that is no decision", { action: "edit-accept", editedArtifactData: { kind: "dance" } }, END],
    ["a yes to what is no decision", { action: "accept" }, { kind: "dance" }],
  ])("fails the node where it is %s", (_title, resumeValue, artifactData) => {
    expect(answer(resumeValue, artifactData)).toStrictEqual({
      kind: "fail",
      error: {
        code: "verification_failed",
        message: "the run was not let end over work that was not accepted",
      },
    });
  });

  it("fails the node where nobody gave it in time", () => {
    expect(answer({ action: "timeout" })).toStrictEqual({
      kind: "fail",
      error: {
        code: "verification_failed",
        message: "nobody let the run end in time over work that was not accepted",
      },
    });
  });
});
