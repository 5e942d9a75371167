/**
 * Owns: ruling on a tool call before it happens, and recording what it left behind. Does not own: how a call is read (its host), or
 * the rules (`arbitration/`).
 *
 * A1 rulings are made one after another in this process and appended before they are answered; of two processes that rule on the
 * same claims one rules again (S5). A2 a call is allowed under a claim that the ledger has; an attempt that was given up has none.
 * A4 a call waits for calls of other sessions and for plugins only, and never beyond its time; what plugins say is asked between
 * two rulings.
 */
import {
  addMs,
  OWNER_STEP_ID,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import { readErrorCode } from "../../contracts/errors.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import { listApprovedReviews } from "../../dispatch/conflict-questions.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import { createTurnsByName } from "../../std/turns-by-name.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import type { ArbiterState } from "./arbiter-state.ts";
import { assessCall, readPolicies, withoutMerges, withoutMergesBesideReviews } from "./assess-call.ts";
import type { AssessedTarget, LocatedTarget } from "./assessed-target.ts";
import { claimApprovedChanges } from "./claim-over.ts";
import {
  describeGivenUpAttempt,
  describeHeldResource,
  describeEndedCall,
  describeLatePlugins,
  describeCallUnderWay,
  describeUndeterminedRefusal,
  nameTarget,
} from "./conflict-sentence.ts";
import { createDeclaredResources } from "./declared-resources.ts";
import { isHeldByOthers } from "./find-opposition.ts";
import { grantCall, openReview, refuseCall, type RuledCall } from "./record-ruling.ts";
import { createKnownVersions } from "./known-versions.ts";
import { createPolicyLocator } from "./locate-policies.ts";
import { locateTarget, locateTargets, lookAtReadPlaces } from "./locate-targets.ts";
import { createParticipants, type Participant, type SessionStanding } from "./participants.ts";
import { createPluginRulings, type PluginRulings } from "./plugin-rulings.ts";
import { createUnanswerableSessions } from "./unanswerable-sessions.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import { ruleAgainAfterRace } from "../log/ruling-again.ts";
import { isAlwaysDenied, ruleOnUndetermined } from "./undetermined-writes.ts";
import type { WriteAnswer, WriteCall } from "./write-call.ts";
import { recordCommandChanges } from "./command-changes.ts";
import { recordChanges, recordUnrecorded } from "./record-changes.ts";
import { createWritesUnderWay, type CallEnding, type ResourceLook } from "./writes-under-way.ts";

/** How long a call waits for another one that writes the same thing. */
const UNDER_WAY_WAIT_MS = 2_000;

export interface Arbiter {
  /** Whether the session takes part at all; cheap, for calls that need more to be read. */
  concerns(session: SessionKey): Promise<boolean>;
  /** Rules on a call. @throws CoordinationError when the ruling could not be recorded. */
  request(call: WriteCall): Promise<WriteAnswer>;
  /** A call of `request` is over, however it went. */
  callEnded(callKey: string, ending?: CallEnding): Promise<void>;
  /** A turn of the session is over: so are its claims. */
  turnEnded(session: SessionKey): Promise<void>;
  /** Does work while no call is ruled on in this process. */
  readonly whileNothingIsRuled: <T>(work: () => Promise<T>) => Promise<T>;
  /** Tells who stands in the way of a change that a step makes without a call: who holds or declares the resource. */
  readonly isHeldByOthers: (state: OpenCoordination, stepId: StepId, resource: string) => Promise<boolean>;
  /** Ends a claim for an operator. `undefined`: there is no such claim. */
  release(token: number): Promise<{ readonly runId: CoordinationId } | undefined>;
  /** Hears of every append of this process. */
  appended(events: readonly RunEvent[]): void;
  /** Hears of a coordination that is open, whoever opened it. */
  readonly opened: (state: OpenCoordination) => void;
}

/** Creates the arbiter. It begins to read the ledger at the first call. */
export function createArbiter(dependencies: ArbiterDependencies): Arbiter {
  const turns = createTurnsByName();
  const arbiter: ArbiterState = {
    ...dependencies,
    participants: createParticipants(dependencies),
    declared: createDeclaredResources(dependencies),
    known: createKnownVersions(),
    underWay: createWritesUnderWay(),
    unrecorded: [],
    inRecordingTurn: (work) => turns.run("record", work),
    unanswerable: createUnanswerableSessions(dependencies.clock),
    policyLocator: createPolicyLocator(dependencies),
    inTurn: (work) => turns.run("rule", work),
  };
  return {
    concerns: async (session) => (await arbiter.participants.standingOf(session)).kind !== "none",
    request: (call) => ruleOnCall(arbiter, call),
    callEnded: (callKey, ending = { hasFailed: false }) => recordEndedCall(arbiter, callKey, ending),
    turnEnded: (session) => releaseClaimsOfTurn(arbiter, session),
    whileNothingIsRuled: arbiter.inTurn,
    isHeldByOthers: (state, stepId, resource) => isHeldByOthers(arbiter, { state, stepId }, resource),
    release: (token) => releaseClaim(arbiter, token),
    appended: (events) => {
      arbiter.participants.appended(events);
      for (const { type, runId, payload } of events)
        if (type === "escalation.closed" && payload.resolution === "approved")
          void tryToClaimApproved(arbiter, runId);
      arbiter.underWay.freed(
        events.flatMap(({ type, payload }) => (type === "claim.released" ? [payload.token] : [])),
      );
    },
    opened: (state) => arbiter.participants.opened(state),
  };
}

/**
 * Claims what people approved, or logs why that must wait for the requester's next call. The requester may be waiting
 * for it, and others go on with what they lose.
 */
async function tryToClaimApproved(arbiter: ArbiterState, runId: CoordinationId): Promise<void> {
  try {
    await arbiter.inTurn(() => claimApprovedChanges(arbiter, runId));
  } catch (error) {
    const code = readErrorCode(error);
    arbiter.logger.warn({ runId, code }, "an approved write could not be claimed yet");
  }
}

async function ruleOnCall(arbiter: ArbiterState, call: WriteCall): Promise<WriteAnswer> {
  // Providers use the ids of calls again.
  arbiter.underWay.forgetEnd(call.callKey, call.hookBeganAtMs ?? arbiter.clock.now());
  const standing = await arbiter.participants.standingOf(call.session);
  switch (standing.kind) {
    case "none":
      return { kind: "free" };
    case "ended":
      return refuseIfHeld(arbiter, call);
    case "given_up":
      return call.targets.length > 0 || call.undetermined
        ? { kind: "refused", sentence: describeGivenUpAttempt(standing.stepId) }
        : { kind: "free" };
    case "participant":
      return ruleForParticipant(arbiter, standing.participant, call);
  }
}

/**
 * Refuses a call of a child whose step is over where somebody holds what it changes, or where what it changes is
 * unknown and always denied.
 */
async function refuseIfHeld(arbiter: ArbiterState, call: WriteCall): Promise<WriteAnswer> {
  const { tool, undetermined } = call;
  if (undetermined && isAlwaysDenied(undetermined))
    return { kind: "refused", sentence: describeUndeterminedRefusal(tool, undetermined) };
  for (const target of call.targets)
    for (const resource of (await locateTarget(arbiter.files, target)) ?? []) {
      const claim = await findClaimByAnyName(arbiter, resource);
      if (claim) return { kind: "refused", sentence: describeHeldResource(resource, claim) };
    }
  return { kind: "free" };
}

/** Finds an active claim on a resource, or on the name that all hard links of that file share. */
async function findClaimByAnyName(
  { files, store, clock }: ArbiterState,
  resource: string,
): Promise<ClaimEntry | undefined> {
  const shared = await files.sharedName(resource);
  for (const name of shared === undefined ? [resource] : [resource, shared]) {
    const { claims } = await store.overlapping({ resource: name, atMs: clock.now(), limit: 1 });
    if (claims[0]) return claims[0];
  }
  return undefined;
}

async function ruleForParticipant(
  arbiter: ArbiterState,
  participant: Participant,
  call: WriteCall,
): Promise<WriteAnswer> {
  const looks = await lookAtReadPlaces(arbiter, call.reads);
  const { targets, isUnplaced } = await locateTargets(arbiter, participant, call);
  const doubt = await ruleOnUndetermined(arbiter, { participant, call, isUnplaced });
  if (doubt?.kind === "refused") return doubt;
  const isNothing = targets.length === 0 && looks.length === 0 && !call.mayTouchAnything;
  const answer: WriteAnswer = isNothing
    ? { kind: "free" }
    : await ruleUntilAnswered(arbiter, { participant, call, targets, looks });
  return doubt ? combineWithDoubt(answer, doubt) : answer;
}

/**
 * Returns the question to people about what could not be told, once the rest of the call is granted; else the answer.
 */
function combineWithDoubt(answer: WriteAnswer, doubt: WriteAnswer): WriteAnswer {
  if (answer.kind === "refused" || answer.kind === "review") return answer;
  const params = answer.kind === "granted" ? answer.params : undefined;
  return { ...doubt, ...(params && { params }) };
}

interface RulingRequest {
  readonly participant: Participant;
  readonly call: WriteCall;
  readonly targets: readonly LocatedTarget[];
  readonly looks: readonly ResourceLook[];
}

/** The time for an answer, where the call tells no other. */
const ANSWER_MS = 12_000;

/** A plugin that kept the thread may have left less of the time than the ledger needs: then the answer must not wait for anything. */
const LEFT_MS_MIN = 1_000;

/**
 * Rules on a call, and again when plugins have been asked or what stood in the way has ended, as long as there is
 * time.
 */
async function ruleUntilAnswered(arbiter: ArbiterState, ruleRequest: RulingRequest): Promise<WriteAnswer> {
  const { participant, call, targets } = ruleRequest;
  const beganAtMs = arbiter.clock.now();
  const answerByMs = call.answerByMs ?? addMs(beganAtMs, ANSWER_MS);
  const plugins = createPluginRulings(arbiter, { tool: call.tool, answerByMs });
  for (;;) {
    if (targets.length > 0) await arbiter.policyLocator.refresh(await readPolicies(arbiter, participant));
    const answer = await arbiter.inTurn(() =>
      ruleAgainAfterRace(() => ruleOnce(arbiter, ruleRequest, { beganAtMs, plugins })),
    );
    if ("isUnasked" in answer) {
      await plugins.ask(participant);
      if (arbiter.clock.now() > addMs(answerByMs, -LEFT_MS_MIN))
        return refuseForLatePlugins(arbiter, participant);
    } else if ("waitUntilMs" in answer) await waitUntilFreed(arbiter, answer.waitUntilMs);
    else return answer;
  }
}

function refuseForLatePlugins({ logger }: ArbiterState, { runId, stepId }: Participant): WriteAnswer {
  logger.warn(
    { runId, stepId },
    "plugins kept a write waiting for too long; it was refused without a record",
  );
  return { kind: "refused", sentence: describeLatePlugins() };
}

/** Resolves when a call of this process ends or a claim is released, or at the time. */
function waitUntilFreed({ underWay, clock }: ArbiterState, untilMs: EpochMs): Promise<void> {
  return new Promise((resolve) => {
    const stopWaiting = (): void => {
      forget();
      cancel();
      resolve();
    };
    const forget = underWay.onFree(stopWaiting);
    const cancel = clock.wakeAt(untilMs, stopWaiting);
  });
}

type PostponedRuling = { readonly waitUntilMs: EpochMs };
type UnaskedPlugins = { readonly isUnasked: true };

/** Rules on a call as things are now: returns the answer, that plugins must be asked first, or until when to wait. */
async function ruleOnce(
  arbiter: ArbiterState,
  ruleRequest: RulingRequest,
  { beganAtMs, plugins }: { readonly beganAtMs: EpochMs; readonly plugins: PluginRulings },
): Promise<WriteAnswer | PostponedRuling | UnaskedPlugins> {
  await recordUnrecorded(arbiter);
  // Whoever made it waits no more.
  if (arbiter.underWay.hasEnded(ruleRequest.call.callKey))
    return { kind: "refused", sentence: describeEndedCall() };
  const standing = await findStandingAfterApprovals(arbiter, ruleRequest.call.session);
  if (standing.kind !== "participant")
    return { kind: "refused", sentence: describeGivenUpAttempt(ruleRequest.participant.stepId) };
  const { participant } = standing;
  const { call, targets, looks } = ruleRequest;
  const assessedTargets = await assessCall(arbiter, participant, { targets, plugins });
  if (assessedTargets.some(({ isUnasked }) => isUnasked)) return { isUnasked: true };
  const writable = keepWritableMerges(arbiter, participant, call, assessedTargets);
  const assessed = withoutMergesBesideReviews(arbiter, participant, writable);
  return (
    findTimeToWait(arbiter, assessed, call.hookBeganAtMs ?? beganAtMs) ??
    recordRuling(arbiter, { participant, call, assessed, looks })
  );
}

/**
 * Finds the standing of a session, after claiming what people approved while this process was not there to claim it.
 */
async function findStandingAfterApprovals(
  arbiter: ArbiterState,
  session: SessionKey,
): Promise<SessionStanding> {
  const standing = await arbiter.participants.standingOf(session);
  if (standing.kind !== "participant" || listApprovedReviews(standing.participant.state).length === 0)
    return standing;
  await claimApprovedChanges(arbiter, standing.participant.runId);
  return arbiter.participants.standingOf(session);
}

/** Returns the assessed targets, without their merges where the tool cannot be made to write the merged texts. */
function keepWritableMerges(
  arbiter: ArbiterState,
  participant: Participant,
  { rewrite }: WriteCall,
  assessed: readonly AssessedTarget[],
): readonly AssessedTarget[] {
  const merged = assessed.flatMap((one) => one.merged ?? []);
  return merged.length === 0 || rewrite?.(merged) ? assessed : withoutMerges(arbiter, participant, assessed);
}

/** Returns until when the call waits for another call or for leases; `undefined` where it is ruled on now. */
function findTimeToWait(
  { clock, conflicts }: ArbiterState,
  assessed: readonly AssessedTarget[],
  beganAtMs: EpochMs,
): PostponedRuling | undefined {
  const now = clock.now();
  const writtenUntilMs = addMs(beganAtMs, UNDER_WAY_WAIT_MS);
  if (now < writtenUntilMs && assessed.some(({ underWay, ruling }) => underWay && ruling?.kind !== "refused"))
    return { waitUntilMs: writtenUntilMs };
  if (conflicts.onConflict !== "wait") return undefined;
  const untilMs = addMs(beganAtMs, conflicts.waitMs);
  const lostTargets = assessed.filter(({ ruling }) => ruling?.kind === "refused");
  const isOfLeases = lostTargets.length > 0 && lostTargets.every(isLostToLease);
  if (now >= untilMs || !isOfLeases) return undefined;
  const endsAtMs = findLatestTime(
    lostTargets.flatMap(({ holders }) => holders.map(({ expiresAtMs }) => expiresAtMs)),
  );
  return { waitUntilMs: endsAtMs < untilMs ? endsAtMs : untilMs };
}

/** True when the ruling depends on a lease. A change that was made does not undo itself when a lease ends. */
function isLostToLease({ ruling, holders }: AssessedTarget): boolean {
  return ruling?.kind === "refused" && ruling.winner.changedAtMs === undefined && holders.length > 0;
}

function findLatestTime(times: readonly EpochMs[]): EpochMs {
  return times.reduce((latest, at) => (at > latest ? at : latest), 0 as EpochMs);
}

/** Records the ruling on a call: grants it, refuses it, or asks people about it. */
async function recordRuling(arbiter: ArbiterState, ruled: RuledCall): Promise<WriteAnswer> {
  const { assessed } = ruled;
  if (assessed.some(({ ruling }) => ruling?.kind === "refused")) return refuseCall(arbiter, ruled);
  const reviews = assessed.filter(({ ruling }) => ruling?.kind === "review");
  // While people think, a call that has begun ends; one for which something is reserved may begin.
  const written =
    assessed.find(({ underWay }) => underWay?.isReserved) ??
    (reviews.length === 0 ? assessed.find(({ underWay }) => underWay) : undefined);
  if (written?.underWay)
    return { kind: "refused", sentence: describeCallUnderWay(nameTarget(written), written.underWay) };
  if (reviews.length === 0) return grantCall(arbiter, ruled);
  const isAskable = reviews.every(({ request: { contest } }) => contest?.reviewByMs !== undefined);
  return isAskable ? openReview(arbiter, ruled) : refuseCall(arbiter, ruled);
}

/** Records what a call left behind. A call that was not run leaves nothing. */
async function recordEndedCall(arbiter: ArbiterState, callKey: string, ending: CallEnding): Promise<void> {
  const call = arbiter.underWay.take(callKey, { ...ending, atMs: arbiter.clock.now() });
  if (!call) return;
  try {
    await recordChanges(arbiter, call, ending);
    await recordCommandChanges(arbiter, call);
  } finally {
    arbiter.underWay.end(call);
  }
}

/**
 * Releases the claims of a session whose turn has ended. The host may take long to tell that a child has ended;
 * between its turns it writes nothing.
 */
async function releaseClaimsOfTurn(arbiter: ArbiterState, session: SessionKey): Promise<void> {
  const standing = await arbiter.participants.standingOf(session);
  if (standing.kind === "participant" && standing.participant.stepId !== OWNER_STEP_ID) {
    const { runId, stepId, state } = standing.participant;
    if (state.claims.some((claim) => claim.stepId === stepId))
      await arbiter.runs.submit(runId, [{ type: "releaseClaims", because: "turn_ended", stepId }]);
  }
  for (const runId of arbiter.participants.ownedBy(session)) {
    const state = await arbiter.runs.state(runId).catch(ignoreDamage);
    if (state?.kind !== "open" || (state.claims.isEmpty() && state.reviews.isEmpty())) continue;
    await arbiter.runs.submit(runId, [
      { type: "releaseClaims", because: "turn_ended", stepId: OWNER_STEP_ID },
    ]);
  }
}

async function releaseClaim(
  arbiter: ArbiterState,
  token: number,
): Promise<{ runId: CoordinationId } | undefined> {
  const [claim] = await arbiter.store.claims({ after: token - 1, limit: 1 });
  if (claim?.token !== token) return undefined;
  const { runId } = claim;
  const submitted = await arbiter.runs.submit(runId, [
    { type: "releaseClaims", because: "operator", tokens: [token] },
  ]);
  return submitted.kind === "accepted" ? { runId } : undefined;
}
