/** Owns: drafting the facts about a conflict, and telling which conflicts are the same. A3 one resolution for each conflict. */
import { arbitrate, type Contest, type Ruling } from "../arbitration/arbitrate.ts";
import type { Contestant, PluginRuling } from "../contracts/arbitration.ts";
import type { ResourceContest, ResourceRequest, SettleReview } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isCovering } from "../contracts/resource-names.ts";
import type { Conflict, HeldClaim, OpenCoordination } from "../ledger/state.ts";

/** A request for a resource that somebody else also wants. */
export type ContestedRequest = ResourceRequest & { readonly contest: ResourceContest };

export function isContested(request: ResourceRequest): request is ContestedRequest {
  return request.contest !== undefined;
}

/** Returns the input of the ruling on a request. A plugin's ruling is left out for a high-risk resource: people decide there. */
export function contestOf(
  requester: StepId,
  { claims, strategy, merge, hook, from }: ResourceContest,
): Contest {
  const isRuled = hook && from !== "high_risk";
  return { requester, claims, strategy, ...(merge && { merge }), ...(isRuled && { hook }) };
}

export function draftDetection(
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

export function draftResolution(
  conflictId: string,
  { strategy }: ResourceContest,
  { winner, losers, rule, because }: Ruling & { kind: "granted" | "refused" },
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
 * Drafts the resolution that the rules give a recorded conflict (A1). It never changes, and `verify` compares it with the recorded
 * one. `undefined` where people resolved the conflict, and for conflicts of ledgers of 0.1.0, which recorded too little.
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
  const ruling = arbitrate(contestOf(requester, recordedContest));
  if (ruling.kind === "merge") return undefined;
  if (ruling.kind !== "review") return draftResolution(conflictId, recordedContest, ruling);
  return draftUnreviewed(requester, conflictId, { contest: recordedContest, because: ruling.because });
}

/** Drafts a refusal for a conflict that people should rule on but nobody can be asked about. */
export function draftUnreviewed(
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

/** Drafts the resolution that people gave by their answer, or by giving none in time. */
export function draftRulingOfPeople(
  { conflictId, claims, contest }: Conflict,
  answer: SettleReview["answer"],
): FactDraft {
  const requester = contest?.requester ?? OWNER_STEP_ID;
  const strategy = contest?.strategy ?? "manual_review";
  const outcome =
    answer === "approved"
      ? { winner: requester, losers: opponentsOf(claims, requester).map(({ stepId }) => stepId) }
      : { losers: [requester] };
  const because = answer.replaceAll("_", "-");
  return {
    type: "conflict.resolved",
    payload: { conflictId, strategy, ...outcome, because, rule: "people" },
  };
}

/** Returns the contestants that are not the requester. */
function opponentsOf(claims: readonly Contestant[], requester: StepId): Contestant[] {
  return claims.filter(({ coordinationId, stepId }) => coordinationId !== undefined || stepId !== requester);
}

export function formatConflictId({ coordinationId }: OpenCoordination, number: number): string {
  return `${coordinationId}:conflict-${number}`;
}

/**
 * Finds the recorded conflict about the same claims on the same resource that the requester has not won. A request that people are
 * asked about never has one: their answer to one call does not answer the next call.
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
      evidenceOf(stepId, { ...conflict.contest, claims: conflict.claims }) ===
        evidenceOf(stepId, { ...request.contest, base: request.base, current: request.current }),
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
function evidenceOf(
  stepId: StepId,
  contest: Pick<ResourceContest, "claims" | "cause" | "strategy"> & ContestEvidence,
): string {
  const against = opponentsOf(contest.claims, stepId)
    .map(({ coordinationId, stepId: other, claimedSequence }) =>
      JSON.stringify([coordinationId, other, claimedSequence]),
    )
    .sort();
  const { cause, strategy, base, current, hook } = contest;
  return JSON.stringify([cause, strategy, base, current, against, hook?.plugin, hook?.award, hook?.failed]);
}

/** Finds the newest conflict about a resource that people review for the requester. */
export function findOpenReview(
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

/** Returns the claims of this coordination that overlap a resource. */
export function listOverlapping({ claims }: OpenCoordination, resource: string): HeldClaim[] {
  return claims
    .valueSeq()
    .filter((claim) => isCovering(claim.resource, resource) || isCovering(resource, claim.resource))
    .toArray();
}

export function findConflict({ conflicts }: OpenCoordination, conflictId: string): Conflict | undefined {
  return conflicts.findLast((conflict) => conflict.conflictId === conflictId);
}
