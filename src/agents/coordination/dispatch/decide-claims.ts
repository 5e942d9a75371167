/**
 * Owns: deciding which commands about claims and conflicts are accepted, and which facts they become.
 *
 * A1 `arbitrate` rules, on the evidence that is recorded with the conflict. A2 a write under a claim that has ended is refused.
 * A3 every conflict is resolved once: at once by the rules, later by people, or when nobody waits for it any more. The question to
 * people is closed together with the conflict.
 */
import { arbitrate, type ArbitrationRuling } from "../arbitration/arbitrate.ts";
import type { Contestant } from "../contracts/arbitration.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command, RequestResources, ResourceRequest, SettleReview } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import { parseFileResource } from "../contracts/resource-names.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { findWriteDifference } from "../gates/child-differences.ts";
import { formatHoldingKey, type Conflict, type OpenCoordination } from "../ledger/state.ts";
import {
  formatConflictId,
  createArbitrationInput,
  draftDetectedConflict,
  isContested,
  draftRulingOfPeople,
  draftConflictResolution,
  findSameConflict,
  draftRefusalWithoutReview,
  type ContestedRequest,
  listOverlappingOwnClaims,
  findConflict,
} from "./conflict-facts.ts";
import {
  hasApprovedQuestion,
  canAskAboutContests,
  findOpenConflictQuestion,
  draftConflictQuestion,
} from "./conflict-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { draftNewDifferences } from "./observe-child.ts";
import { draftClaimRelease } from "./release-claims.ts";

/** True while an attempt of the step is under way; for the owner always. */
export function canStepWrite({ steps }: Pick<OpenCoordination, "steps">, stepId: StepId): boolean {
  if (stepId === OWNER_STEP_ID) return true;
  const status = steps.get(stepId)?.phase.status;
  return status === "dispatched" || status === "running";
}

/**
 * Decides on a step's request for resources: accepted with claims on all of them (unless these come later), or with
 * the conflicts that stand in the way and no claim; a replay where nothing is new; else refused.
 */
export function requestResources(state: OpenCoordination, command: RequestResources, now: EpochMs): Decision {
  const { stepId } = command;
  const requests = [...Map.groupBy(command.requests, ({ resource }) => resource).values()].flatMap(
    ([first]) => first ?? [],
  );
  const refusal = refuseRequests(state, stepId, { requests, now });
  if (refusal) return refusal;
  const ruled = requests.map((request) => ({ request, ruling: ruleOnRequest(stepId, request) }));
  const isHeldUp = ruled.some(({ ruling }) => ruling !== undefined && ruling.kind !== "granted");
  if (!isHeldUp && requests.some(({ expiresAtMs }) => expiresAtMs <= now)) return refuseLapsedLease();
  const facts = isHeldUp
    ? draftRefusals(state, stepId, { ruled, now })
    : [
        ...draftWonConflicts(state, stepId, { ruled, now }),
        ...(command.claimsLater ? [] : draftClaims(state, stepId, { ruled, now })),
      ];
  if (hasTooManyConflicts(state, facts)) return refuseTooManyConflicts();
  return facts.length > 0 ? accept(facts, stepId) : { kind: "replay", stepId };
}

/** True when facts record more conflicts than the coordination may have. Those that it has recorded are told again (D2). */
function hasTooManyConflicts({ conflicts }: OpenCoordination, facts: readonly FactDraft[]): boolean {
  const added = facts.filter(({ type }) => type === "conflict.detected").length;
  return conflicts.length + added > BOUNDS.conflictsPerCoordinationMax;
}

function refuseTooManyConflicts(): Decision {
  return refuse(
    "TOO_MANY_CONFLICTS",
    `the coordination has recorded ${BOUNDS.conflictsPerCoordinationMax} conflicts, the most that it may have; end the step`,
  );
}

/** Returns the refusal of requests that break a rule or a bound of claims; `undefined` where they may be ruled on. */
function refuseRequests(
  state: OpenCoordination,
  stepId: StepId,
  { requests, now }: { readonly requests: readonly ResourceRequest[]; readonly now: EpochMs },
): Decision | undefined {
  if (!canStepWrite(state, stepId) && !requests.every(isChangeMadeAlready))
    return refuse("STEP_ENDED", `step ${stepId} has no attempt under way, so it cannot claim resources`);
  const stale = requests.find(
    ({ held: claimToken }) =>
      claimToken !== undefined && !hasLiveClaim(state, { held: claimToken, stepId, now }),
  );
  if (stale)
    return refuse(
      "STALE_TOKEN",
      `claim ${String(stale.held)} of step ${stepId} on ${stale.resource} has ended`,
    );
  const fresh = requests.filter(({ held: claimToken }) => claimToken === undefined);
  if (fresh.some(({ token }) => token <= state.newestToken)) return refuseTakenToken();
  if (state.claimCounts.get(stepId, 0) + fresh.length > BOUNDS.claimsPerStepMax)
    return refuse(
      "TOO_MANY_CLAIMS",
      `a step holds at most ${BOUNDS.claimsPerStepMax} claims; end it and go on in another`,
    );
  return undefined;
}

/** True for a change that a command made before anybody ruled on it: it is put to people, and claims nothing by itself. */
function isChangeMadeAlready({ contest }: ResourceRequest): boolean {
  return contest?.cause === "overwritten";
}

/** Refuses because another process of the ledger claimed something since the ruling was made. */
function refuseTakenToken(): Decision {
  return refuse("STALE_TOKEN", "another process claimed a resource first; read the claims and rule again");
}

/** Refuses a claim that would end before it begins (A2): its process was paused since the ruling, or the clock was set. */
function refuseLapsedLease(): Decision {
  return refuse("STALE_TOKEN", "the lease ended before the claim could be recorded; rule again");
}

/** True when the claim belongs to the step and its lease has not ended (A2). */
function hasLiveClaim(
  { claims }: OpenCoordination,
  { held: token, stepId, now }: { readonly held: number; readonly stepId: StepId; readonly now: EpochMs },
): boolean {
  const claim = claims.get(token);
  return claim?.stepId === stepId && claim.expiresAtMs > now;
}

/** Returns the ruling on a request; `undefined` where nobody else wants the resource. */
function ruleOnRequest(stepId: StepId, { contest }: ResourceRequest): ArbitrationRuling | undefined {
  return contest && arbitrate(createArbitrationInput(stepId, contest));
}

interface RuledRequests {
  readonly ruled: readonly {
    readonly request: ResourceRequest;
    readonly ruling: ArbitrationRuling | undefined;
  }[];
  readonly now: EpochMs;
}

/** Drafts the conflicts that a requester won, then the end of the claims that its requests take over. */
function draftWonConflicts(
  state: OpenCoordination,
  stepId: StepId,
  { ruled, now }: RuledRequests,
): FactDraft[] {
  let conflicts = state.conflicts.length;
  const conflictFacts = ruled.flatMap(({ request, ruling }) => {
    if (!isContested(request) || ruling?.kind !== "granted") return [];
    conflicts += 1;
    const conflictId = formatConflictId(state, conflicts);
    return [
      draftDetectedConflict(stepId, request, { conflictId, now }),
      draftConflictResolution(conflictId, request.contest, ruling),
    ];
  });
  return [...conflictFacts, ...draftPreemptions(state, ruled)];
}

/** Drafts the claims of the requester. A claim on a folder covers several requests and is renewed once. */
function draftClaims(state: OpenCoordination, stepId: StepId, { ruled, now }: RuledRequests): FactDraft[] {
  const byToken = Map.groupBy(ruled, ({ request: { held: claimToken, token } }) => claimToken ?? token);
  return [...byToken.values()].flatMap(([first]) =>
    first ? draftClaimOrRenewal(state, stepId, { ...first.request, now }) : [],
  );
}

/** Drafts the end of the claims that the requests take over. Each claim ends once. */
function draftPreemptions(state: OpenCoordination, ruled: RuledRequests["ruled"]): FactDraft[] {
  const ends = new Map<number, FactDraft>();
  for (const { request, ruling } of ruled) {
    const reasons = listStepsLosingClaims(request, ruling);
    if (reasons.size === 0) continue;
    for (const claim of listOverlappingOwnClaims(state, request.resource)) {
      const because = reasons.get(claim.stepId);
      if (because && !ends.has(claim.token)) ends.set(claim.token, draftClaimRelease(claim, because));
    }
  }
  return [...ends.values()];
}

/** Returns the steps whose claims end with a request, each with the reason. */
function listStepsLosingClaims(
  { delegated = [] }: ResourceRequest,
  ruling: ArbitrationRuling | undefined,
): ReadonlyMap<StepId, "delegated" | "preempted"> {
  const losers = ruling?.kind === "granted" ? ruling.losers.filter(isOwnContestant) : [];
  return new Map([
    ...delegated.map((stepId) => [stepId, "delegated"] as const),
    ...losers.map(({ stepId }) => [stepId, "preempted"] as const),
  ]);
}

/** True for a contestant of this coordination. */
function isOwnContestant({ coordinationId }: Contestant): boolean {
  return coordinationId === undefined;
}

type ClaimRequest = Pick<ResourceRequest, "resource" | "held" | "token" | "expiresAtMs" | "current"> & {
  readonly now: EpochMs;
};

/**
 * Drafts a new claim after the end of the step's earlier one on the resource, or the renewal of the claim that the
 * request names; nothing where that claim is gone or lasts as long already.
 */
function draftClaimOrRenewal(state: OpenCoordination, stepId: StepId, request: ClaimRequest): FactDraft[] {
  const { resource, held: renewedToken, token, expiresAtMs, current, now } = request;
  if (renewedToken === undefined) {
    const priority = state.steps.get(stepId)?.spec.priority ?? "normal";
    const base = current === undefined ? {} : { base: current };
    const payload = { stepId, resource, token, priority, expiresAtMs, ...base };
    return [
      ...draftReplacedClaimRelease(state, stepId, { resource, now }),
      { type: "claim.acquired", payload },
    ];
  }
  const claim = state.claims.get(renewedToken);
  if (!claim || claim.expiresAtMs >= expiresAtMs) return [];
  return [{ type: "claim.renewed", payload: { stepId, token: renewedToken, expiresAtMs } }];
}

/** Drafts the end of the earlier claim that the step itself has on the resource. */
function draftReplacedClaimRelease(
  { claims, holdings }: OpenCoordination,
  stepId: StepId,
  { resource, now }: { readonly resource: string; readonly now: EpochMs },
): FactDraft[] {
  const earlier = claims.get(holdings.get(formatHoldingKey(stepId, resource)) ?? 0);
  return earlier ? [draftClaimRelease(earlier, earlier.expiresAtMs > now ? "preempted" : "expired")] : [];
}

/**
 * Drafts the questions to people or the lost conflicts where nothing is granted. The same refusal of the same claims
 * is recorded once (D2).
 */
function draftRefusals(state: OpenCoordination, stepId: StepId, { ruled, now }: RuledRequests): FactDraft[] {
  let conflicts = state.conflicts.length;
  const refusedRequests = listRefusedRequests(ruled);
  const requests = refusedRequests.map(({ request }) => request);
  if (canAskAboutContests(state, stepId, requests))
    return draftConflictQuestions(state, stepId, { requests, now });
  return refusedRequests.flatMap(({ request, ruling }) => {
    if (findSameConflict(state, stepId, request)) return [];
    conflicts += 1;
    const conflictId = formatConflictId(state, conflicts);
    const detected = draftDetectedConflict(stepId, request, { conflictId, now });
    const { contest } = request;
    if (ruling.kind === "refused") return [detected, draftConflictResolution(conflictId, contest, ruling)];
    if (contest.reviewByMs !== undefined) return [detected];
    return [detected, draftRefusalWithoutReview(stepId, conflictId, { contest, because: ruling.because })];
  });
}

/** Drafts one question for each request that has no open question yet. */
function draftConflictQuestions(
  state: OpenCoordination,
  stepId: StepId,
  { requests, now }: { readonly requests: readonly ContestedRequest[]; readonly now: EpochMs },
): FactDraft[] {
  return requests
    .filter(({ resource }) => !findOpenConflictQuestion(state, stepId, resource))
    .flatMap((request, after) => {
      const conflictId = formatConflictId(state, state.conflicts.length + after + 1);
      return draftConflictQuestion(state, stepId, { request, conflictId, after, now });
    });
}

interface RefusedRequest {
  readonly request: ContestedRequest;
  readonly ruling: ArbitrationRuling & { kind: "refused" | "review" };
}

/** Returns the requests that are not granted. Where one is refused outright, reviews are left out: the call cannot happen anyway. */
function listRefusedRequests(ruled: RuledRequests["ruled"]): RefusedRequest[] {
  const refusedRequests = ruled.flatMap(({ request, ruling }) =>
    isContested(request) && (ruling?.kind === "refused" || ruling?.kind === "review")
      ? [{ request, ruling }]
      : [],
  );
  const isAnyRefused = refusedRequests.some(({ ruling }) => ruling.kind === "refused");
  return refusedRequests.filter(({ ruling }) => !isAnyRefused || ruling.kind === "refused");
}

/**
 * Decides on what people ruled on a conflict: accepted with its resolution, and with a claim where they approved and
 * the requester can still write; refused where that cannot begin, a replay once resolved.
 */
export function settleReview(
  state: OpenCoordination,
  { conflictId, answer, claim }: SettleReview,
  now: EpochMs,
): Decision {
  const conflict = state.reviews.has(conflictId) ? findConflict(state, conflictId) : undefined;
  if (!conflict?.contest) return { kind: "replay" };
  const { requester } = conflict.contest;
  if (answer !== "approved")
    return accept(
      [draftRulingOfPeople(conflict, hasApprovedQuestion(state, conflict) ? "withdrawn" : answer)],
      requester,
    );
  if (!claim || !canStepWrite(state, requester))
    return accept([draftRulingOfPeople(conflict, "withdrawn")], requester);
  return approveReview(state, conflict, { requester, claim, now });
}

/**
 * Decides on a conflict that people approved for its requester: accepted with the ruling, the end of other steps'
 * claims that overlap the resource, and the requester's claim, new or renewed; refused where its token is taken or its
 * lease is over.
 */
function approveReview(
  state: OpenCoordination,
  conflict: Conflict,
  approval: {
    readonly requester: StepId;
    readonly claim: NonNullable<SettleReview["claim"]>;
    readonly now: EpochMs;
  },
): Decision {
  const { requester, claim, now } = approval;
  const { resource } = conflict;
  const claimToken = state.holdings.get(formatHoldingKey(requester, resource));
  const isHolding =
    claimToken !== undefined && hasLiveClaim(state, { held: claimToken, stepId: requester, now });
  if (!isHolding && claim.token <= state.newestToken) return refuseTakenToken();
  if (claim.expiresAtMs <= now) return refuseLapsedLease();
  return accept(
    [
      draftRulingOfPeople(conflict, "approved"),
      // Includes whoever claimed the resource while people thought about it.
      ...listOverlappingOwnClaims(state, resource)
        .filter(({ stepId }) => stepId !== requester)
        .map((other) => draftClaimRelease(other, "preempted")),
      ...draftClaimOrRenewal(state, requester, {
        resource,
        ...claim,
        now,
        ...(isHolding && { held: claimToken }),
      }),
    ],
    requester,
  );
}

/**
 * Decides on a report that a step changed a resource, or may have: accepted as a fact, with the difference where a
 * child wrote outside of what was asked; refused for an unknown step.
 */
export function recordWrite(
  state: OpenCoordination,
  command: Command & { type: "recordChange" | "recordUndetermined" },
): Decision {
  const { stepId } = command;
  if (stepId !== OWNER_STEP_ID && !state.steps.has(stepId))
    return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (command.type === "recordUndetermined") {
    const { type: _, ...payload } = command;
    return accept([{ type: "write.undetermined", payload }], stepId);
  }
  const { type: _, ...payload } = command;
  return accept(
    [{ type: "resource.changed", payload }, ...draftStrayWriteDifference(state, payload)],
    stepId,
  );
}

/** Drafts the difference where a child changed a file outside of the folder that was asked for it. */
function draftStrayWriteDifference(
  { steps }: OpenCoordination,
  { stepId, resource }: FactPayloads["resource.changed"],
): FactDraft[] {
  const step = steps.get(stepId);
  const file = parseFileResource(resource);
  if (!step || !canStepWrite({ steps }, stepId) || !file) return [];
  const { folder } = step.spec.requested ?? {};
  return draftNewDifferences(step, findWriteDifference(folder, file.path));
}
