/**
 * Owns: deciding recorded facts again from the state before them.
 *
 * Everything that this host decides is decided again: admissions, retries, time-outs, gates, rulings, questions and ends.
 * Its inputs are taken as they are recorded: what children said, how checks ruled, what people answered, which tokens claims got.
 */
import { arbitrate } from "../arbitration/arbitrate.ts";
import type { Command, ResourceContest } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { FactDraft, FactEvent } from "../contracts/run-event.ts";
import {
  formatConflictId,
  createArbitrationInput,
  draftDetectedConflict,
  draftConflictResolution,
  draftRefusalWithoutReview,
  type ContestedRequest,
} from "../dispatch/conflict-facts.ts";
import { draftConflictQuestion } from "../dispatch/conflict-questions.ts";
import { decide } from "../dispatch/decide.ts";
import type { Decision } from "../dispatch/decision.ts";
import type { Coordination, OpenCoordination } from "../ledger/state.ts";
import { checkCriteriaAgain, type OutputsByHash } from "./criteria-again.ts";
import { findDifference, isContainedIn, isSameValue } from "./same-value.ts";
import { commandsFromFacts } from "./told-command.ts";

/** `count`: how many of the recorded facts it accounts for. */
export type RepeatedDecision =
  /** Decided as recorded. */
  | { readonly kind: "same"; readonly count: number; readonly command?: Command }
  /** Nothing of ours to decide. */
  | { readonly kind: "told"; readonly count: number }
  | { readonly kind: "differs"; readonly at: number; readonly why: string };

/** The time of a decision, and the outputs that are known for it. */
interface RepetitionInputs {
  readonly now: EpochMs;
  /** Outputs that criteria of a plan look into, as far as they are kept. */
  readonly outputs: OutputsByHash;
}

/**
 * Decides again what the first of the recorded facts stands for, and returns how many facts that accounts for and
 * whether it comes out the same, without storing anything. `facts`: from the first one on, all of one time.
 */
export function decideAgain(
  state: Coordination,
  facts: readonly FactEvent[],
  deciding: RepetitionInputs,
): RepeatedDecision {
  const [lead] = facts;
  if (!lead) return { kind: "told", count: 0 };
  if (lead.type === "claim.acquired" || lead.type === "claim.renewed") return { kind: "told", count: 1 };
  if (lead.type === "conflict.detected" && state.kind === "open")
    return decideConflictAgain(state, { ...lead, type: "conflict.detected" }, { facts, now: deciding.now });
  return decideByCommand(state, facts, deciding);
}

/** Decides on each command that may have led to the facts, until one gives what is recorded. */
function decideByCommand(
  state: Coordination,
  facts: readonly FactEvent[],
  deciding: RepetitionInputs,
): RepeatedDecision {
  const isOld = isRecordedByFirstRelease(state);
  let lastDecision: Decision | undefined;
  for (const recorded of commandsFromFacts(state, facts)) {
    const command = withCriteriaJudgedAgain(state, recorded, deciding);
    const decision = decide(state, command, deciding.now);
    const drafts = listDecidedFacts(decision);
    if (drafts.length > 0 && findMismatch(facts, drafts, isOld) === undefined)
      return { kind: "same", count: drafts.length, command };
    lastDecision ??= decision;
  }
  return isOld ? { kind: "told", count: 1 } : createMismatch(facts, lastDecision);
}

/** Returns a command that judges a plan with its criteria judged again from the outputs; any other as it is. */
function withCriteriaJudgedAgain(
  state: Coordination,
  command: Command,
  { outputs }: RepetitionInputs,
): Command {
  if (command.type !== "judgePlan" || state.kind !== "open") return command;
  return { ...command, successCriteria: checkCriteriaAgain(state, command.successCriteria, outputs) };
}

/**
 * True for an opened coordination of observed spawns that release 0.1.0 recorded. It recorded less of questions and
 * conflicts than is needed to decide again.
 */
export function isRecordedByFirstRelease(state: Coordination): boolean {
  return state.kind !== "unopened" && state.created.questions === undefined && !state.created.plan;
}

/** Lists the facts that a decision appends, also with a refusal; none where it appends none. */
export function listDecidedFacts(decision: Decision): readonly FactDraft[] {
  return "facts" in decision ? (decision.facts ?? []) : [];
}

/** Returns the index of the first draft that is not what is recorded; `undefined` where there is none. */
function findMismatch(
  facts: readonly FactEvent[],
  drafts: readonly FactDraft[],
  isOld: boolean,
): number | undefined {
  const at = drafts.findIndex((draft, index) => !isFactAsDrafted(facts[index], draft, isOld));
  return at === -1 ? undefined : at;
}

function isFactAsDrafted(fact: FactEvent | undefined, draft: FactDraft, isOld: boolean): boolean {
  if (fact?.type !== draft.type) return false;
  return isSameValue(fact.payload, draft.payload) || (isOld && isContainedIn(fact.payload, draft.payload));
}

/** Returns the first difference between the recorded facts and those that are decided. */
function createMismatch(facts: readonly FactEvent[], decision: Decision | undefined): RepeatedDecision {
  const type = facts[0]?.type ?? "nothing";
  if (!decision) return { kind: "differs", at: 0, why: `nothing that could be asked leads to ${type}` };
  const drafts = listDecidedFacts(decision);
  const at = findMismatch(facts, drafts, false);
  if (at !== undefined) return { kind: "differs", at, why: describeFactDifference(facts[at], drafts[at]) };
  const reason = decision.kind === "refused" ? decision.reason : "the log said so already";
  return { kind: "differs", at: 0, why: `nothing is decided: ${reason}` };
}

function describeFactDifference(fact: FactEvent | undefined, draft: FactDraft | undefined): string {
  if (!fact || !draft) return `${draft?.type ?? "nothing"} is decided and not recorded`;
  if (fact.type !== draft.type) return `${draft.type} is decided, ${fact.type} is recorded`;
  const found = findDifference(fact.payload, draft.payload);
  if (!found) return "the same is decided";
  const { path, recorded, derived } = found;
  return `${path}: ${formatShortJson(derived)} is decided, ${formatShortJson(recorded)} is recorded`;
}

const TEXT_MAX = 120;

function formatShortJson(value: unknown): string {
  if (value === undefined) return "nothing";
  return JSON.stringify(value).slice(0, TEXT_MAX);
}

interface AtOnce {
  readonly facts: readonly FactEvent[];
  readonly now: EpochMs;
}

/** The payload of the fact that a conflict was detected. */
export type DetectedConflict = FactPayloads["conflict.detected"];

/** Rules again on a recorded conflict, from what is recorded with it (A1). */
function decideConflictAgain(
  state: OpenCoordination,
  { payload }: FactEvent & { type: "conflict.detected" },
  { facts, now }: AtOnce,
): RepeatedDecision {
  const { contest } = payload;
  if (!contest) return { kind: "told", count: 1 };
  const expectedId = formatConflictId(state, state.conflicts.length + 1);
  if (payload.conflictId !== expectedId)
    return { kind: "differs", at: 0, why: `${expectedId} is decided, ${payload.conflictId} is recorded` };
  const drafts = draftRulingFacts(state, payload, { isAsked: isAskedByOurQuestion(facts, payload), now });
  const at = findMismatch(facts, drafts, false);
  return at === undefined
    ? { kind: "same", count: drafts.length }
    : { kind: "differs", at, why: describeFactDifference(facts[at], drafts[at]) };
}

/**
 * True when the second of the facts asks people about the detected conflict by a question of ours, rather than by the
 * host.
 */
export function isAskedByOurQuestion(
  [, second]: readonly FactEvent[],
  { conflictId }: DetectedConflict,
): boolean {
  return second?.type === "coordination.escalated" && second.payload.conflictId === conflictId;
}

/**
 * Drafts again the facts that follow by the rules from a recorded conflict: the conflict, with a resolution or a
 * question where one follows at once; none where no contest is recorded.
 */
export function draftRulingFacts(
  state: OpenCoordination,
  { conflictId, resource, claims, contest }: DetectedConflict,
  { isAsked, now }: { readonly isAsked: boolean; readonly now: EpochMs },
): FactDraft[] {
  if (!contest) return [];
  const { requester, reviewByMs } = contest;
  const contested = {
    ...contestFromRecord(contest, claims),
    ...(!isAsked && pickReviewDeadline(reviewByMs)),
  };
  const request: ContestedRequest = {
    resource,
    token: state.newestToken + 1,
    expiresAtMs: now,
    contest: contested,
    ...pickVersions(contest),
  };
  if (isAsked) return draftConflictQuestion(state, requester, { request, conflictId, after: 0, now });
  const ruling = arbitrate(createArbitrationInput(requester, request.contest));
  const detected = draftDetectedConflict(requester, request, { conflictId, now });
  if (ruling.kind === "granted" || ruling.kind === "refused")
    return [detected, draftConflictResolution(conflictId, request.contest, ruling)];
  if (ruling.kind === "merge" || reviewByMs !== undefined) return [detected];
  return [
    detected,
    draftRefusalWithoutReview(requester, conflictId, { contest: request.contest, because: ruling.because }),
  ];
}

function pickReviewDeadline(reviewByMs: EpochMs | undefined): { reviewByMs?: EpochMs } {
  return reviewByMs === undefined ? {} : { reviewByMs };
}

function pickVersions({
  base,
  current,
}: NonNullable<DetectedConflict["contest"]>): Pick<ContestedRequest, "base" | "current"> {
  return { ...(base !== undefined && { base }), ...(current !== undefined && { current }) };
}

function contestFromRecord(
  { strategy, from, cause, merge, hook }: NonNullable<DetectedConflict["contest"]>,
  claims: DetectedConflict["claims"],
): ResourceContest {
  return { strategy, from, cause, claims, ...(merge && { merge }), ...(hook && { hook }) };
}
