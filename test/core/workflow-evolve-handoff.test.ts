/** Owns: what events and answers make of the work that a node hands over, and of the reviews of that work. */
import { describe, expect, it } from "vitest";
import { createEventId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  WorkflowDraft,
  WorkflowPayloads,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  applyMergeAnswer,
  evolveHandoff,
  type HandoffEvent,
} from "../../src/agents/coordination/workflow/state/evolve-handoff.ts";
import type {
  InterruptAnswer,
  HandedOver,
  Handoff,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { BEGUN, NOW, play, RUN, start } from "./workflow-evolve-scene.ts";

type HandoffDraft = Extract<WorkflowDraft, { type: HandoffEvent["type"] }>;
type ChainPayload = WorkflowPayloads["core.workflowChain.event"];
type VerdictPayload = WorkflowPayloads["agent.verified"];

/** A run with two nodes that have handed nothing over. */
const startIdle = (): WorkflowRun => play(BEGUN, [1, start("a")], [2, start("b")]);

/** Applies events of the node `a`, unless they say otherwise; the sequence of the first is `from`. */
function apply(run: WorkflowRun, drafts: readonly HandoffDraft[], from = 10): WorkflowRun {
  const place = { nodeId: "a", runId: RUN, timestamp: formatTimestamp(NOW) };
  return drafts.reduce((before, draft, index) => {
    const sequence = from + index;
    return evolveHandoff(before, { ...place, sequence, eventId: createEventId(RUN, sequence), ...draft });
  }, run);
}

const handoffOf = (run: WorkflowRun): Handoff | undefined => run.nodes.get("a")?.handoff;

const chain = (phase: ChainPayload["phase"], rest: Partial<ChainPayload> = {}): HandoffDraft => ({
  type: "core.workflowChain.event",
  payload: { phase, workerId: "w", parentRunId: RUN, ...rest },
});
const dispatch = (childRunId: string): HandoffDraft => ({
  type: "node.dispatched",
  payload: { childRunId, childWorkflowId: "w" },
});
const verify = (verdict: VerdictPayload["verdict"], rest: Partial<VerdictPayload> = {}): HandoffDraft => ({
  type: "agent.verified",
  payload: { agentId: "critic", target: "child-1", verdict, ...rest },
});
const GAVE_UP: HandoffDraft = {
  type: "coordination.child_gave_up",
  payload: { childRunId: "child-1", unmet: ["goal"] },
};

const BEGAN = chain("dispatch.began");
const COMPLETED = chain("child.completed", { childRunId: "child-1" });
const HARVESTED = chain("output.harvested", { childRunId: "child-1" });
/** The events of the sequences 10 to 12, after which the child runs. */
const RUNNING = [BEGAN, dispatch("child-1"), chain("dispatch.succeeded", { childRunId: "child-1" })];
/** The events of the sequences 10 to 13, after which the child has completed. */
const ENDED = [...RUNNING, COMPLETED];

const createAnswer = (action: string): InterruptAnswer => ({
  interruptId: "i-1",
  kind: "approval",
  resumeValue: { action },
  eventId: createEventId(RUN, 20),
  asked: { data: {} },
});
const ACCEPT = createAnswer("accept");

const RUNS: Handoff = {
  index: 0,
  phase: "running",
  chainEventId: createEventId(RUN, 12),
  workerId: "w",
  childRunId: "child-1",
  dispatchedSequence: 11,
  revision: 0,
  unmet: [],
};

describe("a node that hands work over", () => {
  it("begins with its first worker", () => {
    expect(handoffOf(apply(startIdle(), [BEGAN]))).toStrictEqual({
      index: 0,
      phase: "dispatching",
      chainEventId: "run-1:10",
      workerId: "w",
      revision: 0,
      unmet: [],
    });
  });

  it("names its child when it is dispatched, before the worker is said to run", () => {
    expect(handoffOf(apply(startIdle(), [BEGAN, dispatch("child-1")]))).toStrictEqual({
      ...RUNS,
      phase: "dispatching",
      chainEventId: "run-1:10",
    });
  });

  it("to a child without a gate has a worker that runs at once", () => {
    const run = apply(startIdle(), [dispatch("child-1")]);
    expect(handoffOf(run)).toStrictEqual({ ...RUNS, chainEventId: "run-1:10", dispatchedSequence: 10 });
    expect(run.reviews.size).toBe(0);
  });

  it.each<[ChainPayload["phase"], Partial<Handoff>]>([
    ["dispatch.succeeded", { phase: "running" }],
    ["dispatch.failed", { phase: "ended", childStatus: "failed" }],
    ["child.completed", { phase: "ended", childStatus: "completed" }],
    ["child.failed", { phase: "ended", childStatus: "failed" }],
    ["child.cancelled", { phase: "ended", childStatus: "cancelled" }],
    ["output.harvested", { phase: "harvested" }],
  ])("after %s has the worker as %j", (phase, expected) => {
    const handoff = handoffOf(apply(startIdle(), [...RUNNING, chain(phase)]));
    expect(handoff).toStrictEqual({ ...RUNS, chainEventId: "run-1:13", ...expected });
  });

  it("keeps why a child failed", () => {
    const error = { code: "broken", message: "it broke" };
    const handoff = handoffOf(apply(startIdle(), [BEGAN, chain("dispatch.failed", { error })]));
    expect(handoff).toMatchObject({ error, childStatus: "failed" });
    expect(handoff).not.toHaveProperty("childRunId");
  });

  it("keeps the checksum of what was merged, and how the child ended", () => {
    const attestation = { checksum: "f".repeat(64), algorithm: "sha256" } as const;
    expect(
      handoffOf(apply(startIdle(), [...ENDED, chain("output.harvested", { attestation })])),
    ).toStrictEqual({
      ...RUNS,
      phase: "harvested",
      chainEventId: "run-1:14",
      childStatus: "completed",
      attestation,
    });
  });

  it("takes the child that the newest event names", () => {
    const run = apply(startIdle(), [...RUNNING, chain("child.completed", { childRunId: "child-2" })]);
    expect(handoffOf(run)?.childRunId).toBe("child-2");
  });

  it("counts the children that completed", () => {
    const others = [chain("child.failed"), chain("child.cancelled"), HARVESTED, dispatch("child-2")];
    const run = apply(startIdle(), [...ENDED, ...others, verify("pass"), COMPLETED]);
    expect(run.nodes.get("a")?.completedChildren).toBe(2);
  });

  it("names the runs that it started, each once, also after the node is started again", () => {
    const again = [COMPLETED, BEGAN, dispatch("child-1"), dispatch("child-2")];
    const run = play(apply(startIdle(), [...RUNNING, ...again]), [20, start("a")]);
    expect(run.nodes.get("a")?.childRunIds).toEqual(["child-1", "child-2"]);
    expect(run.nodes.get("b")).not.toHaveProperty("childRunIds");
  });

  it("is told that its child gave up", () => {
    expect(handoffOf(apply(startIdle(), [...RUNNING, GAVE_UP]))).toStrictEqual({ ...RUNS, gaveUp: true });
  });

  it("leaves the other nodes alone", () => {
    const idle = startIdle();
    const run = apply(idle, ENDED);
    expect([...run.nodes.keys()]).toEqual(["a", "b"]);
    expect(run.nodes.get("b")).toBe(idle.nodes.get("b"));
  });

  it.each([BEGAN, dispatch("child-1"), GAVE_UP])("has been started before $type", (draft) => {
    expect(() => apply(startIdle(), [{ ...draft, nodeId: "c" }])).toThrow("node c has not been started");
  });
});

describe("a node that hands nothing over", () => {
  it.each(["a", "c"])("has nothing to be verified: %s", (nodeId) => {
    const idle = startIdle();
    expect(apply(idle, [{ ...verify("pass"), nodeId }])).toBe(idle);
  });

  it("has no child that could give up", () => {
    const run = apply(startIdle(), [GAVE_UP]);
    expect(run.nodes.get("a")).toStrictEqual(startIdle().nodes.get("a"));
    expect(run.reviews.size).toBe(0);
  });
});

describe("the worker that begins after another one has", () => {
  const again = verify("revise", { criteria: ["tests", "docs"] });
  const NEXT: Handoff = {
    index: 1,
    phase: "dispatching",
    workerId: "w",
    revision: 0,
    unmet: [],
    chainEventId: createEventId(RUN, 20),
  };
  const beginAgain = (run: WorkflowRun, workerId = "w"): WorkflowRun =>
    apply(run, [chain("dispatch.began", { workerId })], 20);

  it("is the same one, which learns what it did not meet, when its work is to be revised", () => {
    const run = beginAgain(apply(startIdle(), [...ENDED, again]));
    const unmet = ["tests", "docs"];
    expect(handoffOf(run)).toStrictEqual({ ...NEXT, index: 0, revision: 1, unmet });
    expect(run.orchestrator).toStrictEqual({ decided: 0, revisions: 1 });
  });

  it("is the same one as often as it is sent back", () => {
    const once = beginAgain(apply(startIdle(), [...ENDED, again]));
    const twice = beginAgain(apply(once, [dispatch("child-2"), COMPLETED, verify("revise")], 14));
    expect(handoffOf(twice)).toStrictEqual({ ...NEXT, index: 0, revision: 2 });
    expect(twice.orchestrator.revisions).toBe(2);
  });

  const DONE: HandedOver = { workerId: "w", phase: "ended", childStatus: "completed" };
  it.each<[string, readonly HandoffDraft[], HandedOver]>([
    ["failed to be dispatched", [BEGAN, chain("dispatch.failed")], { ...DONE, childStatus: "failed" }],
    ["was not verified", ENDED, DONE],
    ["passed", [...ENDED, verify("pass")], DONE],
    ["failed its verification", [...ENDED, verify("fail")], DONE],
    ["was merged all the same", [...ENDED, again, HARVESTED], { ...DONE, phase: "harvested" }],
    ["gave up", [...ENDED, GAVE_UP], { ...DONE, gaveUp: true }],
  ])("is the next one where the one before %s, and keeps how that ended", (_title, drafts, ended) => {
    const run = beginAgain(apply(startIdle(), drafts));
    expect(handoffOf(run)).toStrictEqual({ ...NEXT, earlier: [ended] });
    expect(run.orchestrator.revisions).toBe(0);
  });

  it("keeps how those ended that came before one that is sent back", () => {
    const first = apply(startIdle(), [BEGAN, chain("dispatch.failed"), chain("dispatch.began")]);
    const run = beginAgain(apply(first, [dispatch("child-2"), COMPLETED, again], 14));
    const earlier = [{ ...DONE, childStatus: "failed" }];
    expect(handoffOf(run)).toMatchObject({ index: 1, revision: 1, earlier });
  });

  it("is the next one where it is another worker", () => {
    const run = beginAgain(apply(startIdle(), [...ENDED, again]), "other");
    expect(handoffOf(run)).toStrictEqual({ ...NEXT, workerId: "other", earlier: [DONE] });
    expect(run.orchestrator.revisions).toBe(0);
  });

  it("is the next one where people ruled on the work that was to be revised", () => {
    const run = beginAgain(applyMergeAnswer(apply(startIdle(), [...ENDED, again]), "a", ACCEPT));
    expect(handoffOf(run)).toStrictEqual({ ...NEXT, earlier: [DONE] });
    expect(run.orchestrator.revisions).toBe(0);
  });

  it("counts as sent back only when it begins", () => {
    expect(apply(startIdle(), [...ENDED, again, chain("child.completed")]).orchestrator.revisions).toBe(0);
  });
});

describe("the review of a worker", () => {
  const REVIEW = { nodeId: "a", workerId: "w", childRunId: "child-1", isMerged: false };
  const VERDICT = { agentId: "critic", verdict: "pass" };
  const reviewsOf = (run: WorkflowRun) => run.reviews.toObject();

  it.each<[string, Partial<VerdictPayload>]>([
    ["nothing more", {}],
    ["criteria", { criteria: ["tests"] }],
    ["a confidence", { confidence: 0 }],
  ])("has the verdict, with %s, as the handoff has it", (_title, rest) => {
    const run = apply(startIdle(), [...ENDED, verify("pass", rest)]);
    const verdict = { ...VERDICT, ...rest };
    expect(reviewsOf(run)).toStrictEqual({ "a\nw": { ...REVIEW, verdict } });
    expect(handoffOf(run)?.verdict).toStrictEqual(verdict);
  });

  it("names no child where none is known", () => {
    const { childRunId: _, ...rest } = REVIEW;
    const run = apply(startIdle(), [BEGAN, verify("pass")]);
    expect(reviewsOf(run)).toStrictEqual({ "a\nw": { ...rest, verdict: VERDICT } });
  });

  it("is replaced by the verdict on its next child", () => {
    const run = applyMergeAnswer(apply(startIdle(), [...ENDED, verify("revise")]), "a", ACCEPT);
    const next = apply(run, [BEGAN, dispatch("child-2"), verify("pass")], 20);
    expect(reviewsOf(next)).toStrictEqual({ "a\nw": { ...REVIEW, childRunId: "child-2", verdict: VERDICT } });
  });

  it("says that the work was merged when it is harvested, and that of no other worker", () => {
    const other = { workerId: "other" };
    const run = apply(startIdle(), [
      ...ENDED,
      verify("pass"),
      chain("dispatch.began", other),
      verify("fail"),
    ]);
    const before = reviewsOf(run);
    const merged = apply(run, [BEGAN, dispatch("child-1"), HARVESTED], 20);
    expect(reviewsOf(merged)).toStrictEqual({ ...before, "a\nw": { ...before["a\nw"], isMerged: true } });
  });

  it.each<[string, HandoffDraft]>([
    ["a child is dispatched", dispatch("child-1")],
    ["a child gives up", GAVE_UP],
    ["a child runs", chain("dispatch.succeeded")],
    ["a child completes", chain("child.completed")],
    ["a child fails", chain("child.failed")],
  ])("is not touched when %s", (_title, draft) => {
    const run = apply(startIdle(), [...ENDED, verify("pass")]);
    expect(apply(run, [draft], 20).reviews).toBe(run.reviews);
  });

  it("is not touched by the harvest of a child that nobody reviewed", () => {
    const run = apply(startIdle(), [...ENDED, verify("fail"), BEGAN, dispatch("child-2")]);
    const merged = apply(run, [chain("output.harvested")], 20);
    expect(merged.reviews).toBe(run.reviews);
  });

  it("is not made by a harvest", () => {
    expect(apply(startIdle(), [...ENDED, HARVESTED]).reviews.size).toBe(0);
  });

  it.each([
    ["accept", "accepted"],
    ["edit-accept", "accepted"],
    ["reject", "rejected"],
    ["timeout", "rejected"],
  ])("has the ruling of people who answered %s as %s", (action, ruling) => {
    const answer = createAnswer(action);
    const before = apply(startIdle(), [...ENDED, verify("pass")]);
    const run = applyMergeAnswer(before, "a", answer);
    expect(reviewsOf(run)).toStrictEqual({ "a\nw": { ...REVIEW, verdict: VERDICT, ruling } });
    expect(handoffOf(run)).toStrictEqual({ ...handoffOf(before), answer });
    expect(run.nodes.get("b")).toBe(before.nodes.get("b"));
  });

  it("is made by people where nothing verified the work", () => {
    const run = applyMergeAnswer(apply(startIdle(), ENDED), "a", ACCEPT);
    expect(reviewsOf(run)).toStrictEqual({ "a\nw": { ...REVIEW, ruling: "accepted" } });
  });

  it("is made by people without a child where none was dispatched", () => {
    const { childRunId: _, ...rest } = REVIEW;
    const run = applyMergeAnswer(apply(startIdle(), [BEGAN, chain("dispatch.failed")]), "a", ACCEPT);
    expect(reviewsOf(run)).toStrictEqual({ "a\nw": { ...rest, ruling: "accepted" } });
  });

  it("forgets the verdict on an earlier child when people rule on the next one", () => {
    const next = [BEGAN, dispatch("child-2"), chain("child.completed")];
    const run = applyMergeAnswer(apply(startIdle(), [...ENDED, verify("revise"), ...next]), "a", ACCEPT);
    expect(reviewsOf(run)).toStrictEqual({
      "a\nw": { ...REVIEW, childRunId: "child-2", ruling: "accepted" },
    });
  });

  it.each<[string, readonly HandoffDraft[], string]>([
    ["hands nothing over", [], "a"],
    ["has not been started", [], "c"],
    ["has a worker that runs", RUNNING, "a"],
    ["has a worker whose work was merged", [...ENDED, verify("pass"), HARVESTED], "a"],
  ])("is not changed by an answer to a node that %s", (_title, drafts, nodeId) => {
    const run = apply(startIdle(), drafts);
    expect(applyMergeAnswer(run, nodeId, ACCEPT)).toBe(run);
  });
});
