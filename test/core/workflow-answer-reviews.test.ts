/** Owns: when people agreed, which reviews nobody has settled, and whether a completed run reached its goal. */
import { Map as ImmutableMap } from "immutable";
import { describe, expect, it } from "vitest";
import type { OrchestratorDecision } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  assessConvergence,
  isAgreedAnswer,
  listUnresolvedReviews,
  summarizeReviews,
  type Convergence,
} from "../../src/agents/coordination/workflow/state/review.ts";
import {
  createReviewKey,
  type RecordedVerdict,
  type Review,
  type RunPhase,
  type WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { LATER, createRun, withDecision } from "./workflow-view-scene.ts";

const PASS: RecordedVerdict = { agentId: "critic", verdict: "pass" };
const FAIL: RecordedVerdict = { agentId: "critic", verdict: "fail" };
const REVISE: RecordedVerdict = { agentId: "critic", verdict: "revise" };
const COMPLETED: RunPhase = { kind: "completed", atMs: LATER, outputs: {} };

function createReview(workerId: string, more: Partial<Review> = {}): Review {
  return { nodeId: "dispatch", workerId, isMerged: false, ...more };
}

function withReviews(...reviews: readonly Review[]): Pick<WorkflowRun, "reviews"> {
  return {
    reviews: ImmutableMap(reviews.map((review) => [createReviewKey(review.nodeId, review.workerId), review])),
  };
}

describe("an answer of people", () => {
  it.each<[resumeValue: unknown, isYes: boolean]>([
    [{ action: "accept" }, true],
    [{ action: "edit-accept", editedArtifactData: {} }, true],
    [{ action: "reject" }, false],
    [{ action: "refine" }, false],
    [{ action: "Accept" }, false],
    [{ action: true }, false],
    [{ decision: "approved" }, false],
    [{}, false],
    ["accept", false],
    [true, false],
    [null, false],
    [undefined, false],
  ])("is a yes only where it accepts: %j", (resumeValue, isYes) => {
    expect(isAgreedAnswer({ resumeValue })).toBe(isYes);
  });
});

describe("a review that nobody has settled", () => {
  it.each<[title: string, review: Partial<Review>, isOpen: boolean]>([
    ["failed", { verdict: FAIL }, true],
    ["was to be revised", { verdict: REVISE }, true],
    ["passed", { verdict: PASS }, false],
    ["has no verdict yet", {}, false],
    ["failed and was merged all the same", { verdict: FAIL, isMerged: true }, false],
    ["failed and was accepted by people", { verdict: FAIL, ruling: "accepted" }, false],
    ["failed and was rejected by people", { verdict: FAIL, ruling: "rejected" }, false],
  ])("is one of work that %s, or not", (_title, more, isOpen) => {
    const review = createReview("worker", more);
    expect(listUnresolvedReviews(withReviews(review))).toEqual(isOpen ? [review] : []);
  });

  it("is listed with the others of the run", () => {
    const [first, second] = [createReview("a", { verdict: FAIL }), createReview("b", { verdict: REVISE })];
    const settled = createReview("c", { verdict: PASS });
    expect(listUnresolvedReviews(withReviews(first, settled, second))).toEqual([first, second]);
  });
});

describe("the reviews that a supervisor is told of", () => {
  it("name the worker and whether its work was merged, where nothing else is there", () => {
    expect(summarizeReviews(withReviews(createReview("worker")))).toStrictEqual([
      { worker: "worker", merged: false },
    ]);
  });

  it("have the verdict with the keys of its criteria, and the ruling of people, and nothing of the work", () => {
    const review = createReview("worker", {
      childRunId: "child-1",
      verdict: { ...FAIL, criteria: ["tested"], confidence: 0.5 },
      isMerged: true,
      ruling: "accepted",
    });
    expect(summarizeReviews(withReviews(review))).toStrictEqual([
      { worker: "worker", verdict: "fail", criteria: ["tested"], merged: true, people: "accepted" },
    ]);
  });

  it("have no criteria where the verdict names none", () => {
    expect(summarizeReviews(withReviews(createReview("worker", { verdict: PASS })))).toStrictEqual([
      { worker: "worker", verdict: "pass", criteria: [], merged: false },
    ]);
  });
});

describe("the goal of a run that completed", () => {
  const settle = (decision: OrchestratorDecision | undefined, ...reviews: readonly Review[]) =>
    assessConvergence(
      createRun({ phase: COMPLETED, ...(decision && withDecision(decision)), ...withReviews(...reviews) }),
    );
  const terminate = (...successCriteria: readonly (readonly [key: string, met: boolean])[]) =>
    ({
      kind: "terminate",
      successCriteria: successCriteria.map(([key, met]) => ({ key, met })),
    }) satisfies OrchestratorDecision;
  const merged = createReview("good", { verdict: PASS, isMerged: true });
  const failed = createReview("bad", { verdict: FAIL });

  it.each<[title: string, decision: OrchestratorDecision | undefined]>([
    ["nobody decided", undefined],
    ["the supervisor ended without criteria", { kind: "terminate" }],
    ["the supervisor ended with an empty list of criteria", terminate()],
    ["the last decision was another one", { kind: "next-worker", nextWorkerIds: ["good"] }],
  ])("is not known where %s, and all work was accepted", (_title, decision) => {
    expect(settle(decision)).toBeUndefined();
    expect(settle(decision, merged)).toBeUndefined();
  });

  it.each<[title: string, ending: OrchestratorDecision | undefined, reviews: Review[], goal: Convergence]>([
    [
      "reached where all criteria are met",
      terminate(["tested", true]),
      [merged],
      { goalSatisfied: true, unmet: [], notAccepted: [] },
    ],
    [
      "missed where a criterion is not met",
      terminate(["tested", true], ["documented", false]),
      [merged],
      { goalSatisfied: false, unmet: ["documented"], notAccepted: [] },
    ],
    [
      "missed where work was not accepted, though all criteria are met",
      terminate(["tested", true]),
      [failed, merged],
      { goalSatisfied: false, unmet: [], notAccepted: ["bad"] },
    ],
    [
      "missed where work was not accepted, without a supervisor",
      undefined,
      [failed],
      { goalSatisfied: false, unmet: [], notAccepted: ["bad"] },
    ],
  ])("is %s", (_title, ending, reviews, goal) => {
    expect(settle(ending, ...reviews)).toStrictEqual(goal);
  });

  it.each<[title: string, review: Partial<Review>, isMissed: boolean]>([
    ["passed", { verdict: PASS }, false],
    ["failed", { verdict: FAIL }, true],
    ["has no verdict", {}, true],
    ["failed and was merged", { verdict: FAIL, isMerged: true }, false],
    ["failed and was accepted by people", { verdict: FAIL, ruling: "accepted" }, false],
    ["passed and was rejected by people", { verdict: PASS, ruling: "rejected" }, true],
    ["was rejected by people, and is merged now", { ruling: "rejected", isMerged: true }, false],
  ])("is missed or not by work that %s", (_title, more, isMissed) => {
    const convergence = settle(terminate(["tested", true]), createReview("worker", more));
    expect(convergence?.notAccepted).toEqual(isMissed ? ["worker"] : []);
    expect(convergence?.goalSatisfied).toBe(!isMissed);
  });

  it.each<RunPhase>([
    { kind: "open" },
    { kind: "paused", atMs: LATER },
    { kind: "failed", atMs: LATER, error: { code: "broken", message: "it broke" } },
    { kind: "cancelled", atMs: LATER },
  ])("is not known of a run that did not complete: $kind", (phase) => {
    const decision = withDecision(terminate(["tested", false]));
    expect(assessConvergence(createRun({ phase, ...decision, ...withReviews(failed) }))).toBeUndefined();
  });
});
