/** Questions to people about contested writes that the host cannot ask about, and what an answer allows. */
import { describe, expect, it } from "vitest";
import type { Command, ResourceRequest } from "../../src/agents/coordination/contracts/commands.ts";
import { OUTSIDE_STEP_ID, OWNER_STEP_ID, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findConflictUnderReview,
  findSameConflict,
  isContested,
} from "../../src/agents/coordination/dispatch/conflict-facts.ts";
import {
  canAskAboutContests,
  CONFLICT_QUESTIONS_MAX,
  createUnusedApprovalCheck,
  findOpenConflictQuestion,
  isChangeApproved,
  listApprovedReviews,
} from "../../src/agents/coordination/dispatch/conflict-questions.ts";
import {
  answer as settle,
  change,
  createAsk,
  createContest,
  createContestant,
  createHolder,
  describeDecision,
  FOREIGN,
  LEASE_MS,
  nameConflict,
  NOTES,
  openOf,
  payloadsOf,
  release,
  REPORT,
  request,
  tokensOf,
} from "./claims-scene.ts";
import { answer as answerQuestion, cancel } from "./planned-scene.ts";
import {
  acknowledge,
  complete,
  nameChild,
  OPEN,
  openScene,
  OWNER,
  SETTLE,
  spawn,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";

const ANSWER_MS = 60_000;
const OPEN_ASKING = {
  ...OPEN,
  questions: { answerMs: ANSWER_MS, notify: [{ channel: "chat", afterMs: 0 }] },
} as Command;

/** Step 2 holds the notes. */
const openAsking = (...more: readonly Command[]): Scene =>
  openScene(
    OPEN_ASKING,
    spawn("a"),
    acknowledge(1),
    spawn("b"),
    acknowledge(2),
    request(2, createAsk(NOTES, 3)),
    ...more,
  );
const createWish = (step: number | StepId, resource: string, asksPeople = true): ResourceRequest =>
  createAsk(resource, 4, {
    contest: createContest([createContestant(step, 4), createHolder(2, 3)], {
      strategy: "manual_review",
      ...(asksPeople && { asksPeople }),
    }),
  });
const askFor = (step: number | StepId, ...resources: readonly string[]): Command =>
  request(step, ...resources.map((resource) => createWish(step, resource)));
const approve = answerQuestion(1, "approve");
const deny = answerQuestion(1, "deny");
const expire: Command = { type: "expireEscalation", escalationId: "escalation-1" };
const CLAIM = { token: 9, expiresAtMs: timeAt(LEASE_MS) };
/** Step 1 asked about the notes, people let it write, and it has a claim. */
const openApproved = (...more: readonly Command[]): Scene =>
  openAsking(askFor(1, NOTES), approve, settle(1, "approved", CLAIM), ...more);

const findSame = (scene: Scene, wish: ResourceRequest): string | undefined => {
  if (!isContested(wish)) throw new Error("nobody else wants it");
  return findSameConflict(openOf(scene), stepId(1), wish)?.conflictId;
};

describe("a question about a contested write", () => {
  it("is asked for the step and its session, with the time that people have", () => {
    const { log } = openAsking(askFor(1, NOTES));
    const detected = payloadsOf(log, "conflict.detected");
    expect(payloadsOf(log, "coordination.escalated")).toEqual([
      {
        escalationId: "escalation-1",
        cause: "conflict",
        kind: "approval",
        answers: ["approve", "deny"],
        conflictId: nameConflict(1),
        stepId: "step-1",
        askedBy: nameChild(1),
        onExpiry: "deny",
        deadlineAtMs: detected[0]?.contest?.reviewByMs,
        notices: [{ channel: "chat", atMs: expect.any(Number) as number }],
      },
    ]);
  });

  it("is asked for the owner without a step", () => {
    const { log } = openAsking(askFor(OWNER_STEP_ID, NOTES));
    const [question] = payloadsOf(log, "coordination.escalated");
    expect(question).toMatchObject({ askedBy: OWNER });
    expect(question).not.toHaveProperty("stepId");
  });

  it("is asked without a session where the child has none yet", () => {
    const { log } = openAsking(spawn("c"), askFor(3, NOTES));
    const [question] = payloadsOf(log, "coordination.escalated");
    expect(question).toMatchObject({ stepId: "step-3" });
    expect(question).not.toHaveProperty("askedBy");
  });

  it("is a question of its own for each resource, counted on", () => {
    const { log } = openAsking(askFor(1, NOTES, REPORT));
    expect(payloadsOf(log, "coordination.escalated").map(({ escalationId }) => escalationId)).toEqual([
      "escalation-1",
      "escalation-2",
    ]);
  });

  it("is asked beside what the host itself asks about", () => {
    const contest = createContest([createContestant(1, 4), createHolder(2, 3)], {
      strategy: "manual_review",
      reviewByMs: timeAt(ANSWER_MS),
    });
    const scene = openAsking(request(1, createAsk(NOTES, 4, { contest })));
    expect(describeDecision(scene.when(askFor(1, REPORT)))).toContain("coordination.escalated");
    expect(listApprovedReviews(openOf(scene))).toEqual([]);
  });

  it("is asked once for a resource while it is open, and again by another step", () => {
    const scene = openAsking(askFor(1, NOTES));
    expect(describeDecision(scene.when(askFor(1, NOTES, REPORT)))).toEqual([
      "conflict.detected",
      "coordination.escalated",
    ]);
    expect(payloadsOf(scene.log, "conflict.detected").map(({ resource }) => resource)).toEqual([
      NOTES,
      REPORT,
    ]);
    expect(scene.when(askFor(1, NOTES)).kind).toBe("replay");
    expect(describeDecision(scene.when(askFor(OWNER_STEP_ID, NOTES)))).toContain("coordination.escalated");
  });

  it("is not asked where nobody is notified, nor where one part of the request is ruled otherwise", () => {
    const silent = openScene(OPEN, spawn("a"), acknowledge(1), spawn("b"), acknowledge(2));
    expect(describeDecision(silent.when(askFor(1, NOTES)))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
    const mixed = request(1, createWish(1, NOTES), createWish(1, REPORT, false));
    const decided = describeDecision(openAsking().when(mixed));
    expect(decided).not.toContain("coordination.escalated");
  });

  it("is not asked beyond the number of open questions of a step", () => {
    const names = Array.from({ length: CONFLICT_QUESTIONS_MAX }, (_, at) => `file:/repo/${at}.md`);
    const scene = openAsking(askFor(1, ...names.slice(2)));
    const canAsk = (...resources: readonly string[]): boolean =>
      canAskAboutContests(
        openOf(scene),
        stepId(1),
        resources.map((resource) => createWish(1, resource)).filter(isContested),
      );
    expect(canAsk(NOTES, REPORT)).toBe(true);
    expect(canAsk(NOTES, REPORT, names[2] ?? "")).toBe(true);
    expect(canAsk(NOTES, REPORT, "queue:q")).toBe(false);
  });

  it("is found by who asked and about what, while it is open", () => {
    const scene = openAsking(askFor(1, NOTES, REPORT));
    const find = (step: number, resource: string): string | undefined =>
      findOpenConflictQuestion(openOf(scene), stepId(step), resource)?.escalationId;
    expect([find(1, NOTES), find(1, REPORT), find(2, NOTES), find(1, "queue:q")]).toEqual([
      "escalation-1",
      "escalation-2",
      undefined,
      undefined,
    ]);
    scene.when(approve);
    expect(find(1, NOTES)).toBeUndefined();
  });
});

describe("the answer to a question about a contested write", () => {
  const listRulings = (scene: Scene): unknown[] =>
    payloadsOf(scene.log, "conflict.resolved").map(({ conflictId, because }) => [conflictId, because]);

  it("refuses the write at once where people deny it, and that write alone", () => {
    const scene = openAsking(askFor(1, NOTES, REPORT), deny);
    expect(listRulings(scene)).toEqual([[nameConflict(1), "denied"]]);
  });

  it("refuses it where nobody answers in time", () => {
    const scene = openAsking(askFor(1, NOTES));
    scene.when(expire, 10 * ANSWER_MS);
    expect(listRulings(scene)).toEqual([[nameConflict(1), "unanswered"]]);
  });

  it("resolves nothing by an approval until the step has a claim", () => {
    const scene = openAsking(askFor(1, NOTES, REPORT), approve);
    expect(listRulings(scene)).toEqual([]);
    expect(listApprovedReviews(openOf(scene)).map(({ conflictId }) => conflictId)).toEqual([nameConflict(1)]);
    scene.when(settle(1, "approved", CLAIM));
    expect(listRulings(scene)).toEqual([[nameConflict(1), "approved"]]);
    expect(listApprovedReviews(openOf(scene))).toEqual([]);
  });

  it("is not waited for any more when the step ends", () => {
    const scene = openAsking(askFor(1, NOTES), askFor(OWNER_STEP_ID, NOTES));
    scene.when(complete(1));
    expect(payloadsOf(scene.log, "escalation.closed")).toEqual([
      { escalationId: "escalation-1", resolution: "cancelled" },
    ]);
    expect(listRulings(scene)).toEqual([[nameConflict(1), "withdrawn"]]);
  });

  it("stays where it was given before the step ended", () => {
    const scene = openAsking(askFor(1, NOTES), approve, complete(1));
    expect(payloadsOf(scene.log, "escalation.closed")).toHaveLength(1);
    expect(listRulings(scene)).toEqual([[nameConflict(1), "withdrawn"]]);
  });
});

describe("an approved write", () => {
  const claimOf = (rest: Partial<Parameters<typeof isChangeApproved>[1]> = {}) => ({
    stepId: stepId(1),
    resource: NOTES,
    acquiredAtMs: timeAt(0),
    ...rest,
  });
  const findApprovalTime = (scene: Scene) => {
    const atMs = openOf(scene).conflicts.at(-1)?.resolvedAtMs;
    if (atMs === undefined) throw new Error("it is not resolved");
    return atMs;
  };
  const others = { claims: [createContestant(2, 3)], current: undefined };

  it("is that of the step, on the resource, with the claim of the approval", () => {
    const scene = openApproved();
    const state = openOf(scene);
    const atMs = findApprovalTime(scene);
    const check = (rest: Parameters<typeof claimOf>[0]): boolean =>
      isChangeApproved(state, claimOf(rest), others);
    expect(check({ acquiredAtMs: atMs })).toBe(true);
    expect(check({ acquiredAtMs: timeAt(LEASE_MS) })).toBe(false);
    expect(check({ stepId: stepId(2) })).toBe(false);
    expect(check({ resource: REPORT })).toBe(false);
    const isKept = createUnusedApprovalCheck(state);
    expect(isKept(claimOf())).toBe(true);
    expect(isKept(claimOf({ resource: REPORT }))).toBe(false);
  });

  it("is approved against those that people knew of, as long as they change nothing", () => {
    const scene = openApproved();
    const atMs = findApprovalTime(scene);
    const check = (...claims: ReturnType<typeof createContestant>[]): boolean =>
      isChangeApproved(openOf(scene), claimOf(), { claims, current: undefined });
    expect(check()).toBe(true);
    expect(check(createContestant(2, 7, { changedAtMs: atMs }))).toBe(true);
    expect(check(createContestant(2, 7, { changedAtMs: timeAt(LEASE_MS) }))).toBe(false);
    expect(check(createContestant(3, 7))).toBe(false);
    expect(check(createContestant(2, 7, { coordinationId: FOREIGN }))).toBe(false);
    expect(check(...others.claims, createContestant(3, 7))).toBe(false);
  });

  it("is approved against somebody outside as long as the file is what people were asked about", () => {
    const outside = createContestant(OUTSIDE_STEP_ID, 0, { changedAtMs: timeAt(0) });
    const wish = createWish(1, NOTES);
    const contest = wish.contest && { ...wish.contest, claims: [...wish.contest.claims, outside] };
    const question = request(1, { ...wish, current: "v1", ...(contest && { contest }) });
    const state = openOf(openAsking(question, approve, settle(1, "approved", CLAIM)));
    const check = (current: string | undefined): boolean =>
      isChangeApproved(state, claimOf(), { claims: [outside], current });
    expect([check("v1"), check("v2"), check(undefined)]).toEqual([true, false, false]);
  });

  it("happens once", () => {
    const used = openApproved(change(1, "v2", { token: CLAIM.token }));
    expect(isChangeApproved(openOf(used), claimOf(), others)).toBe(false);
    const overwritten = openApproved(change(1, "v2", { token: CLAIM.token }), change(2, "v3", { token: 3 }));
    expect(isChangeApproved(openOf(overwritten), claimOf(), others)).toBe(false);
    const changedBefore = openAsking(change(1, "v1"), askFor(1, NOTES), approve);
    changedBefore.when(settle(1, "approved", CLAIM));
    expect(isChangeApproved(openOf(changedBefore), claimOf(), others)).toBe(true);
    const changedByOther = openApproved(change(2, "v2", { token: 3 }));
    expect(isChangeApproved(openOf(changedByOther), claimOf(), others)).toBe(true);
  });

  it("is none where people denied it, or where there is no claim yet", () => {
    for (const scene of [
      openAsking(askFor(1, NOTES), deny),
      openAsking(askFor(1, NOTES), approve),
      openAsking(askFor(1, NOTES)),
    ])
      expect(isChangeApproved(openOf(scene), claimOf(), others)).toBe(false);
  });
});

describe("the end of a turn", () => {
  const endTurn = (because: "turn_ended" | "operator" = "turn_ended"): Command =>
    release({ because, stepId: stepId(1) });

  it("leaves the questions that we asked, and ends the ones that the host asks", () => {
    const scene = openAsking(askFor(1, NOTES));
    expect(scene.when(endTurn()).kind).toBe("replay");
    const hosted = openAsking();
    const contest = createContest([createContestant(1, 4), createHolder(2, 3)], {
      strategy: "manual_review",
      reviewByMs: timeAt(ANSWER_MS),
    });
    hosted.when(request(1, createAsk(NOTES, 4, { contest })));
    expect(describeDecision(hosted.when(endTurn()))).toEqual(["conflict.resolved"]);
  });

  it("leaves the claim of an approved write, and ends the others of the step", () => {
    const scene = openApproved(request(1, createAsk(REPORT, 10)));
    scene.when(endTurn());
    expect(tokensOf(scene)).toEqual([CLAIM.token]);
    scene.when(endTurn("operator"));
    expect(tokensOf(scene)).toEqual([]);
  });

  it("is not the end of the coordination, which closes each question once", () => {
    const scene = openAsking(askFor(OWNER_STEP_ID, NOTES), cancel(), complete(1), complete(2));
    expect(describeDecision(scene.when(SETTLE))).toEqual([
      "escalation.closed",
      "conflict.resolved",
      "coordination.terminal",
    ]);
  });
});

describe("an earlier ruling", () => {
  it("counts again for the same request, and for no other", () => {
    const scene = openAsking(request(1, createWish(1, NOTES, false)));
    const rest = { strategy: "manual_review" } as const;
    const claims = [createContestant(1, 4), createHolder(2, 3)];
    const createSame = (contest: Parameters<typeof createContest>[1], resource = NOTES): ResourceRequest =>
      createAsk(resource, 4, { contest: createContest(claims, { ...rest, ...contest }) });
    expect(findSame(scene, createSame({}))).toBe(nameConflict(1));
    expect(findSame(scene, createSame({ strategy: "owner_wins" }))).toBeUndefined();
    expect(findSame(scene, createSame({}, REPORT))).toBeUndefined();
    expect(findSame(scene, createSame({ reviewByMs: timeAt(ANSWER_MS) }))).toBeUndefined();
    expect(findSame(openAsking(askFor(1, NOTES)), createSame({}))).toBeUndefined();
    const oldOwner = createHolder(OWNER_STEP_ID as never, 3, { coordinationId: FOREIGN });
    expect(
      findSame(scene, createAsk(NOTES, 4, { contest: createContest([...claims, oldOwner], rest) })),
    ).toBeUndefined();
  });

  it("is not found for another step", () => {
    const scene = openAsking(spawn("c"), request(3, createWish(3, NOTES, false)));
    expect(findSame(scene, createWish(1, NOTES, false))).toBeUndefined();
  });

  it("of people is found while they review it, by step and resource", () => {
    const scene = openAsking(askFor(1, NOTES, REPORT), askFor(OWNER_STEP_ID, NOTES));
    const find = (step: StepId, resource: string): string | undefined =>
      findConflictUnderReview(openOf(scene), step, resource)?.conflictId;
    expect([find(stepId(1), NOTES), find(stepId(1), REPORT), find(stepId(2), NOTES)]).toEqual([
      nameConflict(1),
      nameConflict(2),
      undefined,
    ]);
    scene.when(deny);
    expect(find(stepId(1), NOTES)).toBeUndefined();
  });
});
