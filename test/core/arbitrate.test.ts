import { describe, expect, it } from "vitest";
import {
  arbitrate,
  type Contest,
  type ArbitrationRuling,
} from "../../src/agents/coordination/arbitration/arbitrate.ts";
import {
  type Contestant,
  type MergeEvidence,
  mergeObstacleSchema,
} from "../../src/agents/coordination/contracts/arbitration.ts";
import {
  OWNER_STEP_ID,
  OUTSIDE_STEP_ID,
  type CoordinationId,
} from "../../src/agents/coordination/contracts/ids.ts";
import {
  conflictStrategySchema,
  type ConflictStrategy,
} from "../../src/agents/coordination/contracts/plan.ts";
import { createContestant, FOREIGN, createHolder } from "./claims-scene.ts";
import { timeAt, stepId } from "./scene.ts";

/** The requester is step 1; its claim would get the token 9. */
const REQUESTER = stepId(1);
const createRequester = (rest: Partial<Contestant> = {}): Contestant => createContestant(1, 9, rest);
const createChanger = (step: number, token: number, rest: Partial<Contestant> = {}): Contestant =>
  createContestant(step, token, { changedAtMs: timeAt(0), ...rest });
const declared = { declared: true };
const high = { priority: "high" } as const;
const low = { priority: "low" } as const;

/** As one line: granted or refused, to whom, by which rule, why. */
function describeRuling(ruling: ArbitrationRuling): string {
  if (ruling.kind === "merge") return "merge";
  if (ruling.kind === "review") return `review: ${ruling.because}`;
  const { kind, winner, rule, because } = ruling;
  const whose = winner.coordinationId === undefined ? "" : ` of ${winner.coordinationId}`;
  return `${kind}: ${winner.stepId}${whose}, ${rule}, ${because}`;
}

function rule(
  strategy: ConflictStrategy,
  claims: readonly Contestant[],
  merge?: MergeEvidence,
): ArbitrationRuling {
  return arbitrate({ requester: REQUESTER, claims, strategy, ...(merge && { merge }) });
}

interface Situation {
  readonly when: string;
  readonly claims: readonly Contestant[];
  readonly owner: string;
  readonly priority: string;
}

const MINE = "granted: step-1";
const THEIRS = "refused: step-2";

const SITUATIONS: readonly Situation[] = [
  {
    when: "another step holds it",
    claims: [createRequester(), createHolder(2, 3)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${THEIRS}, lease, lease-holder`,
  },
  {
    when: "another step of higher priority holds it",
    claims: [createRequester(), createHolder(2, 3, high)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${THEIRS}, strategy, highest-priority`,
  },
  {
    when: "another step of lower priority holds it",
    claims: [createRequester(), createHolder(2, 3, low)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${MINE}, strategy, highest-priority`,
  },
  {
    when: "the requester declared it and another step holds it",
    claims: [createRequester(declared), createHolder(2, 3)],
    owner: `${MINE}, ownership, declared-owner`,
    priority: `${MINE}, ownership, declared-owner`,
  },
  {
    when: "the requester declared it and a step of higher priority holds it",
    claims: [createRequester(declared), createHolder(2, 3, high)],
    owner: `${MINE}, ownership, declared-owner`,
    priority: `${THEIRS}, strategy, highest-priority`,
  },
  {
    when: "another step declared it and has not claimed it",
    claims: [createRequester(), createContestant(2, 0, declared)],
    owner: `${THEIRS}, ownership, declared-owner`,
    priority: `${THEIRS}, ownership, declared-owner`,
  },
  {
    when: "another step of lower priority declared it and has not claimed it",
    claims: [createRequester(), createContestant(2, 0, { ...declared, ...low })],
    owner: `${THEIRS}, ownership, declared-owner`,
    priority: `${MINE}, strategy, highest-priority`,
  },
  {
    when: "the requester holds it already and another step declared it",
    claims: [createHolder(1, 1), createContestant(2, 0, declared)],
    owner: `${THEIRS}, ownership, declared-owner`,
    priority: `${THEIRS}, ownership, declared-owner`,
  },
  {
    when: "both declared it and the other one holds it",
    claims: [createRequester(declared), createHolder(2, 3, declared)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${THEIRS}, lease, lease-holder`,
  },
  {
    when: "both declared it and nobody holds it",
    claims: [createRequester(declared), createContestant(2, 0, declared)],
    owner: `${MINE}, lease, earliest-claim`,
    priority: `${MINE}, lease, earliest-claim`,
  },
  {
    when: "another step has changed it since",
    claims: [createRequester(), createChanger(2, 3)],
    owner: `${THEIRS}, lease, changed-since`,
    priority: `${THEIRS}, lease, changed-since`,
  },
  {
    when: "another step of lower priority has changed it since",
    claims: [createRequester(), createChanger(2, 3, low)],
    owner: `${THEIRS}, lease, changed-since`,
    priority: `${MINE}, strategy, highest-priority`,
  },
  {
    when: "the requester declared it and another step has changed it since",
    claims: [createRequester(declared), createChanger(2, 3)],
    owner: `${MINE}, ownership, declared-owner`,
    priority: `${MINE}, ownership, declared-owner`,
  },
  {
    when: "the requester has held it for longer, and another step has changed it since",
    claims: [createHolder(1, 1), createChanger(2, 3)],
    owner: `${THEIRS}, lease, changed-since`,
    priority: `${THEIRS}, lease, changed-since`,
  },
  {
    when: "one step holds it and another has changed it since",
    claims: [createRequester(), createHolder(3, 3), createChanger(2, 5)],
    owner: `${THEIRS}, lease, changed-since`,
    priority: `${THEIRS}, lease, changed-since`,
  },
  {
    when: "somebody outside has changed it since",
    claims: [createRequester(), createContestant(OUTSIDE_STEP_ID, 0, { changedAtMs: timeAt(0) })],
    owner: `refused: ${OUTSIDE_STEP_ID}, lease, changed-since`,
    priority: `refused: ${OUTSIDE_STEP_ID}, lease, changed-since`,
  },
  {
    when: "the requester holds what is above it, and another step claimed it later",
    claims: [createHolder(1, 2), createHolder(2, 3)],
    owner: `${MINE}, lease, lease-holder`,
    priority: `${MINE}, lease, lease-holder`,
  },
  {
    when: "the requester holds it, and another step held it before",
    claims: [createHolder(1, 5), createHolder(2, 3)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${THEIRS}, lease, lease-holder`,
  },
  {
    when: "the step of the same name in another coordination holds it",
    claims: [createRequester(), createHolder(1, 3, { coordinationId: FOREIGN })],
    owner: `refused: step-1 of ${FOREIGN}, lease, lease-holder`,
    priority: `refused: step-1 of ${FOREIGN}, lease, lease-holder`,
  },
  {
    when: "the step of the same name in another coordination holds it with lower priority",
    claims: [createRequester(), createHolder(1, 3, { coordinationId: FOREIGN, ...low })],
    owner: `refused: step-1 of ${FOREIGN}, lease, lease-holder`,
    priority: `${MINE}, strategy, highest-priority`,
  },
  {
    when: "the owner's session holds it",
    claims: [createRequester(), createContestant(OWNER_STEP_ID, 3, { expiresAtMs: timeAt(1) })],
    owner: `refused: ${OWNER_STEP_ID}, lease, lease-holder`,
    priority: `refused: ${OWNER_STEP_ID}, lease, lease-holder`,
  },
  {
    when: "several steps hold it",
    claims: [createHolder(4, 7), createRequester(), createHolder(2, 3), createHolder(3, 5)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${THEIRS}, lease, lease-holder`,
  },
  {
    when: "several steps of different priority hold it",
    claims: [
      createRequester(high),
      createHolder(2, 3),
      createHolder(3, 5, { priority: "critical" }),
      createHolder(4, 7, high),
    ],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: "refused: step-3, strategy, highest-priority",
  },
  {
    when: "two steps of equal priority, higher than the requester's, hold it",
    claims: [createRequester(low), createHolder(3, 5, high), createHolder(2, 3, high)],
    owner: `${THEIRS}, lease, lease-holder`,
    priority: `${THEIRS}, lease, lease-holder`,
  },
];

describe.each(SITUATIONS)("when $when", ({ claims, owner, priority }) => {
  it("owner_wins and priority_wins rule", () => {
    expect(describeRuling(rule("owner_wins", claims))).toBe(owner);
    expect(describeRuling(rule("priority_wins", claims))).toBe(priority);
  });

  it("everybody but the winner loses, in the order of their claims", () => {
    for (const strategy of ["owner_wins", "priority_wins"] as const) {
      const ruling = rule(strategy, claims);
      if (ruling.kind !== "granted" && ruling.kind !== "refused") throw new Error(ruling.kind);
      const last = Number.MAX_SAFE_INTEGER;
      const inOrder = claims
        .filter((claim) => claim !== ruling.winner)
        .sort((a, b) => (a.claimedSequence || last) - (b.claimedSequence || last));
      expect(ruling.losers).toEqual(inOrder);
    }
  });

  it("merge_if_safe asks for the merge, takes a clean one whoever is in the way, and has nobody lose by it", () => {
    const mine = claims.find((claim) => claim.stepId === REQUESTER && claim.coordinationId === undefined);
    expect(rule("merge_if_safe", claims)).toEqual({ kind: "merge" });
    expect(rule("merge_if_safe", claims, CLEAN)).toEqual({
      kind: "granted",
      winner: mine,
      losers: [],
      rule: "strategy",
      because: "merged",
    });
  });

  it("manual_review is for people, also where a merge would be clean", () => {
    const review = { kind: "review", because: "manual-review" };
    expect(rule("manual_review", claims)).toEqual(review);
    expect(rule("manual_review", claims, CLEAN)).toEqual(review);
  });
});

const CLEAN: MergeEvidence = { kind: "clean", base: "sha256:1", current: "sha256:2", merged: "sha256:3" };

describe("a merge that cannot be made", () => {
  it.each(mergeObstacleSchema.options)("is for people because of %s", (obstacle) => {
    const ruling = rule("merge_if_safe", [createRequester(declared), createHolder(2, 3)], {
      kind: "obstacle",
      obstacle,
    });
    expect(ruling).toEqual({ kind: "review", because: obstacle.replaceAll("_", "-") });
  });
});

describe("a contest", () => {
  it.each(conflictStrategySchema.options)("by %s leaves its claims as they were", (strategy) => {
    const claims = Object.freeze(
      [createRequester(), createHolder(3, 5), createHolder(2, 3)].map((claim) => Object.freeze(claim)),
    );
    const before = structuredClone(claims);
    rule(strategy, claims, CLEAN);
    expect(claims).toEqual(before);
  });

  it.each(["owner_wins", "priority_wins"] as const)("of one side is no conflict to %s", (strategy) => {
    expect(() => rule(strategy, [createRequester()])).toThrow(/A1: a conflict has two sides/u);
  });

  it("of one side, and one without its requester, cannot be ruled on by a plugin", () => {
    const hook = { plugin: "reviewer", award: "requester" } as const;
    for (const claims of [[createRequester()], [createHolder(2, 3)]])
      expect(() => arbitrate({ requester: REQUESTER, claims, strategy: "owner_wins", hook })).toThrow(
        /A1: a conflict has two sides/u,
      );
  });

  it("of steps that hold no claim goes by their coordinations, the own one first, and by their steps", () => {
    const claims = [
      createContestant(1, 0, { coordinationId: "A-1" as CoordinationId }),
      createContestant(3, 0, { coordinationId: FOREIGN }),
      createContestant(2, 0, { coordinationId: FOREIGN }),
      createContestant(1, 0),
    ];
    for (const inOrder of [claims, claims.toReversed()]) {
      const ruling = rule("owner_wins", inOrder);
      expect(ruling).toEqual({
        kind: "granted",
        winner: claims[3],
        losers: [claims[0], claims[2], claims[1]],
        rule: "lease",
        because: "earliest-claim",
      });
    }
  });

  it("without its requester cannot be merged", () => {
    expect(() => rule("merge_if_safe", [createHolder(2, 3), createHolder(3, 4)], CLEAN)).toThrow(
      /A1: the requester/u,
    );
  });

  it("of the owner's session is one like another", () => {
    const claims = [createContestant(OWNER_STEP_ID, 9, declared), createHolder(2, 3)];
    const contest: Contest = { requester: OWNER_STEP_ID, claims, strategy: "owner_wins" };
    expect(describeRuling(arbitrate(contest))).toBe(`granted: ${OWNER_STEP_ID}, ownership, declared-owner`);
  });
});
