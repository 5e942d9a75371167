/** Owns: what an event adds to the metrics, from the state of its coordination before and after it. Pure. */
import { isBudgetStop } from "../../agents/coordination/contracts/escalation.ts";
import {
  epochMsOf,
  DELIVERY_STEP_ID,
  type EpochMs,
  type StepId,
} from "../../agents/coordination/contracts/ids.ts";
import { isFact, type FactEvent, type RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import {
  isEnded,
  type Coordination,
  type KnownCoordination,
  type Step,
  type StepPhase,
} from "../../agents/coordination/ledger/state.ts";
import type { LabelsOf, Sample } from "./definitions.ts";

const MS_PER_SECOND = 1_000;

/** An event, with the coordination before and after it. */
export interface CoordinationChange {
  readonly before: Coordination;
  readonly event: RunEvent;
  readonly after: Coordination;
}

/** True of an event whose type can add to the metrics; whether it does may depend on the state of its coordination. */
export function isCounted(event: RunEvent): boolean {
  return isFact(event) && !UNCOUNTED.has(event.type);
}

/** Facts that come often, or after the end, and that nothing is counted of. */
const UNCOUNTED: ReadonlySet<FactEvent["type"]> = new Set([
  "usage.recorded",
  "step.progressed",
  "step.acknowledged",
  "step.admitted",
  "child.observed",
  "claim.acquired",
  "claim.renewed",
  "claim.released",
  "resource.changed",
]);

/**
 * Lists what one event adds to the metrics, by the state of its coordination before and after it. Events of OpenWOP
 * add nothing, because they repeat what facts say.
 */
export function listMetricSamples({ before, event, after }: CoordinationChange): readonly Sample[] {
  if (!isFact(event) || after.kind === "unopened") return [];
  if (event.type === "coordination.created")
    return [{ name: "coordination_opened_total", labels: { origin: event.payload.origin } }];
  if (before.kind === "unopened") return [];
  return [
    ...listOwnSamples(before, event),
    ...listPlanStopSamples(before, after),
    ...listStepSamples(before, event, after),
  ];
}

/** Lists what the fact itself adds, whatever it changed. */
function listOwnSamples(before: KnownCoordination, event: FactEvent): readonly Sample[] {
  switch (event.type) {
    case "coordination.terminal":
      return listEndSamples(before, event);
    case "step.outcome_refused":
      return [{ name: "coordination_fenced_outcomes_total", labels: { because: event.payload.because } }];
    case "conflict.resolved":
      return [{ name: "coordination_conflicts_total", labels: createRulingLabels(before, event) }];
    case "budget.reached": {
      const { limit, stopped } = event.payload;
      return [{ name: "coordination_budget_stops_total", labels: { limit, stopped } }];
    }
    case "coordination.escalated":
      return listQuestionSamples(event);
    case "escalation.answered":
      return listAnswerSamples(before, event);
    case "escalation.closed":
      return listClosingSamples(before, event);
    default:
      return [];
  }
}

function listEndSamples(
  before: KnownCoordination,
  { payload }: FactEvent & { type: "coordination.terminal" },
): readonly Sample[] {
  const { status, delivery } = payload;
  const end: Sample = { name: "coordination_ended_total", labels: { status } };
  // A plan that ends with its parent has nobody left to tell.
  if (!delivery || (before.kind === "open" && before.cancelledBy === "parent")) return [end];
  return [end, { name: "coordination_deliveries_total", labels: { outcome: delivery } }];
}

function listQuestionSamples({ payload }: FactEvent & { type: "coordination.escalated" }): readonly Sample[] {
  if (isBudgetStop(payload)) return [];
  return [{ name: "coordination_questions_total", labels: { cause: payload.cause } }];
}

function listClosingSamples(
  { escalations }: KnownCoordination,
  { payload: { escalationId, resolution } }: FactEvent & { type: "escalation.closed" },
): readonly Sample[] {
  const question = escalations.get(escalationId);
  if (question && isBudgetStop(question)) return [];
  return [{ name: "coordination_questions_closed_total", labels: { resolution } }];
}

/**
 * Returns the labels of a ruling on a conflict: its strategy, and whether the requester was granted or refused;
 * "resolved" where the record does not say who the requester was.
 */
function createRulingLabels(
  { conflicts }: KnownCoordination,
  { payload }: FactEvent & { type: "conflict.resolved" },
): LabelsOf<"coordination_conflicts_total"> {
  const { conflictId, strategy, winner, winnerCoordinationId } = payload;
  const contest = conflicts.findLast((conflict) => conflict.conflictId === conflictId)?.contest;
  if (!contest) return { strategy, outcome: "resolved" };
  const isGranted = winner === contest.requester && winnerCoordinationId === undefined;
  return { strategy, outcome: isGranted ? "granted" : "refused" };
}

/** Lists how long the answer that counted took, from when those who answered were asked. */
function listAnswerSamples(
  { escalations }: KnownCoordination,
  { payload, timestamp }: FactEvent & { type: "escalation.answered" },
): readonly Sample[] {
  const question = escalations.get(payload.escalationId);
  if (payload.refused || !question) return [];
  const { kind: by } = payload.by;
  const sinceMs = by === "agent" ? question.askedAtMs : (question.forwardedAtMs ?? question.askedAtMs);
  const seconds = countSeconds(sinceMs, epochMsOf(timestamp));
  return [{ name: "coordination_question_answer_seconds", labels: { by }, seconds }];
}

function listPlanStopSamples(before: KnownCoordination, { plan }: KnownCoordination): readonly Sample[] {
  if (!plan?.stop || before.plan?.stop === plan.stop) return [];
  return [{ name: "coordination_plan_stops_total", labels: { because: plan.stop } }];
}

interface StepChange {
  readonly before: Step;
  readonly after: Step;
  readonly atMs: EpochMs;
}

/** Lists what the step adds whose phase changed. Telling the owner is no step of the plan that it tells of. */
function listStepSamples(
  before: KnownCoordination,
  event: FactEvent,
  after: KnownCoordination,
): readonly Sample[] {
  const stepId = findChangedStepId(before, event);
  if (stepId === undefined || stepId === DELIVERY_STEP_ID) return [];
  const stepBefore = before.steps.get(stepId);
  const stepAfter = after.steps.get(stepId);
  if (!stepBefore || !stepAfter || stepBefore.phase === stepAfter.phase) return [];
  const change = { before: stepBefore, after: stepAfter, atMs: epochMsOf(event.timestamp) };
  return [
    ...(event.type === "step.dispatched" ? listDispatchSamples(before, change) : []),
    ...listHeldResultSamples(change, event),
    ...listStepEndSamples(change),
  ];
}

/**
 * Returns the step whose phase the fact may change. The end of a question may be that of the step that waited for it.
 */
function findChangedStepId(
  { escalations }: KnownCoordination,
  { type, payload }: FactEvent,
): StepId | undefined {
  if (type === "escalation.closed") return escalations.get(payload.escalationId)?.stepId;
  return "stepId" in payload ? payload.stepId : undefined;
}

function listDispatchSamples(
  coordination: KnownCoordination,
  { before, atMs }: StepChange,
): readonly Sample[] {
  const { lane } = before.spec;
  const seconds = countSeconds(findReadyTime(coordination, before) ?? atMs, atMs);
  const begun: readonly Sample[] = [
    { name: "coordination_attempts_total", labels: { lane } },
    { name: "coordination_step_wait_seconds", labels: { lane }, seconds },
  ];
  const cause = nameRetryCause(before.phase);
  return cause ? [...begun, { name: "coordination_retries_total", labels: { cause } }] : begun;
}

/** Returns since when the next attempt could have begun; `undefined` for a spawn, which begins as it is admitted. */
function findReadyTime({ plan }: KnownCoordination, { spec, phase }: Step): EpochMs | undefined {
  if (phase.status === "backoff") return phase.retryAtMs;
  return plan?.ready[spec.lane].get(spec.stepId);
}

/** Returns the metric's label for why the next attempt is a retry; `undefined` where it is none. */
function nameRetryCause(phase: StepPhase): LabelsOf<"coordination_retries_total">["cause"] | undefined {
  switch (phase.status) {
    case "backoff":
      return phase.revision ? "revision" : phase.cause;
    case "failed":
    case "timed_out":
      return phase.status;
    default:
      return undefined;
  }
}

function listHeldResultSamples({ before, after }: StepChange, event: FactEvent): readonly Sample[] {
  if (after.phase.status === "held")
    return before.phase.status === "held" ? [] : [{ name: "coordination_held_results_total", labels: {} }];
  if (before.phase.status !== "held") return [];
  return [
    {
      name: "coordination_held_results_ruled_total",
      labels: { ruling: nameHeldResultRuling(event, after.phase) },
    },
  ];
}

function nameHeldResultRuling(
  event: FactEvent,
  phase: StepPhase,
): LabelsOf<"coordination_held_results_ruled_total">["ruling"] {
  if (event.type === "result.revised") return "revised";
  if (event.type === "step.completed") return event.payload.released ?? "verified";
  return phase.status === "cancelled" ? "cancelled" : "refused";
}

/**
 * Lists that a step ended and how long its attempt took. It may end again, after an attempt that was granted when it
 * had ended.
 */
function listStepEndSamples({ before, after: { phase, spec } }: StepChange): readonly Sample[] {
  if (!isEnded(phase) || isEnded(before.phase)) return [];
  const { lane } = spec;
  const ended: Sample = { name: "coordination_steps_total", labels: { outcome: phase.status, lane } };
  if (phase.status === "skipped" || !("dispatchedAtMs" in phase)) return [ended];
  const seconds = countSeconds(phase.dispatchedAtMs, phase.endedAtMs);
  const labels = { outcome: phase.status, lane };
  return [ended, { name: "coordination_step_duration_seconds", labels, seconds }];
}

/** Returns the seconds between two times, at least 0: clocks may go back. */
function countSeconds(fromMs: EpochMs, untilMs: EpochMs): number {
  return Math.max(0, untilMs - fromMs) / MS_PER_SECOND;
}
