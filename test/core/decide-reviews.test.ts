import { describe, expect, it } from "vitest";
import type { Command, SettleReview } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findNextDeadline,
  planDispatch,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import {
  answer,
  createAsk,
  openAtWork,
  nameConflict,
  createContest,
  createContestant,
  FOREIGN,
  createHolder,
  LEASE_MS,
  NOTES,
  openOf,
  payloadsOf,
  release,
  REPORT,
  request,
  describeDecision,
  tokensOf,
} from "./claims-scene.ts";
import { admit, dispatch, failStep, openPlan, planScene, planStep } from "./planned-scene.ts";
import {
  ACKNOWLEDGE_MS,
  timeAt,
  complete,
  fail,
  SETTLE,
  SETTLE_MS,
  spawn,
  TIMEOUT_MS,
  type Scene,
} from "./scene.ts";

const REVIEW_BY_MS = 40_000;
const GRACE_MS = 15_000;
const HELD_BY_2 = request(2, createAsk(NOTES, 3));
const CLAIM = { token: 4, expiresAtMs: timeAt(LEASE_MS) };

const requestReviewed = (
  step: number | StepId,
  reviewByMs: EpochMs | undefined = timeAt(REVIEW_BY_MS),
  resource = NOTES,
) =>
  createAsk(resource, 4, {
    contest: createContest([createContestant(step, 4), createHolder(2, 3)], {
      strategy: "manual_review",
      from: "high_risk",
      reviewByMs,
    }),
  });
const unasked = createAsk(NOTES, 4, {
  contest: createContest([createContestant(1, 4), createHolder(2, 3)], { strategy: "manual_review" }),
});
const obstacle = { kind: "obstacle", obstacle: "overlapping_changes" } as const;

/** Step 1 waits for people, because step 2 holds the notes. */
const openAskedScene = (...more: readonly Command[]): Scene =>
  openAtWork(2, HELD_BY_2, request(1, requestReviewed(1)), ...more);
const listResolutions = (scene: Scene): unknown[] => payloadsOf(scene.log, "conflict.resolved");

describe("a contest that people rule on", () => {
  it("is recorded without a ruling, claims nothing, and is known until when it may be answered", () => {
    const scene = openAskedScene();
    expect(payloadsOf(scene.log, "conflict.detected")[0]?.contest?.reviewByMs).toBe(timeAt(REVIEW_BY_MS));
    expect(listResolutions(scene)).toEqual([]);
    expect(openOf(scene).reviews.toJS()).toEqual({ [nameConflict(1)]: timeAt(REVIEW_BY_MS) });
    expect(tokensOf(scene)).toEqual([3]);
  });

  it("is a question of its own for each call, whatever people said to the one before", () => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(request(1, requestReviewed(1))))).toEqual(["conflict.detected"]);
    scene.when(answer(1, "denied"));
    expect(describeDecision(scene.when(request(1, requestReviewed(1))))).toEqual(["conflict.detected"]);
    expect(openOf(scene).reviews.size).toBe(2);
  });

  it("is lost at once where nobody can be asked", () => {
    const scene = openAtWork(2, HELD_BY_2);
    expect(describeDecision(scene.when(request(1, unasked)))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
    expect(listResolutions(scene)).toEqual([
      {
        conflictId: nameConflict(1),
        strategy: "manual_review",
        losers: ["step-1"],
        because: "manual-review",
        rule: "strategy",
      },
    ]);
    expect(openOf(scene).reviews.size).toBe(0);
  });

  it("is one whose merge met an obstacle", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const { contest: claims } = requestReviewed(1);
    if (!claims) throw new Error("no contest");
    const merging = { ...claims, strategy: "merge_if_safe", merge: obstacle } as const;
    expect(describeDecision(scene.when(request(1, createAsk(NOTES, 4, { contest: merging }))))).toEqual([
      "conflict.detected",
    ]);
    scene.when(answer(1, "unanswered"));
    expect(listResolutions(scene)).toEqual([
      expect.objectContaining({ strategy: "merge_if_safe", rule: "people", because: "unanswered" }),
    ]);
  });

  it("is not put to people where another resource of the same request is lost anyway", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const lostRequest = createAsk(REPORT, 5, {
      contest: createContest([createContestant(1, 5), createHolder(2, 3)]),
    });
    expect(describeDecision(scene.when(request(1, requestReviewed(1), lostRequest)))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
    expect(openOf(scene).reviews.size).toBe(0);
  });
});

describe("an answer of people", () => {
  it("that approves gives the requester the claim and ends the others'", () => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(answer(1, "approved", CLAIM)))).toEqual([
      ...["conflict.resolved", "claim.released", "claim.acquired"],
    ]);
    expect(listResolutions(scene)).toEqual([
      {
        conflictId: nameConflict(1),
        strategy: "manual_review",
        winner: "step-1",
        losers: ["step-2"],
        because: "approved",
        rule: "people",
      },
    ]);
    expect(tokensOf(scene)).toEqual([4]);
    expect(openOf(scene).reviews.size).toBe(0);
  });

  it.each([
    ["denied", "denied"],
    ["unanswered", "unanswered"],
    ["nobody_to_ask", "nobody-to-ask"],
    ["withdrawn", "withdrawn"],
  ] as const)("that is %s leaves the claims as they were", (resolution, because) => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(answer(1, resolution, CLAIM)))).toEqual(["conflict.resolved"]);
    expect(listResolutions(scene)).toEqual([
      { conflictId: nameConflict(1), strategy: "manual_review", losers: ["step-1"], because, rule: "people" },
    ]);
    expect(tokensOf(scene)).toEqual([3]);
  });

  it.each<SettleReview["answer"]>(["approved", "denied", "withdrawn"])(
    "A3: that comes a second time, as %s, changes nothing",
    (resolution) => {
      const scene = openAskedScene(answer(1, "approved", CLAIM));
      expect(describeDecision(scene.when(answer(1, resolution, { ...CLAIM, token: 5 })))).toEqual(["replay"]);
    },
  );

  it("about a conflict that there is not changes nothing", () => {
    expect(describeDecision(openAskedScene().when(answer(2, "approved", CLAIM)))).toEqual(["replay"]);
  });

  it("about a conflict that the rules have ruled on changes nothing", () => {
    const scene = openAtWork(2, HELD_BY_2, request(1, unasked));
    expect(describeDecision(scene.when(answer(1, "approved", CLAIM)))).toEqual(["replay"]);
  });

  it("that approves without a claim is withdrawn", () => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(answer(1, "approved")))).toEqual(["conflict.resolved"]);
    expect(listResolutions(scene)).toEqual([expect.objectContaining({ because: "withdrawn" })]);
  });

  it("that approves renews the requester's own claim where that has not ended", () => {
    const scene = openAtWork(2, request(1, createAsk(NOTES, 1, { expiresAtMs: timeAt(60_000) })), HELD_BY_2);
    scene.when(request(1, { ...requestReviewed(1), held: 1 }));
    expect(describeDecision(scene.when(answer(1, "approved", CLAIM)))).toEqual([
      ...["conflict.resolved", "claim.released", "claim.renewed"],
    ]);
    expect(tokensOf(scene)).toEqual([1]);
  });

  it("A2: that approves gives a new claim where the requester's own one has ended", () => {
    const scene = openAtWork(2, request(1, createAsk(NOTES, 1, { expiresAtMs: timeAt(10_000) })), HELD_BY_2);
    scene.when(request(1, requestReviewed(1)), 20_000);
    scene.when(answer(1, "approved", CLAIM));
    expect(tokensOf(scene)).toEqual([4]);
    expect(payloadsOf(scene.log, "claim.released")).toContainEqual({
      stepId: "step-1",
      token: 1,
      because: "expired",
    });
  });

  it("that approves ends the claims of those, too, who came while people thought about it", () => {
    const scene = openAskedScene(complete(2), spawn("late"));
    scene.when(request(3, createAsk("file:/repo", 4)));
    expect(describeDecision(scene.when(answer(1, "approved", { ...CLAIM, token: 5 })))).toEqual([
      ...["conflict.resolved", "claim.released", "claim.acquired"],
    ]);
    expect(tokensOf(scene)).toEqual([5]);
  });

  it("that approves does not end the claim of a step of another coordination", () => {
    const scene = openAtWork(1);
    const foreign = createContest([createContestant(1, 4), createHolder(2, 3, { coordinationId: FOREIGN })], {
      strategy: "manual_review",
      reviewByMs: timeAt(REVIEW_BY_MS),
    });
    scene.when(request(1, createAsk(NOTES, 4, { contest: foreign })));
    expect(describeDecision(scene.when(answer(1, "approved", CLAIM)))).toEqual([
      "conflict.resolved",
      "claim.acquired",
    ]);
  });
});

describe("a question that nobody waits for any more", () => {
  it.each<readonly [string, Command, readonly string[]]>([
    ["completes", complete(1), ["step.completed", "conflict.resolved"]],
    ["fails", fail(1), ["step.failed", "conflict.resolved"]],
  ])("is withdrawn when its step %s", (_, end, types) => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(end))).toEqual(types);
    expect(listResolutions(scene)).toEqual([
      expect.objectContaining({ because: "withdrawn", rule: "people" }),
    ]);
    expect(describeDecision(scene.when(answer(1, "approved", CLAIM)))).toEqual(["replay"]);
  });

  it("stays open when only the step ends that stands against it", () => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(complete(2)))).toEqual(["step.completed", "claim.released"]);
    expect(openOf(scene).reviews.size).toBe(1);
    expect(describeDecision(scene.when(answer(1, "approved", CLAIM)))).toEqual([
      "conflict.resolved",
      "claim.acquired",
    ]);
  });

  it("of the owner is withdrawn with the turn, and with the coordination", () => {
    const openOwnersScene = (): Scene =>
      openAtWork(2, HELD_BY_2, request(OWNER_STEP_ID, requestReviewed(OWNER_STEP_ID)));
    const turn = openOwnersScene();
    turn.when(release({ stepId: OWNER_STEP_ID, because: "turn_ended" }));
    expect(listResolutions(turn)).toEqual([
      expect.objectContaining({ losers: [OWNER_STEP_ID], because: "withdrawn" }),
    ]);
    const whole = openOwnersScene();
    whole.when(complete(1));
    whole.when(complete(2));
    expect(describeDecision(whole.when(SETTLE))).toEqual(["conflict.resolved", "coordination.terminal"]);
  });

  it("is not withdrawn by the release of single claims", () => {
    const scene = openAskedScene();
    expect(describeDecision(scene.when(release({ tokens: [3] })))).toEqual(["claim.released"]);
    expect(openOf(scene).reviews.size).toBe(1);
  });
});

describe("looking after questions", () => {
  const CLOSES_MS = REVIEW_BY_MS + GRACE_MS;
  const listClosing = (scene: Pick<Scene, "state">, ms: number): string[] =>
    planDispatch(scene.state, timeAt(ms)).flatMap((effect) =>
      effect.kind === "closeReview" ? effect.conflictId : [],
    );

  it("one that was not answered is closed when the host had its time to tell of the answer", () => {
    const scene = openAskedScene();
    expect(listClosing(scene, CLOSES_MS - 1)).toEqual([]);
    expect(listClosing(scene, CLOSES_MS)).toEqual([nameConflict(1)]);
    scene.when(answer(1, "unanswered"));
    expect(listClosing(scene, CLOSES_MS)).toEqual([]);
  });

  it("each has an effect of its own, the same every time", () => {
    const scene = openAskedScene();
    scene.when(request(1, requestReviewed(1, timeAt(REVIEW_BY_MS), REPORT)));
    const ids = planDispatch(scene.state, timeAt(CLOSES_MS)).map(({ effectId }) => effectId);
    expect(ids).toEqual([1, 2].map((number) => `co-1:review:${nameConflict(number)}`));
    expect(planDispatch(scene.state, timeAt(CLOSES_MS + 9)).map(({ effectId }) => effectId)).toEqual(ids);
  });

  it("it is the next deadline where it is first, and hides no other one", () => {
    const first = openAtWork(2, HELD_BY_2, request(1, requestReviewed(1, timeAt(10_000))));
    expect(findNextDeadline(first.state)).toBe(timeAt(10_000 + GRACE_MS));
    expect(findNextDeadline(first.state, timeAt(10_000 + GRACE_MS))).toBe(
      timeAt(TIMEOUT_MS + ACKNOWLEDGE_MS + 1_000),
    );
    const last = openAtWork(2, HELD_BY_2, request(1, requestReviewed(1, timeAt(500_000))));
    const overdue = timeAt(TIMEOUT_MS + ACKNOWLEDGE_MS + 1_000);
    expect(findNextDeadline(last.state)).toBe(overdue);
    expect(findNextDeadline(last.state, timeAt(TIMEOUT_MS + ACKNOWLEDGE_MS + 9_000))).toBe(
      timeAt(500_000 + GRACE_MS),
    );
  });

  it("it does not keep an idle coordination from its end, nor is it left out where the end comes later", () => {
    const idle = openAtWork(
      2,
      HELD_BY_2,
      request(OWNER_STEP_ID, requestReviewed(OWNER_STEP_ID)),
      complete(1),
    );
    idle.when(complete(2), 10_000);
    expect(findNextDeadline(idle.state)).toBe(timeAt(10_000 + SETTLE_MS));
    const kinds = planDispatch(idle.state, timeAt(10_000 + SETTLE_MS)).map(({ kind }) => kind);
    expect(kinds).toEqual(["endCoordination"]);
    // Whether the owner is still at work is not known here: the end may be put off, and the question is closed then.
    const later = planDispatch(idle.state, timeAt(CLOSES_MS)).map(({ kind }) => kind);
    expect(later).toEqual(["closeReview", "endCoordination"]);
    const early = openAtWork(
      2,
      HELD_BY_2,
      request(OWNER_STEP_ID, requestReviewed(OWNER_STEP_ID, timeAt(1_000))),
      complete(1),
    );
    early.when(complete(2), 15_000);
    expect(findNextDeadline(early.state)).toBe(timeAt(1_000 + GRACE_MS));
    expect(listClosing(early, 1_000 + GRACE_MS)).toEqual([nameConflict(1)]);
  });

  it("it is asked after beside the steps that are overdue", () => {
    const scene = openAskedScene(spawn("late"));
    const kinds = planDispatch(scene.state, timeAt(CLOSES_MS)).map(({ kind }) => kind);
    expect(kinds).toEqual(["askHost", "closeReview"]);
  });

  it("of a step of a plan is looked after as well as the plan", () => {
    const a = "a" as StepId;
    const steps = [planStep("a"), planStep("b", { retryBudget: 1, backoffMs: 60_000 })];
    const scene = planScene(
      openPlan({ steps: 2 }),
      admit(...steps),
      dispatch("a"),
      dispatch("b"),
      failStep("b"),
    );
    const retryAtMs = findNextDeadline(scene.state);
    if (retryAtMs === undefined) throw new Error("b is not tried again");
    scene.then(request(a, requestReviewed(a, timeAt(2_000))));
    expect(findNextDeadline(scene.state)).toBe(timeAt(2_000 + GRACE_MS));
    expect(scene.plans(2_000 + GRACE_MS)).toEqual(["closeReview"]);
    expect(findNextDeadline(scene.state, timeAt(2_000 + GRACE_MS))).toBe(retryAtMs);
    expect(scene.plans(retryAtMs - timeAt(0))).toEqual(["closeReview", "runStep b 2"]);
  });
});
