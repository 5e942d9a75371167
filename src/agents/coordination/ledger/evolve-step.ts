/** Owns: what each fact about a step means for that step. D3 to D5 as in `evolve.ts`. */
import { BOUNDS } from "../contracts/bounds.ts";
import { assertInvariant, assertNever } from "../contracts/errors.ts";
import { epochMsOf, type EpochMs } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { evolveHeldStep, type HeldEvent } from "./evolve-held.ts";
import { listRunDifferences } from "./step-notes.ts";
import {
  findChildOfPhase,
  type EndedPhase,
  type FailureStatus,
  type ObservedRun,
  type Step,
  type StepPhase,
} from "./state.ts";

type OutcomeEvent = FactEvent & { type: "step.completed" | "step.failed" | "step.timed_out" };

export type StepEvent =
  | OutcomeEvent
  | (FactEvent & {
      type:
        | "step.dispatched"
        | "step.acknowledged"
        | "step.reported"
        | "step.progressed"
        | "child.observed"
        | "child.differed"
        | "step.outcome_refused"
        | "step.retry_granted"
        | "step.skipped"
        | "result.shortened"
        | "message.suppressed"
        | "budget.lent";
    })
  | HeldEvent;

/**
 * Returns a step after a fact about it, which becomes its last cause unless it is one that is only seen, such as
 * progress.
 */
export function evolveStep(before: Step, event: StepEvent): Step {
  const step = { ...before, lastFactId: event.eventId };
  switch (event.type) {
    case "step.dispatched":
      return evolveStepDispatched(step, event);
    case "step.acknowledged":
      return evolveStepAcknowledged(step, event);
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return { ...step, ...countRefusal(step, event), phase: evolveOutcome(step.phase, event) };
    case "step.reported":
      return evolveStepReported(step, event);
    case "step.progressed":
      // It changes nothing, so nothing is caused by it.
      return evolveStepProgressed(before, event);
    // Nothing is caused by what is only seen.
    case "child.observed":
      return { ...before, observed: evolveChildObserved(before, event) };
    case "child.differed":
      return evolveChildDiffered(before, event);
    case "step.outcome_refused": {
      const { attempt, outcome } = event.payload;
      // It changes nothing, so nothing is caused by it.
      return { ...before, late: [...(before.late ?? []), `${attempt}:${outcome}`] };
    }
    case "step.retry_granted":
      return evolveRetryGranted(step, event);
    case "step.skipped":
      return { ...step, phase: evolveStepSkipped(step.phase, event) };
    case "result.shortened": {
      const { stepId: _, ...shortened } = event.payload;
      return { ...before, shortened: [...(before.shortened ?? []), shortened] };
    }
    case "message.suppressed":
      return { ...before, suppressed: (before.suppressed ?? 0) + 1 };
    case "budget.lent":
      return evolveBudgetLent(before, event);
    case "result.withheld":
    case "result.held":
    case "result.verified":
    case "verification.failed":
    case "result.revised":
      return evolveHeldStep(step, event);
    default:
      return assertNever(event, "step fact");
  }
}

function evolveStepDispatched(step: Step, event: FactEvent & { type: "step.dispatched" }): Step {
  const { phase } = step;
  const { attempt, deadlineAtMs, targetSession, message, gateway } = event.payload;
  assertInvariant(attempt === phase.attempt + 1, `D3: attempt ${attempt} out of order: ${event.eventId}`);
  assertInvariant(
    attempt <= step.spec.retryBudget + 1 + (step.granted ?? 0) + (step.revisions ?? 0) + (step.refusals ?? 0),
    `D4: attempt ${attempt} is over the budget: ${event.eventId}`,
  );
  assertInvariant(canBeDispatched(phase), `D5: dispatched while ${phase.status}: ${event.eventId}`);
  const {
    report: _,
    reports: _reports,
    progress: _progress,
    withheldCount: _texts,
    observed: _observed,
    differences: _differences,
    revisedDifferences: _revised,
    ...rest
  } = step;
  const begunAtMs = step.begunAtMs ?? epochMsOf(event.timestamp);
  return {
    ...rest,
    ...keepDifferences(step),
    ...(step.spec.planned && { begunAtMs }),
    phase: {
      status: "dispatched",
      attempt,
      dispatchedAtMs: epochMsOf(event.timestamp),
      deadlineAtMs,
      ...(targetSession && { targetSession }),
      ...(message && { message }),
      ...(gateway !== undefined && { gateway }),
    },
  };
}

/** Returns the differences of earlier attempts that still count, because the next attempt revises their result. */
function keepDifferences(step: Step): Pick<Step, "revisedDifferences"> {
  const { phase } = step;
  if (phase.status !== "backoff" || !phase.revision) return {};
  const revisedDifferences = listRunDifferences(step);
  return revisedDifferences.length > 0 ? { revisedDifferences } : {};
}

function evolveStepAcknowledged(step: Step, event: FactEvent & { type: "step.acknowledged" }): Step {
  const { phase } = step;
  const { childSessionKey, childRunId } = event.payload;
  assertCurrentAttempt(phase, event);
  assertInvariant(phase.status === "dispatched", `acknowledged while ${phase.status}: ${event.eventId}`);
  const { attempt, dispatchedAtMs, deadlineAtMs, gateway } = phase;
  return {
    ...step,
    acknowledgedEventId: event.eventId,
    phase: {
      status: "running",
      attempt,
      dispatchedAtMs,
      acknowledgedAtMs: epochMsOf(event.timestamp),
      deadlineAtMs,
      ...(gateway !== undefined && { gateway }),
      childSessionKey,
      childRunId,
    },
  };
}

function evolveStepReported(step: Step, event: FactEvent & { type: "step.reported" }): Step {
  assertCurrentAttempt(step.phase, event);
  const { stepId: _, ...report } = event.payload;
  return { ...step, report, reports: (step.reports ?? 0) + 1 };
}

function evolveStepProgressed(step: Step, event: FactEvent & { type: "step.progressed" }): Step {
  assertCurrentAttempt(step.phase, event);
  const { stepId: _, attempt: _attempt, ...progress } = event.payload;
  return { ...step, progress: { ...progress, atMs: epochMsOf(event.timestamp) } };
}

function evolveChildObserved(
  { phase, observed: before }: Step,
  event: FactEvent & { type: "child.observed" },
): ObservedRun {
  assertCurrentAttempt(phase, event);
  const { ran, refused } = event.payload;
  return {
    ran: { ...before?.ran, ...ran },
    changes: (before?.changes ?? 0) + 1,
    ...(refused && { refused }),
  };
}

function evolveChildDiffered(step: Step, event: FactEvent & { type: "child.differed" }): Step {
  assertCurrentAttempt(step.phase, event);
  const { stepId: _, attempt: _attempt, ...difference } = event.payload;
  return { ...step, differences: [...(step.differences ?? []), difference] };
}

function evolveBudgetLent(step: Step, event: FactEvent & { type: "budget.lent" }): Step {
  assertCurrentAttempt(step.phase, event);
  const { stepId: _, ...loan } = event.payload;
  return { ...step, loan };
}

function assertCurrentAttempt(
  phase: StepPhase,
  event: { readonly eventId: string; readonly payload: { readonly attempt: number } },
) {
  assertInvariant(
    event.payload.attempt === phase.attempt,
    `D3: outcome of attempt ${event.payload.attempt}: ${event.eventId}`,
  );
}

/**
 * True when a step waits for its first or next attempt, failed or timed out; not while it is at work, held or blocked,
 * nor once it was completed, cancelled or skipped (D5).
 */
function canBeDispatched({ status }: StepPhase): boolean {
  return status === "waiting" || status === "backoff" || status === "failed" || status === "timed_out";
}

/** Returns the phase after an attempt is over: the step ends with it, or waits for the next one. */
function evolveOutcome(phase: StepPhase, event: OutcomeEvent): StepPhase {
  const end = createEndedPhase(phase, event);
  if (event.type === "step.completed") return end;
  const { retryAtMs, escalated } = event.payload;
  if (retryAtMs === undefined && !escalated) return end;
  const { status, output: _, ...attempt } = end;
  assertInvariant(isFailureStatus(status), `D5: a retry of what is ${status}: ${event.eventId}`);
  if (retryAtMs !== undefined) return { ...attempt, status: "backoff", cause: status, retryAtMs };
  assertInvariant(escalated !== undefined, `blocked without a question: ${event.eventId}`);
  return { ...attempt, status: "blocked", cause: status, ...escalated };
}

/**
 * Counts one more attempt that a provider refused. It does not count as a retry, as long as there are not too many of
 * them (D4).
 */
function countRefusal({ spec, refusals = 0 }: Step, event: OutcomeEvent): { readonly refusals?: number } {
  const isRefused = event.type === "step.failed" && event.payload.error.code === "provider_refused";
  if (!isRefused || !spec.planned || refusals >= BOUNDS.refusedAttemptsMax) return {};
  return { refusals: refusals + 1 };
}

function isFailureStatus(status: EndedPhase["status"]): status is FailureStatus {
  return status === "failed" || status === "timed_out";
}

function createEndedPhase(phase: StepPhase, event: OutcomeEvent): EndedPhase {
  assertCurrentAttempt(phase, event);
  assertInvariant(
    phase.status === "dispatched" || phase.status === "running" || phase.status === "held",
    `D5: ${event.type} while ${phase.status}: ${event.eventId}`,
  );
  const child = findChildOfPhase(phase);
  const acknowledgedAtMs = "acknowledgedAtMs" in phase ? phase.acknowledgedAtMs : undefined;
  const common = {
    attempt: phase.attempt,
    dispatchedAtMs: phase.dispatchedAtMs,
    ...(acknowledgedAtMs !== undefined && { acknowledgedAtMs }),
    deadlineAtMs: phase.deadlineAtMs,
    endedAtMs: epochMsOf(event.timestamp),
    ...(child && { child: { childSessionKey: child.childSessionKey, childRunId: child.childRunId } }),
  };
  switch (event.type) {
    case "step.completed":
      return {
        status: "completed",
        ...common,
        ...(event.payload.output && { output: event.payload.output }),
        ...(event.payload.released && { released: event.payload.released }),
      };
    case "step.failed":
      return {
        status: event.payload.cancelled ? "cancelled" : "failed",
        ...common,
        error: event.payload.error,
      };
    case "step.timed_out":
      return { status: "timed_out", ...common };
    default:
      return assertNever(event, "outcome");
  }
}

/** Returns a step whose next attempt is due now; one that waited for people gets an attempt more. */
function evolveRetryGranted(step: Step, event: FactEvent & { type: "step.retry_granted" }): Step {
  const { phase } = step;
  const retryAtMs: EpochMs = epochMsOf(event.timestamp);
  if (phase.status === "backoff") return { ...step, phase: { ...phase, retryAtMs } };
  assertInvariant(phase.status === "blocked", `a retry granted while ${phase.status}: ${event.eventId}`);
  const { escalationId: _, answerByMs: _by, ...attempt } = phase;
  return {
    ...step,
    granted: (step.granted ?? 0) + 1,
    phase: { ...attempt, status: "backoff", retryAtMs },
  };
}

/**
 * Returns the phase in which a skipped step ends. One that was tried before ends as its last attempt did, or as
 * cancelled where that is why it is skipped.
 */
function evolveStepSkipped(phase: StepPhase, event: FactEvent & { type: "step.skipped" }): StepPhase {
  if (phase.status === "waiting") {
    const { because } = event.payload;
    return { status: "skipped", attempt: 0, endedAtMs: epochMsOf(event.timestamp), because };
  }
  assertInvariant(
    phase.status === "backoff" || phase.status === "blocked",
    `skipped while ${phase.status}: ${event.eventId}`,
  );
  const { cause, attempt, dispatchedAtMs, acknowledgedAtMs, deadlineAtMs, endedAtMs, child, error } = phase;
  return {
    status: event.payload.because === "cancelled" ? "cancelled" : cause,
    attempt,
    dispatchedAtMs,
    ...(acknowledgedAtMs !== undefined && { acknowledgedAtMs }),
    deadlineAtMs,
    endedAtMs,
    ...(child && { child }),
    ...(error && { error }),
  };
}
