/** Owns: the words, the tokens and the reasons that go with claims and conflicts. */
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command, ResourceRequest } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  answer,
  change,
  createAsk,
  createContest,
  createContestant,
  createHolder,
  describeDecision,
  LEASE_MS,
  nameConflict,
  NOTES,
  openAtWork,
  openOf,
  payloadsOf,
  REPORT,
  request,
  tokensOf,
} from "./claims-scene.ts";
import { admit, dispatch, openPlan, planScene, planStep } from "./planned-scene.ts";
import {
  acknowledge,
  complete,
  openScene,
  OPEN,
  spawn,
  stepId,
  timeAt,
  describeReason,
  type Scene,
} from "./scene.ts";

const HELD_BY_2 = request(2, createAsk(NOTES, 3));
const TAKEN_TOKEN = "STALE_TOKEN: another process claimed a resource first; read the claims and rule again";

describe("a request is refused with the reason", () => {
  it.each<readonly [string, () => Scene, Command]>([
    [
      "STEP_ENDED: step step-1 has no attempt under way, so it cannot claim resources",
      () => openAtWork(1, complete(1)),
      request(1, createAsk(NOTES, 1)),
    ],
    [
      `STALE_TOKEN: claim 9 of step step-1 on ${NOTES} has ended`,
      () => openAtWork(1),
      request(1, createAsk(NOTES, 10, { held: 9 })),
    ],
    ["UNKNOWN_STEP: there is no step step-7", () => openAtWork(1), change(7, "a")],
  ])("%s", (reason, open, command) => {
    expect(describeReason(open().when(command))).toBe(reason);
  });

  it("where a step has as many claims, or a coordination as many conflicts, as there may be", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const state = openOf(scene);
    const crowded = { ...state, claimCounts: state.claimCounts.set(stepId(1), BOUNDS.claimsPerStepMax) };
    expect(describeReason(decide(crowded, request(1, createAsk(REPORT, 4)), timeAt(0)))).toBe(
      `TOO_MANY_CLAIMS: a step holds at most ${BOUNDS.claimsPerStepMax} claims; end it and go on in another`,
    );
    const contest = createContest([createContestant(1, 4), createHolder(2, 3)]);
    scene.when(request(1, createAsk(NOTES, 4, { contest })));
    const [conflict] = openOf(scene).conflicts;
    if (!conflict) throw new Error("no conflict");
    const conflicts = Array.from({ length: BOUNDS.conflictsPerCoordinationMax }, () => conflict);
    const disputed: OpenCoordination = { ...openOf(scene), conflicts };
    const other = createAsk(NOTES, 4, { contest: { ...contest, cause: "stale_base" } });
    expect(describeReason(decide(disputed, request(1, other), timeAt(0)))).toBe(
      `TOO_MANY_CONFLICTS: the coordination has recorded ${BOUNDS.conflictsPerCoordinationMax} conflicts, the most that it may have; end the step`,
    );
  });
});

describe("a token", () => {
  it.each([1, 3])("that is no newer than the newest claim is refused: %i of 3", (token) => {
    const scene = openAtWork(2, HELD_BY_2);
    expect(describeReason(scene.when(request(1, createAsk(REPORT, token))))).toBe(TAKEN_TOKEN);
    expect(tokensOf(scene)).toEqual([3]);
  });

  it("need not be newer where the step's own claim is renewed", () => {
    const scene = openAtWork(2, request(1, createAsk(REPORT, 1)), HELD_BY_2);
    const renewed = createAsk(REPORT, 1, { held: 1, expiresAtMs: timeAt(LEASE_MS + 1) });
    expect(describeDecision(scene.when(request(1, renewed)))).toEqual(["claim.renewed"]);
  });
});

describe("a claim", () => {
  it("has the priority of its step, and the owner's a normal one", () => {
    const scene = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a", { priority: "high" })),
      dispatch("a"),
      request("a" as StepId, createAsk(NOTES, 1)),
      request(OWNER_STEP_ID, createAsk(REPORT, 2)),
    );
    expect(payloadsOf(scene.log, "claim.acquired").map(({ priority }) => priority)).toEqual([
      ...["high", "normal"],
    ]);
  });

  it("names no version where nobody knew one", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1)));
    expect(payloadsOf(scene.log, "claim.acquired")[0]).not.toHaveProperty("base");
  });

  it("takes the place of the step's own one, which ends as preempted while its lease runs", () => {
    const scene = openAtWork(1, request(1, createAsk(NOTES, 1)), request(1, createAsk(NOTES, 2)));
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-1", token: 1, because: "preempted" },
    ]);
    expect(tokensOf(scene)).toEqual([2]);
  });

  it("is taken over from the step that delegated the work, and says so; no other one ends", () => {
    const scene = openAtWork(3, request(2, createAsk("file:/repo", 1)), request(3, createAsk(REPORT, 2)));
    const wanted = createAsk(NOTES, 3, { delegated: [stepId(2)] });
    expect(describeDecision(scene.when(request(1, wanted)))).toEqual(["claim.released", "claim.acquired"]);
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-2", token: 1, because: "delegated" },
    ]);
    expect(tokensOf(scene)).toEqual([2, 3]);
  });

  it("may come later than the conflict that it is won by, which is recorded with the losers' ends", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const contest = createContest([createContestant(1, 4, { declared: true }), createHolder(2, 3)]);
    const wins = { ...request(1, createAsk(NOTES, 4, { contest })), claimsLater: true as const };
    expect(describeDecision(scene.when(wins))).toEqual([
      ...["conflict.detected", "conflict.resolved", "claim.released"],
    ]);
    expect(describeDecision(scene.when(request(1, createAsk(NOTES, 4))))).toEqual(["claim.acquired"]);
    expect(tokensOf(scene)).toEqual([4]);
  });
});

describe("a conflict that is one of several", () => {
  const QUESTIONS = { answerMs: 60_000, notify: [{ channel: "chat", afterMs: 0 }] };
  const OPEN_ASKING = { ...OPEN, questions: QUESTIONS } as Command;
  const createDispute = (resource: string, rest: Partial<ResourceRequest["contest"]> = {}): ResourceRequest =>
    createAsk(resource, 4, {
      contest: createContest([createContestant(1, 4), createHolder(2, 3)], {
        strategy: "manual_review",
        ...rest,
      }),
    });
  const openAsking = (...more: readonly Command[]): Scene =>
    openScene(OPEN_ASKING, spawn("a"), acknowledge(1), spawn("b"), acknowledge(2), HELD_BY_2, ...more);
  const askFor = (...resources: readonly string[]): Command =>
    request(1, ...resources.map((resource) => createDispute(resource, { asksPeople: true })));
  const listNames = (scene: Scene): string[] =>
    payloadsOf(scene.log, "conflict.detected").map(({ conflictId }) => conflictId);

  it("has a number of its own, where people are asked about each", () => {
    const scene = openAsking(askFor(NOTES, REPORT, "queue:q"));
    expect(listNames(scene)).toEqual([1, 2, 3].map(nameConflict));
    expect(payloadsOf(scene.log, "coordination.escalated").map(({ conflictId }) => conflictId)).toEqual(
      [1, 2, 3].map(nameConflict),
    );
  });

  it("is recorded without those of the same request that were won", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const won = createContest([createContestant(1, 5, { declared: true }), createHolder(2, 3)]);
    const mixed = request(1, createAsk(REPORT, 5, { contest: won }), createDispute(NOTES));
    expect(describeDecision(scene.when(mixed))).toEqual(["conflict.detected", "conflict.resolved"]);
    expect(payloadsOf(scene.log, "conflict.detected").map(({ resource }) => resource)).toEqual([NOTES]);
  });

  it("is withdrawn, and not lost, where people let the change happen and it came too late", () => {
    const approving: Command = {
      type: "answerEscalation",
      escalationId: "escalation-1",
      answer: "approve",
      by: { kind: "operator" },
      through: "cli",
    };
    const scene = openAsking(askFor(NOTES), approving);
    scene.when(answer(1, "unanswered"));
    expect(payloadsOf(scene.log, "conflict.resolved")).toEqual([
      expect.objectContaining({ losers: ["step-1"], because: "withdrawn", rule: "people" }),
    ]);
  });
});

describe("an approval of people", () => {
  const requestReviewed = (rest: Partial<ResourceRequest> = {}): Command =>
    request(
      1,
      createAsk(NOTES, 4, {
        contest: createContest([createContestant(1, 4), createHolder(2, 3)], {
          strategy: "manual_review",
          reviewByMs: timeAt(40_000),
        }),
        ...rest,
      }),
    );
  const claimOf = (token: number) => ({ token, expiresAtMs: timeAt(LEASE_MS * 2) });

  it.each([2, 3])(
    "whose token another claim has meanwhile is refused, to be made again: %i of 3",
    (token) => {
      const scene = openAtWork(2, HELD_BY_2, requestReviewed());
      expect(describeReason(scene.when(answer(1, "approved", claimOf(token))))).toBe(TAKEN_TOKEN);
      expect(openOf(scene).reviews.size).toBe(1);
    },
  );

  it("needs no newer token where the requester's own claim is renewed", () => {
    const scene = openAtWork(2, request(1, createAsk(NOTES, 1)), HELD_BY_2, requestReviewed({ held: 1 }));
    expect(describeDecision(scene.when(answer(1, "approved", claimOf(2))))).toEqual([
      ...["conflict.resolved", "claim.released", "claim.renewed"],
    ]);
  });

  it("ends the other claims as preempted", () => {
    const scene = openAtWork(2, HELD_BY_2, requestReviewed());
    scene.when(answer(1, "approved", claimOf(4)));
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-2", token: 3, because: "preempted" },
    ]);
  });
});

describe("a change outside of the folder that was asked for", () => {
  const OTHER_FILE = "file:/elsewhere/notes.md";
  const openAsked = (...more: readonly Command[]): Scene =>
    openScene(OPEN, spawn("a", { requested: { folder: "/repo" } }), acknowledge(1), ...more);
  const changeOf = (resource: string, step: StepId = stepId(1)): Command =>
    ({
      ...change(1, "v1"),
      stepId: step,
      resource,
    }) as Command;

  it("is a difference of the child while it works, and none of one that has ended", () => {
    expect(describeDecision(openAsked().when(changeOf(OTHER_FILE)))).toEqual([
      "resource.changed",
      "child.differed",
    ]);
    expect(describeDecision(openAsked().when(changeOf(NOTES)))).toEqual(["resource.changed"]);
    expect(describeDecision(openAsked(complete(1)).when(changeOf(OTHER_FILE)))).toEqual(["resource.changed"]);
  });

  it("is none of the owner, whose folder nobody asked for", () => {
    expect(describeDecision(openAsked().when(changeOf(OTHER_FILE, OWNER_STEP_ID)))).toEqual([
      "resource.changed",
    ]);
  });
});

describe("a claim whose lease ended before it could be recorded", () => {
  const reason = "STALE_TOKEN: the lease ended before the claim could be recorded; rule again";

  it("is not granted, because another step may claim the same", () => {
    const scene = openAtWork(1);
    const claiming = request(1, createAsk(REPORT, 3), createAsk(NOTES, 4, { expiresAtMs: timeAt(9_000) }));
    expect(describeReason(scene.when(claiming, 9_000))).toBe(reason);
    expect(describeDecision(scene.when(claiming, 8_999))).toEqual(["claim.acquired", "claim.acquired"]);
  });

  it("is still told that it is refused where somebody else holds it", () => {
    const scene = openAtWork(2, HELD_BY_2);
    const contest = createContest([createContestant(1, 4), createHolder(2, 3)]);
    const contested = request(1, createAsk(NOTES, 4, { contest, expiresAtMs: timeAt(9_000) }));
    expect(describeDecision(scene.when(contested, 9_000))).toEqual([
      "conflict.detected",
      "conflict.resolved",
    ]);
  });

  it("does not come with an approval", () => {
    const contest = createContest([createContestant(1, 4), createHolder(2, 3)], {
      strategy: "manual_review",
      reviewByMs: timeAt(60_000),
    });
    const scene = openAtWork(2, HELD_BY_2, request(1, createAsk(NOTES, 4, { contest })));
    const approve = answer(1, "approved", { token: 5, expiresAtMs: timeAt(20_000) });
    expect(describeReason(scene.when(approve, 20_000))).toBe(reason);
    expect(scene.when(approve, 19_999).kind).toBe("accepted");
  });
});
