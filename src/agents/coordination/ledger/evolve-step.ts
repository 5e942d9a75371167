/** Owns: what each fact about a step means for that step. D3 to D5 as in `evolve.ts`. */
import { BOUNDS } from "../contracts/bounds.ts";
import { assertInvariant, assertNever } from "../contracts/errors.ts";
import { epochMsOf, type EpochMs } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { evolveHeld, type HeldEvent } from "./evolve-held.ts";
import { listDifferences } from "./step-notes.ts";
import {
  childOf,
  type EndedPhase,
  type Failure,
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

export function evolveStep(before: Step, event: StepEvent): Step {
  const step = { ...before, lastFactId: event.eventId };
  switch (event.type) {
    case "step.dispatched":
      return evolveDispatched(step, event);
    case "step.acknowledged":
      return evolveAcknowledged(step, event);
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return { ...step, ...countRefusal(step, event), phase: evolveOutcome(step.phase, event) };
    case "step.reported":
      return evolveReported(step, event);
    case "step.progressed":
      // It changes nothing, so nothing is caused by it.
      return evolveProgressed(before, event);
    // Nothing is caused by what is only seen.
    case "child.observed":
      return { ...before, observed: evolveObserved(before, event) };
    case "child.differed":
      return evolveDiffered(before, event);
    case "step.outcome_refused": {
      const { attempt, outcome } = event.payload;
      // It changes nothing, so nothing is caused by it.
      return { ...before, late: [...(before.late ?? []), `${attempt}:${outcome}`] };
    }
    case "step.retry_granted":
      return grantRetry(step, event);
    case "step.skipped":
      return { ...step, phase: evolveSkipped(step.phase, event) };
    case "result.shortened": {
      const { stepId: _, ...shortened } = event.payload;
      return { ...before, shortened: [...(before.shortened ?? []), shortened] };
    }
    case "message.suppressed":
      return { ...before, suppressed: (before.suppressed ?? 0) + 1 };
    case "budget.lent":
      return evolveLent(before, event);
    case "result.withheld":
    case "result.held":
    case "result.verified":
    case "verification.failed":
    case "result.revised":
      return evolveHeld(step, event);
    default:
      return assertNever(event, "step fact");
  }
}

function evolveDispatched(step: Step, event: FactEvent & { type: "step.dispatched" }): Step {
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

/** A revised result builds on the work of the attempts before, so where they ran otherwise than they were asked still counts. */
function keepDifferences(step: Step): Pick<Step, "revisedDifferences"> {
  const { phase } = step;
  if (phase.status !== "backoff" || !phase.revision) return {};
  const revisedDifferences = listDifferences(step);
  return revisedDifferences.length > 0 ? { revisedDifferences } : {};
}

function evolveAcknowledged(step: Step, event: FactEvent & { type: "step.acknowledged" }): Step {
  const { phase } = step;
  const { childSessionKey, childRunId } = event.payload;
  checkAttempt(phase, event);
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

function evolveReported(step: Step, event: FactEvent & { type: "step.reported" }): Step {
  checkAttempt(step.phase, event);
  const { stepId: _, ...report } = event.payload;
  return { ...step, report, reports: (step.reports ?? 0) + 1 };
}

function evolveProgressed(step: Step, event: FactEvent & { type: "step.progressed" }): Step {
  checkAttempt(step.phase, event);
  const { stepId: _, attempt: _attempt, ...progress } = event.payload;
  return { ...step, progress: { ...progress, atMs: epochMsOf(event.timestamp) } };
}

function evolveObserved(
  { phase, observed: before }: Step,
  event: FactEvent & { type: "child.observed" },
): ObservedRun {
  checkAttempt(phase, event);
  const { ran, refused } = event.payload;
  return {
    ran: { ...before?.ran, ...ran },
    changes: (before?.changes ?? 0) + 1,
    ...(refused && { refused }),
  };
}

function evolveDiffered(step: Step, event: FactEvent & { type: "child.differed" }): Step {
  checkAttempt(step.phase, event);
  const { stepId: _, attempt: _attempt, ...difference } = event.payload;
  return { ...step, differences: [...(step.differences ?? []), difference] };
}

function evolveLent(step: Step, event: FactEvent & { type: "budget.lent" }): Step {
  checkAttempt(step.phase, event);
  const { stepId: _, ...loan } = event.payload;
  return { ...step, loan };
}

function checkAttempt(
  phase: StepPhase,
  event: { readonly eventId: string; readonly payload: { readonly attempt: number } },
) {
  assertInvariant(
    event.payload.attempt === phase.attempt,
    `D3: outcome of attempt ${event.payload.attempt}: ${event.eventId}`,
  );
}

/** D5: work that goes on, was completed or was cancelled is not begun again. */
function canBeDispatched({ status }: StepPhase): boolean {
  return status === "waiting" || status === "backoff" || status === "failed" || status === "timed_out";
}

/** An attempt is over: the step ends with it, or waits for the next one. */
function evolveOutcome(phase: StepPhase, event: OutcomeEvent): StepPhase {
  const end = endPhase(phase, event);
  if (event.type === "step.completed") return end;
  const { retryAtMs, escalated } = event.payload;
  if (retryAtMs === undefined && !escalated) return end;
  const { status, output: _, ...attempt } = end;
  assertInvariant(isFailure(status), `D5: a retry of what is ${status}: ${event.eventId}`);
  if (retryAtMs !== undefined) return { ...attempt, status: "backoff", cause: status, retryAtMs };
  assertInvariant(escalated !== undefined, `blocked without a question: ${event.eventId}`);
  return { ...attempt, status: "blocked", cause: status, ...escalated };
}

/** D4: an attempt that a provider refused does not count as a retry, as long as there are not too many of them. */
function countRefusal({ spec, refusals = 0 }: Step, event: OutcomeEvent): { readonly refusals?: number } {
  const isRefused = event.type === "step.failed" && event.payload.error.code === "provider_refused";
  if (!isRefused || !spec.planned || refusals >= BOUNDS.refusedAttemptsMax) return {};
  return { refusals: refusals + 1 };
}

function isFailure(status: EndedPhase["status"]): status is Failure {
  return status === "failed" || status === "timed_out";
}

function endPhase(phase: StepPhase, event: OutcomeEvent): EndedPhase {
  checkAttempt(phase, event);
  assertInvariant(
    phase.status === "dispatched" || phase.status === "running" || phase.status === "held",
    `D5: ${event.type} while ${phase.status}: ${event.eventId}`,
  );
  const child = childOf(phase);
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

function grantRetry(step: Step, event: FactEvent & { type: "step.retry_granted" }): Step {
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

/** Ends a skipped step. One that was tried before ends as its last attempt did. */
function evolveSkipped(phase: StepPhase, event: FactEvent & { type: "step.skipped" }): StepPhase {
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
