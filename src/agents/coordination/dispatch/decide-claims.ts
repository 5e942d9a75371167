/**
 * Owns: which commands about claims and conflicts are accepted, and the facts that they become.
 *
 * A1 the ruling is `arbitrate`'s, on what is recorded with the conflict. A2 a write under a claim that has ended is refused.
 * A3 every conflict is resolved once: at once by the rules, by people, or when nobody waits for it any more; then the question to
 * people is closed with it.
 */
import { arbitrate, type Ruling } from "../arbitration/arbitrate.ts";
import type { Contestant } from "../contracts/arbitration.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type {
  Command,
  ReleaseClaims,
  RequestResources,
  ResourceRequest,
  SettleReview,
} from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import { covers } from "../contracts/resource-names.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { holdingOf, type Conflict, type HeldClaim, type OpenCoordination } from "../ledger/state.ts";
import {
  conflictIdAt,
  contestOf,
  detection,
  isContested,
  peopleSaid,
  resolution,
  sameConflict,
  unreviewed,
  type ContestedRequest,
} from "./conflict-facts.ts";
import {
  hasLapsed,
  keptForApprovals,
  mayAskAbout,
  openQuestionOn,
  putQuestion,
  questionAbout,
  questionWithdrawn,
} from "./conflict-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";

export type ClaimCommand = Command & {
  type: "requestResources" | "releaseClaims" | "settleReview" | "recordChange" | "recordUndetermined";
};

export function decideOnClaims(state: OpenCoordination, command: ClaimCommand, now: EpochMs): Decision {
  switch (command.type) {
    case "requestResources":
      return requestResources(state, command, now);
    case "releaseClaims":
      return releaseClaims(state, command);
    case "settleReview":
      return settleReview(state, command, now);
    case "recordChange":
    case "recordUndetermined":
      return record(state, command);
  }
}

/** Ends the claims of a step whose attempt is over, and the questions that it waits for. */
export function endOfClaims(
  state: OpenCoordination,
  because: FactPayloads["claim.released"]["because"],
  stepId?: StepId,
): FactDraft[] {
  const isOf = (holder: StepId): boolean => stepId === undefined || holder === stepId;
  const withdrawn = state.reviews
    .keySeq()
    .toArray()
    .flatMap((conflictId) => conflictIn(state, conflictId) ?? [])
    .filter(({ contest }) => contest !== undefined && isOf(contest.requester));
  const claims = state.claims.valueSeq().filter((claim) => isOf(claim.stepId));
  return [
    ...withdrawn.flatMap((conflict) => withdrawal(state, conflict, because)),
    ...claims.map((claim) => released(claim, because)).toArray(),
  ];
}

/** The end of a coordination closes all its questions itself. */
function withdrawal(
  state: OpenCoordination,
  conflict: Conflict,
  because: FactPayloads["claim.released"]["because"],
): FactDraft[] {
  const closed = because === "coordination_ended" ? [] : questionWithdrawn(state, conflict);
  return [...closed, peopleSaid(conflict, "withdrawn")];
}

/** What the host asks people ends with the turn; a question to them, and what they let happen, is for the next one too. */
function endOfTurn(state: OpenCoordination, stepId?: StepId): FactDraft[] {
  const kept = new Set(
    state.reviews.keySeq().filter((conflictId) => questionAbout(state, conflictId) !== undefined),
  );
  const reviews = state.reviews.filter((_, conflictId) => !kept.has(conflictId));
  const isKept = keptForApprovals(state);
  const claims = state.claims.filter((claim) => !isKept(claim));
  return endOfClaims({ ...state, reviews, claims }, "turn_ended", stepId);
}

/** A step can change something while an attempt of it is under way; the owner can as long as the coordination is open. */
function mayWrite({ steps }: OpenCoordination, stepId: StepId): boolean {
  if (stepId === OWNER_STEP_ID) return true;
  const status = steps.get(stepId)?.phase.status;
  return status === "dispatched" || status === "running";
}

function requestResources(state: OpenCoordination, command: RequestResources, now: EpochMs): Decision {
  const { stepId } = command;
  const requests = [...Map.groupBy(command.requests, ({ resource }) => resource).values()].flatMap(
    ([first]) => first ?? [],
  );
  const refusal = unacceptable(state, stepId, { requests, now });
  if (refusal) return refusal;
  const ruled = requests.map((request) => ({ request, ruling: rulingOn(stepId, request) }));
  const isHeldUp = ruled.some(({ ruling }) => ruling !== undefined && ruling.kind !== "granted");
  const facts = isHeldUp ? refusals(state, stepId, { ruled, now }) : grants(state, stepId, { ruled, now });
  return facts.length > 0 ? accept(facts, stepId) : { kind: "replay", stepId };
}

function unacceptable(
  state: OpenCoordination,
  stepId: StepId,
  { requests, now }: { readonly requests: readonly ResourceRequest[]; readonly now: EpochMs },
): Decision | undefined {
  if (!mayWrite(state, stepId)) return refuse("STEP_ENDED", `step ${stepId} is not at work`);
  const stale = requests.find(({ held }) => held !== undefined && !isHeld(state, { held, stepId, now }));
  if (stale)
    return refuse(
      "STALE_TOKEN",
      `claim ${String(stale.held)} of step ${stepId} on ${stale.resource} has ended`,
    );
  const fresh = requests.filter(({ held }) => held === undefined);
  if (fresh.some(({ token }) => token <= state.newestToken)) return takenToken();
  if (claimsAfter(state, stepId, fresh.length) > BOUNDS.claimsPerStepMax)
    return refuse(
      "TOO_MANY_CLAIMS",
      `a step holds at most ${BOUNDS.claimsPerStepMax} claims; end it and go on in another`,
    );
  const contested = requests.filter(isContested).length;
  if (state.conflicts.length + contested > BOUNDS.conflictsPerCoordinationMax)
    return refuse("TOO_MANY_CONFLICTS", "the coordination has had too many conflicts; end the step");
  return undefined;
}

/** They are counted only where there are many. */
function claimsAfter({ claims }: OpenCoordination, stepId: StepId, fresh: number): number {
  if (claims.size + fresh <= BOUNDS.claimsPerStepMax) return 0;
  return claims.count((claim) => claim.stepId === stepId) + fresh;
}

/** Another process of the ledger claimed something since the ruling was made. */
function takenToken(): Decision {
  return refuse("STALE_TOKEN", "another claim came first; rule again");
}

/** A2: the claim is the step's, and its lease has not ended. */
function isHeld(
  { claims }: OpenCoordination,
  { held, stepId, now }: { readonly held: number; readonly stepId: StepId; readonly now: EpochMs },
): boolean {
  const claim = claims.get(held);
  return claim?.stepId === stepId && claim.expiresAtMs > now;
}

function rulingOn(stepId: StepId, { contest }: ResourceRequest): Ruling | undefined {
  return contest && arbitrate(contestOf(stepId, contest));
}

interface Ruled {
  readonly ruled: readonly { readonly request: ResourceRequest; readonly ruling: Ruling | undefined }[];
  readonly now: EpochMs;
}

/** Everything is granted: what was contested first, then the claims that end, then the requester's. */
function grants(state: OpenCoordination, stepId: StepId, { ruled, now }: Ruled): FactDraft[] {
  let conflicts = state.conflicts.length;
  const won = ruled.flatMap(({ request, ruling }) => {
    if (!isContested(request) || ruling?.kind !== "granted") return [];
    conflicts += 1;
    const conflictId = conflictIdAt(state, conflicts);
    return [detection(stepId, request, { conflictId, now }), resolution(conflictId, request.contest, ruling)];
  });
  return [...won, ...endsOf(state, stepId, ruled), ...claims(state, stepId, { ruled, now })];
}

/** A claim on a folder covers several requests, and is renewed once. */
function claims(state: OpenCoordination, stepId: StepId, { ruled, now }: Ruled): FactDraft[] {
  const byToken = Map.groupBy(ruled, ({ request: { held, token } }) => held ?? token);
  return [...byToken.values()].flatMap(([first]) =>
    first ? claiming(state, stepId, { ...first.request, now }) : [],
  );
}

/** Each claim ends once, whatever several requests take from it. */
function endsOf(state: OpenCoordination, stepId: StepId, ruled: Ruled["ruled"]): FactDraft[] {
  const ends = new Map<number, FactDraft>();
  for (const { request, ruling } of ruled) {
    const reasons = reasonsToEnd(request, ruling);
    if (reasons.size === 0) continue;
    for (const claim of overlappingIn(state, request.resource)) {
      const because = claim.stepId === stepId ? undefined : reasons.get(claim.stepId);
      if (because && !ends.has(claim.token)) ends.set(claim.token, released(claim, because));
    }
  }
  return [...ends.values()];
}

/** Whose claims end, and why. */
function reasonsToEnd(
  { delegated = [] }: ResourceRequest,
  ruling: Ruling | undefined,
): ReadonlyMap<StepId, "delegated" | "preempted"> {
  const losers = ruling?.kind === "granted" ? ruling.losers.filter(isOwn) : [];
  return new Map([
    ...delegated.map((stepId) => [stepId, "delegated"] as const),
    ...losers.map(({ stepId }) => [stepId, "preempted"] as const),
  ]);
}

/** What is held of a resource in this coordination. */
function overlappingIn({ claims }: OpenCoordination, resource: string): HeldClaim[] {
  return claims
    .valueSeq()
    .filter((claim) => covers(claim.resource, resource) || covers(resource, claim.resource))
    .toArray();
}

function isOwn({ coordinationId }: Contestant): boolean {
  return coordinationId === undefined;
}

type Claiming = Pick<ResourceRequest, "resource" | "held" | "token" | "expiresAtMs" | "current"> & {
  readonly now: EpochMs;
};

function claiming(state: OpenCoordination, stepId: StepId, request: Claiming): FactDraft[] {
  const { resource, held, token, expiresAtMs, current, now } = request;
  if (held === undefined) {
    const priority = state.steps.get(stepId)?.spec.priority ?? "normal";
    const base = current === undefined ? {} : { base: current };
    const payload = { stepId, resource, token, priority, expiresAtMs, ...base };
    return [...replaced(state, stepId, { resource, now }), { type: "claim.acquired", payload }];
  }
  const claim = state.claims.get(held);
  if (!claim || claim.expiresAtMs >= expiresAtMs) return [];
  return [{ type: "claim.renewed", payload: { stepId, token: held, expiresAtMs } }];
}

/** The step's own earlier claim on the resource. */
function replaced(
  { claims, holdings }: OpenCoordination,
  stepId: StepId,
  { resource, now }: { readonly resource: string; readonly now: EpochMs },
): FactDraft[] {
  const earlier = claims.get(holdings.get(holdingOf(stepId, resource)) ?? 0);
  return earlier ? [released(earlier, earlier.expiresAtMs > now ? "preempted" : "expired")] : [];
}

/** Nothing is claimed; the same refusal of the same claims is recorded once (D2). */
function refusals(state: OpenCoordination, stepId: StepId, { ruled, now }: Ruled): FactDraft[] {
  let conflicts = state.conflicts.length;
  const held = heldUp(ruled);
  const requests = held.map(({ request }) => request);
  if (mayAskAbout(state, stepId, requests)) return questions(state, stepId, { requests, now });
  return held.flatMap(({ request, ruling }) => {
    if (sameConflict(state, stepId, request)) return [];
    conflicts += 1;
    const conflictId = conflictIdAt(state, conflicts);
    const detected = detection(stepId, request, { conflictId, now });
    const { contest } = request;
    if (ruling.kind === "refused") return [detected, resolution(conflictId, contest, ruling)];
    if (contest.reviewByMs !== undefined) return [detected];
    return [detected, unreviewed(stepId, conflictId, { contest, because: ruling.because })];
  });
}

/** People are asked once for as long as the question is open. */
function questions(
  state: OpenCoordination,
  stepId: StepId,
  { requests, now }: { readonly requests: readonly ContestedRequest[]; readonly now: EpochMs },
): FactDraft[] {
  return requests
    .filter(({ resource }) => !openQuestionOn(state, stepId, resource))
    .flatMap((request, after) => {
      const conflictId = conflictIdAt(state, state.conflicts.length + after + 1);
      return putQuestion(state, stepId, { request, conflictId, after, now });
    });
}

interface HeldUp {
  readonly request: ContestedRequest;
  readonly ruling: Ruling & { kind: "refused" | "review" };
}

/** What the call is not granted. People are not asked about a call that cannot happen anyway. */
function heldUp(ruled: Ruled["ruled"]): HeldUp[] {
  const held = ruled.flatMap(({ request, ruling }) =>
    isContested(request) && (ruling?.kind === "refused" || ruling?.kind === "review")
      ? [{ request, ruling }]
      : [],
  );
  const isLost = held.some(({ ruling }) => ruling.kind === "refused");
  return held.filter(({ ruling }) => !isLost || ruling.kind === "refused");
}

function releaseClaims(state: OpenCoordination, command: ReleaseClaims): Decision {
  const { stepId } = command;
  const facts = releases(state, command);
  return facts.length > 0 ? accept(facts, stepId) : { kind: "replay" };
}

function releases(state: OpenCoordination, { because, tokens, stepId, within }: ReleaseClaims): FactDraft[] {
  if (tokens) return [...new Set(tokens)].flatMap((token) => releaseOf(state, token, because));
  if (within === undefined)
    return because === "turn_ended" ? endOfTurn(state, stepId) : endOfClaims(state, because, stepId);
  return overlappingIn(state, within)
    .filter((claim) => claim.stepId === stepId)
    .map((claim) => released(claim, because));
}

function releaseOf(
  { claims }: OpenCoordination,
  token: number,
  because: FactPayloads["claim.released"]["because"],
): FactDraft[] {
  const claim = claims.get(token);
  return claim ? [released(claim, because)] : [];
}

function released(
  { stepId, token }: HeldClaim,
  because: FactPayloads["claim.released"]["because"],
): FactDraft {
  return { type: "claim.released", payload: { stepId, token, because } };
}

function settleReview(
  state: OpenCoordination,
  { conflictId, answer, claim }: SettleReview,
  now: EpochMs,
): Decision {
  const conflict = state.reviews.has(conflictId) ? conflictIn(state, conflictId) : undefined;
  if (!conflict?.contest) return { kind: "replay" };
  const { requester } = conflict.contest;
  if (answer !== "approved")
    return accept([peopleSaid(conflict, hasLapsed(state, conflict) ? "withdrawn" : answer)], requester);
  if (!claim || !mayWrite(state, requester)) return accept([peopleSaid(conflict, "withdrawn")], requester);
  return approve(state, conflict, { requester, claim, now });
}

function approve(
  state: OpenCoordination,
  conflict: Conflict,
  given: {
    readonly requester: StepId;
    readonly claim: NonNullable<SettleReview["claim"]>;
    readonly now: EpochMs;
  },
): Decision {
  const { requester, claim, now } = given;
  const { resource } = conflict;
  const held = state.holdings.get(holdingOf(requester, resource));
  const isHolding = held !== undefined && isHeld(state, { held, stepId: requester, now });
  if (!isHolding && claim.token <= state.newestToken) return takenToken();
  return accept(
    [
      peopleSaid(conflict, "approved"),
      // Also who claimed it while people thought about it.
      ...overlappingIn(state, resource)
        .filter(({ stepId }) => stepId !== requester)
        .map((other) => released(other, "preempted")),
      ...claiming(state, requester, { resource, ...claim, now, ...(isHolding && { held }) }),
    ],
    requester,
  );
}

function conflictIn({ conflicts }: OpenCoordination, conflictId: string): Conflict | undefined {
  return conflicts.findLast((conflict) => conflict.conflictId === conflictId);
}

function record(
  state: OpenCoordination,
  command: ClaimCommand & { type: "recordChange" | "recordUndetermined" },
): Decision {
  const { stepId } = command;
  if (stepId !== OWNER_STEP_ID && !state.steps.has(stepId))
    return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (command.type === "recordUndetermined") {
    const { type: _, ...payload } = command;
    return accept([{ type: "write.undetermined", payload }], stepId);
  }
  const { type: _, ...payload } = command;
  return accept([{ type: "resource.changed", payload }], stepId);
}
