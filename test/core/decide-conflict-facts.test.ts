/** The record of a conflict, and the resolution that the rules give it again. */
import { describe, expect, it } from "vitest";
import type { ResourceContest } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import {
  draftResolutionByRules,
  draftRulingOfPeople,
  findSameConflict,
  isContested,
} from "../../src/agents/coordination/dispatch/conflict-facts.ts";
import type { Conflict } from "../../src/agents/coordination/ledger/state.ts";
import {
  createAsk,
  createContest,
  createContestant,
  createHolder,
  FOREIGN,
  nameConflict,
  NOTES,
  openAtWork,
  openOf,
  payloadsOf,
  request,
} from "./claims-scene.ts";
import { stepId, timeAt } from "./scene.ts";

const CLAIMS = [createContestant(1, 4), createHolder(2, 3)];
const HELD_BY_2 = request(2, createAsk(NOTES, 3));

const createConflict = (rest: Partial<ResourceContest> = {}): Conflict => {
  const { claims, ...contest } = createContest(CLAIMS, rest);
  return {
    conflictId: nameConflict(1),
    resource: NOTES,
    claims: [...claims],
    contest: { requester: stepId(1), atMs: timeAt(0), ...contest },
  } as Conflict;
};
const withoutContest = (): Conflict => {
  const { contest: _, ...conflict } = createConflict();
  return conflict;
};

describe("the resolution of a recorded conflict by the rules", () => {
  it("is the one that was recorded", () => {
    const scene = openAtWork(2, HELD_BY_2);
    scene.when(request(1, createAsk(NOTES, 4, { contest: createContest(CLAIMS) })));
    const [conflict] = openOf(scene).conflicts;
    if (!conflict) throw new Error("there is no conflict");
    expect(draftResolutionByRules(conflict)?.payload).toEqual(payloadsOf(scene.log, "conflict.resolved")[0]);
  });

  it("is against the requester where people should rule and nobody could be asked", () => {
    expect(draftResolutionByRules(createConflict({ strategy: "manual_review" }))).toEqual({
      type: "conflict.resolved",
      payload: {
        conflictId: nameConflict(1),
        strategy: "manual_review",
        losers: ["step-1"],
        because: "manual-review",
        rule: "strategy",
      },
    });
  });

  it("follows what came of a merge", () => {
    const merging = { strategy: "merge_if_safe" } as const;
    const obstacle = { kind: "obstacle", obstacle: "overlapping_changes" } as const;
    expect(draftResolutionByRules(createConflict({ ...merging, merge: obstacle }))?.payload).toMatchObject({
      losers: ["step-1"],
    });
    expect(
      draftResolutionByRules(createConflict({ ...merging, merge: { kind: "merged" } as never })),
    ).toMatchObject({ payload: { winner: "step-1" } });
    expect(draftResolutionByRules(createConflict(merging))).toBeUndefined();
  });

  it("is not known where people rule, and for ledgers that recorded too little", () => {
    expect(draftResolutionByRules(createConflict({ reviewByMs: timeAt(60_000) }))).toBeUndefined();
    expect(draftResolutionByRules(withoutContest())).toBeUndefined();
  });
});

describe("the ruling of people", () => {
  it("lets the requester win against all others, also of the same name elsewhere", () => {
    const elsewhere = createContestant(1, 9, { coordinationId: FOREIGN });
    const conflict = { ...createConflict(), claims: [...CLAIMS, elsewhere] };
    expect(draftRulingOfPeople(conflict, "approved").payload).toMatchObject({
      winner: "step-1",
      losers: ["step-2", "step-1"],
      strategy: "owner_wins",
    });
  });

  it("is about the owner and a review where the ledger recorded too little", () => {
    expect(draftRulingOfPeople(withoutContest(), "nobody_to_ask").payload).toEqual({
      conflictId: nameConflict(1),
      strategy: "manual_review",
      losers: [OWNER_STEP_ID],
      because: "nobody-to-ask",
      rule: "people",
    });
  });
});

describe("a conflict", () => {
  const contest = createContest(CLAIMS);

  it("is recorded with what is known of the resource alone", () => {
    const scene = openAtWork(2, HELD_BY_2);
    scene.when(request(1, createAsk(NOTES, 4, { contest })));
    const [detected] = payloadsOf(scene.log, "conflict.detected");
    for (const field of ["base", "current", "reviewByMs", "merge", "hook"])
      expect(detected?.contest).not.toHaveProperty(field);
    scene.when(request(1, createAsk(NOTES, 4, { contest, base: "v0", current: "v1" })));
    expect(payloadsOf(scene.log, "conflict.detected")[1]?.contest).toMatchObject({
      base: "v0",
      current: "v1",
    });
  });

  it("that the requester has won is not the same as a new one", () => {
    const won = createContest([createContestant(1, 4, { declared: true }), createHolder(2, 3)]);
    const wish = createAsk(NOTES, 4, { contest: won });
    if (!isContested(wish)) throw new Error("nobody else wants it");
    const scene = openAtWork(2, HELD_BY_2, request(1, wish));
    expect(payloadsOf(scene.log, "conflict.resolved")[0]?.winner).toBe("step-1");
    expect(findSameConflict(openOf(scene), stepId(1), wish)).toBeUndefined();
  });

  it("that ended for a step of the same name elsewhere is the same", () => {
    const foreign = createHolder(1, 3, { coordinationId: FOREIGN });
    const wish = createAsk(NOTES, 4, { contest: createContest([createContestant(1, 4), foreign]) });
    if (!isContested(wish)) throw new Error("nobody else wants it");
    const scene = openAtWork(1, request(1, wish));
    expect(payloadsOf(scene.log, "conflict.resolved")[0]).toMatchObject({ winnerCoordinationId: FOREIGN });
    expect(findSameConflict(openOf(scene), stepId(1), wish)?.conflictId).toBe(nameConflict(1));
  });
});
