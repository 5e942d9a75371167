/** Owns: drafting the facts about a conflict, and telling which conflicts are the same. A3 one resolution for each conflict. */
import { arbitrate, type Contest, type ArbitrationRuling } from "../arbitration/arbitrate.ts";
import type { Contestant, PluginRuling } from "../contracts/arbitration.ts";
import type { ResourceContest, ResourceRequest, SettleReview } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isClaimCovering } from "../contracts/resource-names.ts";
import type { Conflict, HeldClaim, OpenCoordination } from "../ledger/state.ts";

/** A request for a resource that somebody else also wants. */
export type ContestedRequest = ResourceRequest & { readonly contest: ResourceContest };

/** True when a request for a resource comes with a contest: somebody else also wants it. */
export function isContested(request: ResourceRequest): request is ContestedRequest {
  return request.contest !== undefined;
}

/**
 * Returns the contest that `arbitrate` rules on, from what a request or a recorded conflict says. A plugin's ruling is
 * left out for a high-risk resource: people decide there.
 */
export function createArbitrationInput(
  requester: StepId,
  { claims, strategy, merge, hook, from }: ResourceContest,
): Contest {
  const isRuled = hook && from !== "high_risk";
  return { requester, claims, strategy, ...(merge && { merge }), ...(isRuled && { hook }) };
}

/** Drafts the fact that records the conflict of a contested request, with the evidence that it is ruled on. */
export function draftDetectedConflict(
  stepId: StepId,
  request: ContestedRequest,
  at: { readonly conflictId: string; readonly now: EpochMs },
): FactDraft {
  const { resource, base, current } = request;
  const { claims, cause, strategy, from, merge, hook, reviewByMs } = request.contest;
  const contest: FactPayloads["conflict.detected"]["contest"] = {
    requester: stepId,
    cause,
    strategy,
    from,
    atMs: at.now,
    ...(base !== undefined && { base }),
    ...(current !== undefined && { current }),
    ...(merge && { merge }),
    ...(hook && { hook }),
    ...(reviewByMs !== undefined && { reviewByMs }),
  };
  const { conflictId } = at;
  return { type: "conflict.detected", payload: { conflictId, resource, claims: [...claims], contest } };
}

/** Drafts the fact that resolves a conflict by a ruling that grants or refuses the request. */
export function draftConflictResolution(
  conflictId: string,
  { strategy }: ResourceContest,
  { winner, losers, rule, because }: ArbitrationRuling & { kind: "granted" | "refused" },
): FactDraft {
  return {
    type: "conflict.resolved",
    payload: {
      conflictId,
      strategy,
      winner: winner.stepId,
      ...(winner.coordinationId && { winnerCoordinationId: winner.coordinationId }),
      losers: losers.map(({ stepId }) => stepId),
      rule,
      because,
    },
  };
}

/**
 * Drafts again the fact by which the rules resolve a recorded conflict (A1), for `verify` to compare. `undefined`
 * where people are to rule or the rules want a merge, and for conflicts of 0.1.0.
 */
export function draftResolutionByRules(conflict: Conflict): FactDraft | undefined {
  const { conflictId, contest, claims } = conflict;
  if (!contest || contest.reviewByMs !== undefined) return undefined;
  const { requester, strategy, cause, from, merge, hook } = contest;
  const recordedContest: ResourceContest = {
    strategy,
    cause,
    from,
    claims,
    ...(merge && { merge }),
    ...(hook && { hook }),
  };
  const ruling = arbitrate(createArbitrationInput(requester, recordedContest));
  if (ruling.kind === "merge") return undefined;
  if (ruling.kind !== "review") return draftConflictResolution(conflictId, recordedContest, ruling);
  return draftRefusalWithoutReview(requester, conflictId, {
    contest: recordedContest,
    because: ruling.because,
  });
}

/** Drafts the fact that resolves a conflict without a winner: people should rule on it, but nobody can be asked. */
export function draftRefusalWithoutReview(
  stepId: StepId,
  conflictId: string,
  { contest, because }: { readonly contest: ResourceContest; readonly because: string },
): FactDraft {
  const { strategy } = contest;
  return {
    type: "conflict.resolved",
    payload: { conflictId, strategy, losers: [stepId], because, rule: "strategy" },
  };
}

/**
 * Drafts the fact that resolves a conflict as people answered, or without a winner where they gave no answer in time.
 */
export function draftRulingOfPeople(
  { conflictId, claims, contest }: Conflict,
  answer: SettleReview["answer"],
): FactDraft {
  const requester = contest?.requester ?? OWNER_STEP_ID;
  const strategy = contest?.strategy ?? "manual_review";
  const outcome =
    answer === "approved"
      ? { winner: requester, losers: listOpponents(claims, requester).map(({ stepId }) => stepId) }
      : { losers: [requester] };
  const because = answer.replaceAll("_", "-");
  return {
    type: "conflict.resolved",
    payload: { conflictId, strategy, ...outcome, because, rule: "people" },
  };
}

/** Returns the contestants that are not the requester. */
function listOpponents(claims: readonly Contestant[], requester: StepId): Contestant[] {
  return claims.filter(({ coordinationId, stepId }) => coordinationId !== undefined || stepId !== requester);
}

/** Returns the id of a coordination's conflict by its number. */
export function formatConflictId({ coordinationId }: OpenCoordination, number: number): string {
  return `${coordinationId}:conflict-${number}`;
}

/**
 * Returns the recorded conflict about the same claims on the same resource that the requester has not won; `undefined`
 * where there is none. A request that people are asked about never has one: their answer to one call does not answer
 * the next call.
 */
export function findSameConflict(
  { conflicts }: OpenCoordination,
  stepId: StepId,
  request: ContestedRequest,
): Conflict | undefined {
  if (request.contest.reviewByMs !== undefined) return undefined;
  return conflicts.findLast(
    (conflict) =>
      conflict.contest?.reviewByMs === undefined &&
      conflict.resource === request.resource &&
      conflict.contest?.requester === stepId &&
      isNotWon(conflict, stepId) &&
      formatContestEvidence(stepId, { ...conflict.contest, claims: conflict.claims }) ===
        formatContestEvidence(stepId, { ...request.contest, base: request.base, current: request.current }),
  );
}

/** True unless the requester has won the conflict. */
function isNotWon({ resolution }: Conflict, stepId: StepId): boolean {
  return !(resolution?.winner === stepId && resolution.winnerCoordinationId === undefined);
}

interface ContestEvidence {
  readonly base?: string | undefined;
  readonly current?: string | undefined;
  readonly hook?: PluginRuling | undefined;
}

/** Returns a text that is equal for two contests with the same evidence. The ends of the leases are left out. */
function formatContestEvidence(
  stepId: StepId,
  contest: Pick<ResourceContest, "claims" | "cause" | "strategy"> & ContestEvidence,
): string {
  const against = listOpponents(contest.claims, stepId)
    .map(({ coordinationId, stepId: other, claimedSequence }) =>
      JSON.stringify([coordinationId, other, claimedSequence]),
    )
    .sort();
  const { cause, strategy, base, current, hook } = contest;
  return JSON.stringify([cause, strategy, base, current, against, hook?.plugin, hook?.award, hook?.failed]);
}

/**
 * Returns the newest conflict about exactly this resource that people review for the requester; `undefined` where
 * there is none.
 */
export function findConflictUnderReview(
  { conflicts, reviews }: OpenCoordination,
  stepId: StepId,
  resource: string,
): Conflict | undefined {
  return conflicts.findLast(
    (conflict) =>
      conflict.resource === resource &&
      conflict.contest?.requester === stepId &&
      reviews.has(conflict.conflictId),
  );
}

/** Lists the claims of this coordination on the resource, or on a file or folder above or below it. */
export function listOverlappingOwnClaims({ claims }: OpenCoordination, resource: string): HeldClaim[] {
  return claims
    .valueSeq()
    .filter((claim) => isClaimCovering(claim.resource, resource) || isClaimCovering(resource, claim.resource))
    .toArray();
}

/** Returns the recorded conflict with this id; `undefined` where there is none. */
export function findConflict({ conflicts }: OpenCoordination, conflictId: string): Conflict | undefined {
  return conflicts.findLast((conflict) => conflict.conflictId === conflictId);
}
