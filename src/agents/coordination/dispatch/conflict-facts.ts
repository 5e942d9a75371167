/** Owns: the facts that a conflict becomes, and which conflicts are the same. A3 one resolution for each. */
import { arbitrate, type Contest, type Ruling } from "../arbitration/arbitrate.ts";
import type { Contestant, PluginRuling } from "../contracts/arbitration.ts";
import type { ResourceContest, ResourceRequest, SettleReview } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { Conflict, OpenCoordination } from "../ledger/state.ts";

/** A request that somebody stands against. */
export type ContestedRequest = ResourceRequest & { readonly contest: ResourceContest };

export function isContested(request: ResourceRequest): request is ContestedRequest {
  return request.contest !== undefined;
}

/** Everything that the ruling on a request follows from. What is high-risk is for people, whatever plugins say. */
export function contestOf(
  requester: StepId,
  {
    claims,
    strategy,
    merge,
    hook,
    from,
  }: Pick<ResourceContest, "claims" | "strategy" | "merge" | "hook" | "from">,
): Contest {
  const isRuled = hook && from !== "high_risk";
  return { requester, claims, strategy, ...(merge && { merge }), ...(isRuled && { hook }) };
}

export function detection(
  stepId: StepId,
  request: ContestedRequest,
  at: { readonly conflictId: string; readonly now: EpochMs },
): FactDraft {
  const { resource, base, current } = request;
  const { claims, cause, strategy, from, merge, hook, reviewByMs } = request.contest;
  const contest: FactPayloads["conflict.detected"]["contest"] = {
    requester: stepId,
    ...{ cause, strategy, from },
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

export function resolution(
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
 * How the rules resolve a recorded conflict (A1): the same for ever, and `verify` compares. `undefined` where people did, and
 * for conflicts of ledgers of 0.1.0, which recorded too little.
 */
export function resolutionByRules(conflict: Conflict): FactDraft | undefined {
  const { conflictId, contest, claims } = conflict;
  if (!contest || contest.reviewByMs !== undefined) return undefined;
  const { requester, strategy, cause, from, merge, hook } = contest;
  const given: ResourceContest = {
    ...{ strategy, cause, from, claims },
    ...(merge && { merge }),
    ...(hook && { hook }),
  };
  const ruling = arbitrate(contestOf(requester, given));
  if (ruling.kind === "merge") return undefined;
  if (ruling.kind !== "review") return resolution(conflictId, given, ruling);
  return unreviewed(requester, conflictId, { contest: given, because: ruling.because });
}

/** The requester does not get the resource, and nobody is asked. */
export function unreviewed(
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

/** What people answered, or that nobody did. */
export function peopleSaid(
  { conflictId, claims, contest }: Conflict,
  answer: SettleReview["answer"],
): FactDraft {
  const requester = contest?.requester ?? OWNER_STEP_ID;
  const strategy = contest?.strategy ?? "manual_review";
  const outcome =
    answer === "approved"
      ? { winner: requester, losers: againstOf(claims, requester).map(({ stepId }) => stepId) }
      : { losers: [requester] };
  const because = answer.replaceAll("_", "-");
  return {
    type: "conflict.resolved",
    payload: { conflictId, strategy, ...outcome, because, rule: "people" },
  };
}

/** Who stands against the requester. */
function againstOf(claims: readonly Contestant[], requester: StepId): Contestant[] {
  return claims.filter(({ coordinationId, stepId }) => coordinationId !== undefined || stepId !== requester);
}

export function conflictIdAt({ coordinationId }: OpenCoordination, number: number): string {
  return `${coordinationId}:conflict-${number}`;
}

/**
 * The conflict that was recorded for the same claims on the same resource, and was lost by the requester. Each question to people is a
 * conflict of its own: what they answer to one call is no answer to the next.
 */
export function sameConflict(
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
      stands(conflict, stepId) &&
      evidenceOf(stepId, { ...conflict.contest, claims: conflict.claims }) ===
        evidenceOf(stepId, { ...request.contest, base: request.base, current: request.current }),
  );
}

/** The requester has not won it. */
function stands({ resolution }: Conflict, stepId: StepId): boolean {
  return !(resolution?.winner === stepId && resolution.winnerCoordinationId === undefined);
}

interface Recorded {
  readonly base?: string | undefined;
  readonly current?: string | undefined;
  readonly hook?: PluginRuling | undefined;
}

/** How long the leases run does not matter. */
function evidenceOf(
  stepId: StepId,
  given: Pick<ResourceContest, "claims" | "cause" | "strategy"> & Recorded,
): string {
  const against = againstOf(given.claims, stepId)
    .map(({ coordinationId, stepId: other, claimedSequence }) =>
      JSON.stringify([coordinationId, other, claimedSequence]),
    )
    .sort();
  const { cause, strategy, base, current, hook } = given;
  return JSON.stringify([cause, strategy, base, current, against, hook?.plugin, hook?.award, hook?.failed]);
}

/** The newest question about a resource that the requester waits for. */
export function openQuestion(
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
