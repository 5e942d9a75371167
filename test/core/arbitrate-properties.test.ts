import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitrate, type Contest } from "../../src/agents/coordination/arbitration/arbitrate.ts";
import { mergeObstacleSchema, type Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import { PRIORITIES } from "../../src/agents/coordination/contracts/envelope.ts";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { conflictStrategySchema } from "../../src/agents/coordination/contracts/plan.ts";
import { stepId } from "./scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 1_000);

const times = fc.constantFrom(5, 6).map((ms) => ms as EpochMs);
/** Sequences collide more often than tokens can, so that every part of the order is met. */
const contestants: fc.Arbitrary<Contestant> = fc.record(
  {
    stepId: fc.constantFrom(1, 2, 3).map(stepId),
    priority: fc.constantFrom(...PRIORITIES),
    claimedSequence: fc.integer({ min: 0, max: 4 }),
    coordinationId: fc.constantFrom("co-2" as CoordinationId, "co-3" as CoordinationId),
    declared: fc.boolean(),
    expiresAtMs: times,
    changedAtMs: times,
  },
  { requiredKeys: ["stepId", "priority", "claimedSequence"] },
);

const nameContestant = ({ coordinationId, stepId: step }: Contestant): string =>
  `${coordinationId ?? ""}:${step}`;

const merges = fc.oneof(
  fc.constant({ kind: "clean" as const, base: "a", current: "b", merged: "c" }),
  fc
    .constantFrom(...mergeObstacleSchema.options)
    .map((obstacle) => ({ kind: "obstacle" as const, obstacle })),
);

/** Each step takes part once, and one of the claims, anywhere in the list, is the requester's. */
const contests: fc.Arbitrary<Contest> = fc
  .record({
    mine: contestants,
    others: fc.uniqueArray(contestants, { selector: nameContestant, minLength: 1, maxLength: 7 }),
    place: fc.nat({ max: 7 }),
    strategy: fc.constantFrom(...conflictStrategySchema.options),
    merge: fc.option(merges, { nil: undefined }),
  })
  .map(({ mine: { coordinationId: _, ...mine }, others, place, strategy, merge }) => {
    const claims = others.filter((other) => nameContestant(other) !== nameContestant(mine));
    claims.splice(place, 0, mine);
    return { requester: mine.stepId, claims, strategy, ...(merge && { merge }) };
  })
  .filter(({ claims }) => claims.length > 1);

const shuffled = contests.chain((contest) =>
  fc.tuple(
    fc.constant(contest),
    fc.shuffledSubarray([...contest.claims], { minLength: contest.claims.length }),
  ),
);

describe("for every contest", () => {
  it("A1: any order of the claims gives the same ruling, down to the losers' order", () => {
    fc.assert(
      fc.property(shuffled, ([contest, claims]) => {
        expect(arbitrate({ ...contest, claims })).toStrictEqual(arbitrate(contest));
      }),
      { numRuns: RUNS },
    );
  });

  it("a ruling has every claimant on one side, once, and the winner is no loser", () => {
    fc.assert(
      fc.property(contests, (contest) => {
        const ruling = arbitrate(contest);
        if (ruling.kind !== "granted" && ruling.kind !== "refused") return;
        const { winner, losers, because } = ruling;
        expect(contest.claims).toContain(winner);
        expect(losers).not.toContain(winner);
        if (because === "merged") expect(losers).toEqual([]);
        else
          expect([winner, ...losers].map(nameContestant).sort()).toEqual(
            contest.claims.map(nameContestant).sort(),
          );
      }),
      { numRuns: RUNS },
    );
  });

  it("it is granted exactly where the requester's own claim won", () => {
    fc.assert(
      fc.property(contests, (contest) => {
        const ruling = arbitrate(contest);
        if (ruling.kind !== "granted" && ruling.kind !== "refused") return;
        expect(ruling.kind === "granted").toBe(nameContestant(ruling.winner) === `:${contest.requester}`);
      }),
      { numRuns: RUNS },
    );
  });

  it("who wins against all wins against each, and the reason is one of both", () => {
    fc.assert(
      fc.property(contests, (contest) => {
        const ruling = arbitrate(contest);
        if (ruling.kind !== "granted" && ruling.kind !== "refused") return;
        const { winner, losers, because } = ruling;
        const alone = losers.map((loser) => arbitrate({ ...contest, claims: [loser, winner] }));
        for (const duel of alone) expect(duel).toMatchObject({ kind: ruling.kind, winner });
        if (losers.length > 0)
          expect(alone.map((duel) => "because" in duel && duel.because)).toContain(because);
      }),
      { numRuns: RUNS },
    );
  });

  it("a ruling follows from its JSON as it does from the contest", () => {
    fc.assert(
      fc.property(contests, (contest) => {
        const stored = JSON.parse(JSON.stringify(contest)) as Contest;
        expect(arbitrate(stored)).toEqual(arbitrate(contest));
      }),
      { numRuns: RUNS },
    );
  });

  it("how long a lease runs and when a change happened decide nothing", () => {
    fc.assert(
      fc.property(contests, (contest) => {
        const later = contest.claims.map((claim) => ({
          ...claim,
          ...(claim.expiresAtMs !== undefined && { expiresAtMs: 1 as EpochMs }),
          ...(claim.changedAtMs !== undefined && { changedAtMs: 2 as EpochMs }),
        }));
        const describeOutcome = (claims: readonly Contestant[]): unknown => {
          const ruling = arbitrate({ ...contest, claims });
          if (ruling.kind !== "granted" && ruling.kind !== "refused") return ruling;
          const { kind, winner, losers, rule, because } = ruling;
          return { kind, rule, because, winner: nameContestant(winner), losers: losers.map(nameContestant) };
        };
        expect(describeOutcome(later)).toEqual(describeOutcome(contest.claims));
      }),
      { numRuns: RUNS },
    );
  });

  it("contests reach every ruling that there is", () => {
    const met = new Set<string>();
    for (const contest of fc.sample(contests, { numRuns: 2_000, seed: 1 })) {
      const ruling = arbitrate(contest);
      met.add(ruling.kind);
      if ("because" in ruling) met.add(ruling.because);
    }
    const reasons = ["declared-owner", "changed-since", "lease-holder", "earliest-claim", "highest-priority"];
    const all = [
      ...["granted", "refused", "merge", "review"],
      ...reasons,
      "merged",
      "manual-review",
      "no-base",
    ];
    for (const each of all) expect(met).toContain(each);
  });
});
