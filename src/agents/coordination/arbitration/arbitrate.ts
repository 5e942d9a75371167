/**
 * Owns: who gets a contested resource (QM2 2.4): ownership, then lease, then what plugins say, then strategy. Does not own: which
 * strategy holds for a resource (`strategy-for.ts`), who claims it, what plugins are asked, or what is done about the ruling.
 *
 * A1 the ruling follows from the set of claims and their recorded sequence, not from the order in which they are given.
 * No model takes part, no clock, no content: a merge is ruled on by the versions that came of it, a plugin by what it said.
 */
import type { Contestant, MergeEvidence, PluginRuling } from "../contracts/arbitration.ts";
import { PRIORITIES } from "../contracts/envelope.ts";
import { assertInvariant, assertNever } from "../contracts/errors.ts";
import type { StepId } from "../contracts/ids.ts";
import type { ConflictStrategy } from "../contracts/plan.ts";

export interface Contest {
  /** Who is about to change the resource; it is one of the claims, and of no other coordination. */
  readonly requester: StepId;
  readonly claims: readonly Contestant[];
  readonly strategy: ConflictStrategy;
  readonly merge?: MergeEvidence;
  /** It takes the place of the strategy. */
  readonly hook?: PluginRuling;
}

/** The answer of the arbiter to a contest. */
export type ArbitrationRuling =
  /** The requester may go on; the losers' claims end. */
  | ({ readonly kind: "granted" } & ContestVerdict)
  | ({ readonly kind: "refused" } & ContestVerdict)
  /** A three-way merge decides; rule again with what came of it. */
  | { readonly kind: "merge" }
  /** A person decides. */
  | { readonly kind: "review"; readonly because: string };

/** Who wins and who loses a contest, and by which rule. */
export interface ContestVerdict {
  readonly winner: Contestant;
  /** In the order of their claims. Nobody loses by a merge. */
  readonly losers: readonly Contestant[];
  readonly rule: "ownership" | "lease" | "hook" | "strategy";
  readonly because: string;
}

/**
 * Returns the ruling on a contest (granted, refused, to be merged or reviewed by people): by what a plugin said, else
 * by the strategy of the resource. The order of the claims does not count (A1).
 */
export function arbitrate(contest: Contest): ArbitrationRuling {
  if (contest.hook) return applyPluginRuling(contest, contest.hook);
  switch (contest.strategy) {
    case "owner_wins":
      return awardToFirst(contest, contest.claims.toSorted(compareOwnership));
    case "priority_wins":
      return awardToFirst(contest, contest.claims.toSorted(comparePriority));
    case "merge_if_safe":
      return ruleOnMerge(contest);
    case "manual_review":
      return { kind: "review", because: "manual-review" };
    default:
      return assertNever(contest.strategy, "strategy");
  }
}

/**
 * True when a contestant is the step that made the request of the contest; a contestant of another coordination never
 * is.
 */
export function isRequester({ requester }: Contest, { stepId, coordinationId }: Contestant): boolean {
  return coordinationId === undefined && stepId === requester;
}

/** Returns the ruling for the first contestant in the order given: granted where that is the requester. */
function awardToFirst(contest: Contest, [winner, next, ...others]: readonly Contestant[]): ArbitrationRuling {
  assertInvariant(winner !== undefined && next !== undefined, "A1: a conflict has two sides");
  const losers = [next, ...others].toSorted(compareClaims);
  const verdict = { winner, losers, ...explainWin(contest, winner, next) };
  return { kind: isRequester(contest, winner) ? "granted" : "refused", ...verdict };
}

/** Returns the ruling that a plugin gave. Others that hold the resource keep what they have where one of them wins. */
function applyPluginRuling(contest: Contest, { plugin, award, failed }: PluginRuling): ArbitrationRuling {
  const requester = contest.claims.find((claim) => isRequester(contest, claim));
  const others = contest.claims.filter((claim) => claim !== requester);
  const [holder] = others.toSorted(compareOwnership);
  assertInvariant(requester !== undefined && holder !== undefined, "A1: a conflict has two sides");
  const rule = { rule: "hook", because: plugin ?? "plugin" } as const;
  return award === "requester" && !failed
    ? { kind: "granted", winner: requester, losers: others.toSorted(compareClaims), ...rule }
    : { kind: "refused", winner: holder, losers: [requester], ...rule };
}

/** Returns what set the winner apart from the contestant that came next. */
function explainWin(
  { strategy }: Contest,
  winner: Contestant,
  next: Contestant,
): Pick<ContestVerdict, "rule" | "because"> {
  if (strategy === "priority_wins" && winner.priority !== next.priority)
    return { rule: "strategy", because: "highest-priority" };
  if (isDeclaredOwner(winner) !== isDeclaredOwner(next))
    return { rule: "ownership", because: "declared-owner" };
  if (hasChangedResource(winner) !== hasChangedResource(next))
    return { rule: "lease", because: "changed-since" };
  return winner.expiresAtMs === undefined
    ? { rule: "lease", because: "earliest-claim" }
    : { rule: "lease", because: "lease-holder" };
}

/** Rules by the outcome of a merge: the requester goes on, people decide, or the merge is to be made first. */
function ruleOnMerge(contest: Contest): ArbitrationRuling {
  const { merge, claims } = contest;
  if (!merge) return { kind: "merge" };
  if (merge.kind === "obstacle") return { kind: "review", because: merge.obstacle.replaceAll("_", "-") };
  const winner = claims.find((claim) => isRequester(contest, claim));
  assertInvariant(winner !== undefined, "A1: the requester is one of the claims");
  return { kind: "granted", winner, losers: [], rule: "strategy", because: "merged" };
}

/**
 * Orders contestants: who declared the resource, then who has changed it already, then who claimed it first. Among
 * contestants alike in both, who holds no claim comes last.
 */
function compareOwnership(a: Contestant, b: Contestant): number {
  return (
    Number(isDeclaredOwner(b)) - Number(isDeclaredOwner(a)) ||
    Number(hasChangedResource(b)) - Number(hasChangedResource(a)) ||
    compareClaims(a, b)
  );
}

function comparePriority(a: Contestant, b: Contestant): number {
  return PRIORITIES.indexOf(b.priority) - PRIORITIES.indexOf(a.priority) || compareOwnership(a, b);
}

function compareClaims(a: Contestant, b: Contestant): number {
  return (
    rankClaimSequence(a) - rankClaimSequence(b) ||
    compareIds(a.coordinationId ?? "", b.coordinationId ?? "") ||
    compareIds(a.stepId, b.stepId)
  );
}

function isDeclaredOwner({ declared }: Contestant): boolean {
  return declared === true;
}

/** True when the contestant changed the resource after the requester last saw it. */
function hasChangedResource({ changedAtMs }: Contestant): boolean {
  return changedAtMs !== undefined;
}

function rankClaimSequence({ claimedSequence }: Contestant): number {
  return claimedSequence === 0 ? Number.MAX_SAFE_INTEGER : claimedSequence;
}

function compareIds(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
