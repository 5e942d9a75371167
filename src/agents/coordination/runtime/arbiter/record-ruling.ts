/** Owns: what is recorded of a ruling, and what the caller is answered. Nothing is answered that is not on disk (D1). */
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { Command, ResourceRequest } from "../../contracts/commands.ts";
import { CoordinationError, assertInvariant, readErrorCode } from "../../contracts/errors.ts";
import { addMs } from "../../contracts/ids.ts";
import { isFileResource } from "../../contracts/resource-names.ts";
import { isContested, findConflictUnderReview, findSameConflict } from "../../dispatch/conflict-facts.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { ArbiterState } from "./arbiter-state.ts";
import { stampHeldFiles } from "./command-changes.ts";
import { findLastChange } from "./find-opposition.ts";
import { recordChanges, UNKNOWN_VERSION } from "./record-changes.ts";
import { ruleAgainAfterRace } from "../log/ruling-again.ts";
import { listContentsToKeep } from "./assess-call.ts";
import type { AssessedTarget } from "./assessed-target.ts";
import {
  describeOpenQuestions,
  describeRecordRefusal,
  describeRefusal,
  createReviewText,
  type OpenQuestion,
} from "./conflict-sentence.ts";
import { findOpenConflictQuestion } from "../../dispatch/conflict-questions.ts";
import { claimForApproved, endOverlappingClaims, isWonOverHolders } from "./claim-over.ts";
import type { Participant } from "./participants.ts";
import type { SubmitResult } from "../log/run-log.ts";
import type { ReviewAnswer, WriteAnswer, WriteCall } from "./write-call.ts";
import type { ChangeUnderWay, ResourceLook } from "./writes-under-way.ts";

export interface RuledCall {
  readonly participant: Participant;
  readonly call: WriteCall;
  readonly assessed: readonly AssessedTarget[];
  readonly looks: readonly ResourceLook[];
}

export async function grantCall(arbiter: ArbiterState, ruled: RuledCall): Promise<WriteAnswer> {
  const { call, assessed } = ruled;
  const submitted = await recordGrant(arbiter, ruled);
  if (submitted?.kind === "refused") return refuseUnrecorded(submitted);
  await noteCallUnderWay(
    arbiter,
    ruled,
    assessed.map(({ request }) => request.token),
  );
  const merged = assessed.flatMap((one) => one.merged ?? []);
  const params = merged.length > 0 ? call.rewrite?.(merged) : undefined;
  return { kind: "granted", ...(params && { params }) };
}

/** Records the claims of a requester that is granted all, and what it takes over. `undefined` where there is nothing to record. */
async function recordGrant(arbiter: ArbiterState, ruled: RuledCall): Promise<SubmitResult | undefined> {
  const wins = await recordForeignWins(arbiter, ruled);
  if (wins?.kind === "refused") return wins;
  await endForeignClaims(arbiter, ruled);
  return submitResourceRequests(arbiter, wins ? withoutContests(ruled) : ruled);
}

/** Notes the call, so that what it changed is looked at when it has ended. */
async function noteCallUnderWay(
  arbiter: ArbiterState,
  ruled: RuledCall,
  tokens: readonly (number | undefined)[],
): Promise<void> {
  const { participant, call, assessed, looks } = ruled;
  const underWay = {
    callKey: call.callKey,
    tool: call.tool,
    participant,
    looks,
    atMs: arbiter.clock.now(),
    mayTouchAnything: call.mayTouchAnything === true,
    ...(call.folder !== undefined && { folder: call.folder }),
    held: await stampHeldFiles(arbiter, participant, call.mayTouchAnything ? call.folder : undefined),
    seenOrder: arbiter.known.takeNextOrder(),
    changes: assessed.map((one, index) => createChangeUnderWay(arbiter, one, tokens[index])),
  };
  const ending = arbiter.underWay.begin(underWay);
  if (ending) await recordChanges(arbiter, underWay, ending);
}

function createChangeUnderWay(
  { refOf }: ArbiterState,
  { request, target, look, text, proposed }: AssessedTarget,
  token: number | undefined,
): ChangeUnderWay {
  const { resource, held: requesterClaim } = request;
  const before = look && "version" in look ? look.version : UNKNOWN_VERSION;
  return {
    resource,
    ...(token !== undefined && { token }),
    before,
    replaces: target.replaces,
    isNew: requesterClaim !== token,
    ...(text !== undefined && { text }),
    ...(proposed !== undefined && { knownAs: `sha256:${refOf(proposed).sha256}` }),
  };
}

/**
 * Records the conflicts of a call that takes claims of other coordinations over, before these end: after a lost race nobody stands
 * against the call any more. `undefined` where it takes none over.
 */
async function recordForeignWins(
  { runs }: ArbiterState,
  { participant: { runId, stepId }, assessed }: RuledCall,
): Promise<SubmitResult | undefined> {
  if (assessed.every((one) => listForeignLosses(one).length === 0)) return undefined;
  const requests = assessed.map(({ request }) => request);
  return runs.submit(runId, [{ type: "requestResources", stepId, requests, claimsLater: true }]);
}

/** Returns the call without its contests and the claims delegated to it, which are recorded already. */
function withoutContests(ruled: RuledCall): RuledCall {
  const assessed = ruled.assessed.map((one) => {
    const { contest: _contest, delegated: _delegated, ...request } = one.request;
    return { ...one, request };
  });
  return { ...ruled, assessed };
}

/**
 * Ends the claims that other coordinations lose, in their own logs, before the requester gets its own. A crash in
 * between leaves nobody with a claim, which harms nobody.
 */
async function endForeignClaims(arbiter: ArbiterState, { participant, assessed }: RuledCall): Promise<void> {
  const isForeign = ({ runId }: ClaimEntry): boolean => runId !== participant.runId;
  for (const one of assessed) {
    const { resource } = one.target;
    await endOverlappingClaims(arbiter, { claims: listForeignLosses(one), resource, because: "preempted" });
    await endOverlappingClaims(arbiter, {
      claims: one.delegated.filter(isForeign),
      resource,
      because: "delegated",
    });
  }
}

/** Lists the claims that other coordinations lose by the ruling. */
function listForeignLosses({ ruling, holders }: AssessedTarget): readonly ClaimEntry[] {
  const losers = ruling?.kind === "granted" ? ruling.losers : [];
  return holders.filter(({ runId, stepId }) =>
    losers.some(({ coordinationId, stepId: loser }) => coordinationId === runId && loser === stepId),
  );
}

/** Refuses the call of whoever lost, even when the refusal cannot be recorded. */
export async function refuseCall(arbiter: ArbiterState, ruled: RuledCall): Promise<WriteAnswer> {
  const { participant } = ruled;
  const refusedTarget = chooseTargetToTell(ruled);
  const submitted = await recordRefusal(arbiter, ruled);
  if (submitted?.kind === "refused") return refuseUnrecorded(submitted);
  const state = submitted?.state ?? participant.state;
  const questions = listOpenQuestions(state, ruled, refusedTarget);
  const [question] = questions;
  const conflictId = question
    ? question.conflictId
    : submitted && findConflictId(state, participant, refusedTarget.request);
  const sentence = question
    ? describeOpenQuestions(refusedTarget, state, questions)
    : describeRefusal(refusedTarget, state, conflictId);
  return conflictId === undefined ? { kind: "refused", sentence } : { kind: "refused", sentence, conflictId };
}

/**
 * Chooses the target to tell the model about: first what it lost, then what it can mend itself, then what is for
 * people.
 */
function chooseTargetToTell({ assessed }: RuledCall): AssessedTarget {
  const reviews = assessed.filter(({ ruling }) => ruling?.kind === "review");
  const refusals =
    assessed.find(({ ruling }) => ruling?.kind === "refused") ??
    reviews.find(({ request }) => !request.contest?.asksPeople) ??
    reviews[0];
  assertInvariant(refusals !== undefined, "A3: a refused call has a ruling");
  return refusals;
}

/** Lists open questions on a call's targets where one is for people. */
function listOpenQuestions(
  state: Coordination,
  { participant, assessed }: RuledCall,
  refusedTarget: AssessedTarget,
): (OpenQuestion & { readonly conflictId?: string | undefined })[] {
  if (state.kind !== "open" || !refusedTarget.request.contest?.asksPeople) return [];
  return assessed.flatMap(({ request: { resource } }) => {
    const question = findOpenConflictQuestion(state, participant.stepId, resource);
    if (!question) return [];
    const { escalationId, deadlineAtMs, conflictId } = question;
    return [{ questionId: `${state.coordinationId}:${escalationId}`, deadlineAtMs, conflictId }];
  });
}

async function recordRefusal(arbiter: ArbiterState, ruled: RuledCall): Promise<SubmitResult | undefined> {
  try {
    return await submitResourceRequests(arbiter, ruled);
  } catch (error) {
    const { runId, stepId } = ruled.participant;
    const code = readErrorCode(error);
    arbiter.logger.error({ runId, stepId, code }, "a refused write could not be recorded");
    return undefined;
  }
}

/** A call that people are asked about. */
interface ReviewedCall {
  readonly reviewed: RuledCall;
  /** The targets that people are not asked about and that nobody loses a claim on. */
  readonly besides: RuledCall;
  /** The targets that the rules give the requester over holders, who keep their claims until the call is approved. */
  readonly won: readonly AssessedTarget[];
}

/**
 * Claims what is not asked about while people think, and keeps it from everybody who calls in this gateway, also from those who work for
 * the requester. Nobody loses a claim before the call happens.
 */
export async function openReview(arbiter: ArbiterState, ruled: RuledCall): Promise<WriteAnswer> {
  const { participant } = ruled;
  const split = splitReviewed(arbiter, ruled);
  const { reviewed, besides } = split;
  const claimed = await recordGrant(arbiter, besides);
  if (claimed?.kind === "refused") return refuseUnrecorded(claimed);
  const submitted = await submitResourceRequests(arbiter, reviewed);
  assertInvariant(submitted !== undefined, "A3: a reviewed call has a ruling");
  if (submitted.kind === "refused") {
    await arbiter.runs.submit(participant.runId, await draftReleaseOfUnused(arbiter, besides));
    return refuseUnrecorded(submitted);
  }
  arbiter.underWay.begin({
    callKey: nameReservation(reviewed),
    tool: reviewed.call.tool,
    participant,
    looks: [],
    atMs: arbiter.clock.now(),
    mayTouchAnything: false,
    isReserved: true,
    seenOrder: arbiter.known.takeNextOrder(),
    changes: besides.assessed.map((one) => createChangeUnderWay(arbiter, one, one.request.token)),
  });
  const { state } = submitted;
  const questions = new Map(
    reviewed.assessed.flatMap(({ request: { resource } }) => {
      const conflict = state.kind === "open" && findConflictUnderReview(state, participant.stepId, resource);
      return conflict ? [[resource, conflict.conflictId] as const] : [];
    }),
  );
  return {
    kind: "review",
    ...createReviewText(reviewed.assessed, state),
    timeoutMs: arbiter.conflicts.reviewMs,
    settle: (answer) => settleReview(arbiter, split, { questions, answer }),
  };
}

/** Names what reserves the targets that a call has beside those that people are asked about: the call has not begun. */
function nameReservation({ call }: RuledCall): string {
  return `${call.callKey} beside`;
}

/** Splits a call into what people are asked about and the rest, which is claimed first, and for as long as they may think. */
function splitReviewed({ clock, conflicts }: ArbiterState, ruled: RuledCall): ReviewedCall {
  const { assessed } = ruled;
  const reviewed = assessed.filter(({ ruling }) => ruling?.kind === "review");
  const won = assessed.filter(isWonOverHolders);
  const besides = assessed.filter((one) => !reviewed.includes(one) && !won.includes(one));
  const leaseEnd = addMs(clock.now(), Math.max(conflicts.leaseMs, conflicts.reviewMs));
  const tokens = assessed.filter(isNewClaim).map(({ request }) => request.token);
  const takeToken = (one: AssessedTarget): number =>
    (isNewClaim(one) ? tokens.shift() : undefined) ?? one.request.token;
  const claimed = besides.map((one): AssessedTarget => {
    const { expiresAtMs } = one.request;
    const lasting = expiresAtMs < leaseEnd ? leaseEnd : expiresAtMs;
    return { ...one, request: { ...one.request, token: takeToken(one), expiresAtMs: lasting } };
  });
  const uncertain = reviewed.map((one): AssessedTarget => ({
    ...one,
    request: { ...one.request, token: takeToken(one) },
  }));
  return { reviewed: { ...ruled, assessed: uncertain }, besides: { ...ruled, assessed: claimed }, won };
}

function isNewClaim({ request }: AssessedTarget): boolean {
  return request.held === undefined;
}

interface ReviewSettlement {
  /** The conflict of each resource that people are asked about. */
  readonly questions: ReadonlyMap<string, string>;
  readonly answer: ReviewAnswer;
}

/** An approved call happens at once, so it is under way from here. One that was cancelled before happens no more. */
function settleReview(
  arbiter: ArbiterState,
  { reviewed, besides, won }: ReviewedCall,
  { questions, answer }: ReviewSettlement,
): Promise<void> {
  const { participant, call } = reviewed;
  if (answer === "nobody_to_ask") arbiter.unanswerable.add(participant.session);
  // Looked at before the turn comes: the host does not wait for it, and the call may be over by then.
  const isCancelled = answer === "approved" && arbiter.underWay.hasEnded(call.callKey);
  if (answer !== "approved" || isCancelled)
    return arbiter.inTurn(async () => {
      endReservation(arbiter, reviewed);
      const closing = [...questions.values()].map((conflictId): Command => ({
        type: "settleReview",
        conflictId,
        answer: isCancelled ? "withdrawn" : answer,
      }));
      const released = await draftReleaseOfUnused(arbiter, besides);
      await arbiter.runs.submit(participant.runId, [...closing, ...released]);
    });
  return arbiter.inTurn(async () => {
    endReservation(arbiter, reviewed);
    const assessed: AssessedTarget[] = [];
    const tokens: (number | undefined)[] = [];
    const all = [...besides.assessed, ...won, ...reviewed.assessed];
    for (const one of all) {
      const target = { one, conflictId: questions.get(one.request.resource) };
      tokens.push(await ruleAgainAfterRace(() => claimForApproved(arbiter, participant, target)));
    }
    const state = await arbiter.runs.state(participant.runId);
    for (const [index, one] of all.entries())
      assessed.push(await refreshLook(arbiter, keepUsedClaim(state, one, tokens[index])));
    await noteCallUnderWay(arbiter, { ...reviewed, assessed }, tokens);
  });
}

/** Marks the claim of a target as one that stays where the call fails: its session has changed something under it meanwhile. */
function keepUsedClaim(state: Coordination, one: AssessedTarget, token: number | undefined): AssessedTarget {
  if (token === undefined || !hasChangeUnder(state, one.request.resource, token)) return one;
  return { ...one, request: { ...one.request, held: token } };
}

function hasChangeUnder(state: Coordination, resource: string, token: number): boolean {
  return state.kind === "open" && state.changes.get(resource)?.token === token;
}

function endReservation({ underWay, clock }: ArbiterState, reviewed: RuledCall): void {
  const besides = underWay.take(nameReservation(reviewed), { hasFailed: true, atMs: clock.now() });
  if (besides) underWay.end(besides);
}

/** Drafts the end of the new claims of a call that does not happen, unless other calls of its session changed something under them. */
async function draftReleaseOfUnused(
  { runs, underWay }: ArbiterState,
  { participant: { runId }, assessed }: RuledCall,
): Promise<Command[]> {
  const state = await runs.state(runId);
  if (state.kind !== "open") return [];
  const unused = assessed.filter(isNewClaim).flatMap(({ request: { resource, token } }) => {
    if (hasChangeUnder(state, resource, token)) return [];
    const users = underWay.listChangesUnder(token);
    // The last of them to fail releases it.
    for (const user of users) user.isNew = true;
    return users.length === 0 ? [token] : [];
  });
  return unused.length === 0 ? [] : [{ type: "releaseClaims", because: "unused", tokens: unused }];
}

/**
 * Looks at a file again, minutes after the ruling, and takes that version where the ledger has it. Such a version is
 * not of this call. One that the ledger does not have may be, because the call may be under way already.
 */
async function refreshLook(arbiter: ArbiterState, assessed: AssessedTarget): Promise<AssessedTarget> {
  const { text: _text, ...one } = assessed;
  const { resource } = one.target;
  if (!isFileResource(resource)) return one;
  const look = await arbiter.files.look(resource);
  const last = await findLastChange(arbiter, resource);
  return "version" in look && last?.change.version === look.version ? { ...one, look } : one;
}

/** Returns a refusal for the log's reason; throws for a stale token, to rule again. */
function refuseUnrecorded({ code, reason }: SubmitResult & { kind: "refused" }): WriteAnswer {
  if (code === "STALE_TOKEN") throw new CoordinationError("CLAIM_CONFLICT", reason);
  return { kind: "refused", sentence: describeRecordRefusal(reason) };
}

/** Submits the requests for all resources of a ruling; `undefined` where there is nothing to record. */
async function submitResourceRequests(
  arbiter: ArbiterState,
  { participant: { runId, stepId }, assessed }: RuledCall,
): Promise<SubmitResult | undefined> {
  if (assessed.length === 0) return undefined;
  const requests = assessed.map(({ request }) => request);
  const isGranted = assessed.every(({ ruling }) => ruling === undefined || ruling.kind === "granted");
  const contents = isGranted ? listContentsToKeep(arbiter, assessed) : [];
  return arbiter.runs.submit(runId, [{ type: "requestResources", stepId, requests }], contents);
}

function findConflictId(
  state: Coordination,
  { stepId }: Participant,
  request: ResourceRequest,
): string | undefined {
  if (state.kind !== "open" || !isContested(request)) return undefined;
  return findSameConflict(state, stepId, request)?.conflictId;
}
