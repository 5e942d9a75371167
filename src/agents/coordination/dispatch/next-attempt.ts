/**
 * Owns: choosing what follows a failed attempt of a planned step: another attempt after a wait, a question to people, or the end of
 * the step. D4 attempts never exceed the budget, what people granted, and `BOUNDS.refusedAttemptsMax` that a provider refused.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { FailStep, TimeOutStep } from "../contracts/commands.ts";
import type { Usage } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { addSpent, isDelivery, spentFromUsage } from "../ledger/plan-progress.ts";
import type { SpentBudget, Step } from "../ledger/state.ts";
import { computeBackoffMs } from "../plan/backoff.ts";
import { draftQuestion } from "./ask-people.ts";
import { findFirstReachedLimit, findStopReason, type PlannedCoordination } from "./plan-rules.ts";

/** The consequence of a failed attempt: another one, or a question to people. */
export type AfterFailure = Pick<FactPayloads["step.failed"], "retryAtMs" | "escalated">;

export interface NextAttempt {
  /** The fields that the outcome fact itself gets. */
  readonly after: AfterFailure;
  /** The question to people that follows the outcome. */
  readonly asked?: FactDraft;
}

interface EndedAttempt {
  readonly command: FailStep | TimeOutStep;
  readonly now: EpochMs;
}

/**
 * Returns what follows a failed attempt: another one after a wait, the draft of a question to people, or the end of
 * the step.
 */
export function chooseNextAttempt(state: PlannedCoordination, step: Step, ended: EndedAttempt): NextAttempt {
  if (isDelivery(step)) return { after: chooseDeliveryRetry(state, step, ended) };
  if (isLastAttempt(state, step, ended)) return { after: {} };
  const retryAtMs = computeRetryTime(state, step, ended);
  const limit = findSpentLimit(step, ended.command.usage, retryAtMs ?? ended.now);
  if (retryAtMs !== undefined && !limit) return { after: { retryAtMs } };
  if (state.created.failurePolicy.escalationPolicy === "none") return { after: {} };
  const retryCause = ended.command.type === "timeOutStep" ? "deadline" : "retries_exhausted";
  return draftRetryQuestion(state, step, { cause: limit ? "budget" : retryCause, now: ended.now });
}

/** True when nothing follows the attempt: the step was cancelled, the plan has stopped, or the step is of no plan. */
function isLastAttempt(
  state: PlannedCoordination,
  { spec, cancelledBy }: Step,
  { command, now }: EndedAttempt,
): boolean {
  const isCancelled = cancelledBy !== undefined || (command.type === "failStep" && command.cancelled);
  return !spec.planned || isCancelled || findStopReason(state, now) !== undefined;
}

/** Drafts the question to people whether to try the step once more. The outcome names the question by its id. */
function draftRetryQuestion(
  state: PlannedCoordination,
  { spec: { stepId } }: Step,
  { cause, now }: { readonly cause: "budget" | "deadline" | "retries_exhausted"; readonly now: EpochMs },
): NextAttempt {
  const draft = draftQuestion(
    state,
    { stepId, cause, kind: "approval", answers: ["approve", "deny"] },
    { now },
  );
  const { escalationId, deadlineAtMs: answerByMs } = draft.payload;
  return { after: { escalated: { escalationId, answerByMs } }, asked: draft };
}

/**
 * Errors that prove that the owner was not told: the host began no turn, or the turn failed before it had the message. After other
 * errors the owner may have seen it, or its turn was stopped on purpose.
 */
const UNSENT: ReadonlySet<string> = new Set(["spawn_refused", "spawn_not_confirmed", "child_failed"]);

/**
 * Returns when a failed delivery is retried; empty where no retry is left, or where the host may have passed the
 * message on: it is never sent twice.
 */
function chooseDeliveryRetry(
  state: PlannedCoordination,
  step: Step,
  ended: EndedAttempt,
): NextAttempt["after"] {
  const retryAtMs = isDeliveryUnsent(ended.command) ? computeRetryTime(state, step, ended) : undefined;
  return retryAtMs === undefined ? {} : { retryAtMs };
}

/** True where the owner surely was not told. Earlier releases said that of no turn that failed. */
function isDeliveryUnsent(command: EndedAttempt["command"]): boolean {
  if (command.type !== "failStep") return false;
  const { code } = command.error;
  return UNSENT.has(code) && !(command.asEarlier && code === "child_failed");
}

/** Returns when the next attempt is due; `undefined` where the budget or the plan's deadline leaves no room for one. */
function computeRetryTime(
  { created }: PlannedCoordination,
  step: Step,
  { command, now }: EndedAttempt,
): EpochMs | undefined {
  const { spec, phase } = step;
  if (!spec.planned || !(isUncountedAttempt(step, command) || hasAttemptLeft(step))) return undefined;
  // The same outputs give the same input, so another attempt would fail in the same way.
  if (command.type === "failStep" && command.error.code === "input_unavailable") return undefined;
  const rule = { budget: spec.retryBudget, backoffMs: spec.planned.backoffMs };
  const { seed = "", deadlineAtMs } = created.plan ?? {};
  const backoffMs = computeBackoffMs(rule, phase.attempt, `${seed}:${spec.stepId}`);
  const atMs = addMs(now, Math.max(backoffMs, readRetryDelayMs(command)));
  return isDeadlineReached(atMs, isDelivery(step) ? undefined : deadlineAtMs) ? undefined : atMs;
}

/**
 * True when a provider refused the attempt, and it does not count as a retry. A refusal may come after calls of tools, so a
 * step that may be sent once only is not sent again for it.
 */
function isUncountedAttempt({ spec, refusals = 0 }: Step, command: EndedAttempt["command"]): boolean {
  if (spec.deliveryMode === "best_effort") return false;
  const isRefused = command.type === "failStep" && command.error.code === "provider_refused";
  return isRefused && refusals < BOUNDS.refusedAttemptsMax;
}

/** Returns how many milliseconds the provider asked to wait, within the bound; 0 where it asked for none. */
function readRetryDelayMs(command: EndedAttempt["command"]): number {
  const retryAfterMs = command.type === "failStep" ? (command.retryAfterMs ?? 0) : 0;
  return Math.min(Math.max(0, Math.ceil(retryAfterMs)), BOUNDS.retryAfterMsMax);
}

function isDeadlineReached(atMs: EpochMs, deadlineAtMs: EpochMs | undefined): boolean {
  return deadlineAtMs !== undefined && atMs >= deadlineAtMs;
}

/**
 * True when an attempt is left (D4). Attempts that revise a result or that a provider refused do not count as retries, but for the
 * refused ones of a step that may be sent once only.
 */
function hasAttemptLeft(step: Step): boolean {
  const { spec, phase, granted = 0, revisions = 0 } = step;
  const refusals = spec.deliveryMode === "best_effort" ? 0 : (step.refusals ?? 0);
  return phase.attempt - revisions - refusals <= Math.min(spec.retryBudget + granted, BOUNDS.retryBudgetMax);
}

/**
 * Returns the name of the limit of the step's own budget that is reached by the time of its next attempt; `undefined`
 * where none is. This attempt counts too, with its `usage` where that is not in the log yet.
 */
export function findSpentLimit(
  { spec, spent, phase, begunAtMs = 0 as EpochMs }: Step,
  usage: Usage | undefined,
  nextAtMs: EpochMs,
): string | undefined {
  const budget = spec.planned?.budget;
  if (!budget) return undefined;
  if (budget.wallMs !== undefined && nextAtMs >= addMs(begunAtMs, budget.wallMs)) return "wallMs";
  const before: SpentBudget = spent ?? { spawns: phase.attempt, tokens: 0, costMicroUsd: 0 };
  return findFirstReachedLimit(addSpent(before, spentFromUsage(usage)), budget);
}
