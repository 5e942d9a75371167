/**
 * Owns: deciding which commands about the steps of a plan are accepted. D2 to D5 as in `decide.ts`. D6 a step begins only when
 * enough of its dependencies have completed. The plan's next effects are in `effects/next-plan-effects.ts`.
 */
import type {
  AdmitPlanSteps,
  CancelCoordination,
  DispatchStep,
  ReportStep,
  RetryStep,
  SkipSteps,
  StopChild,
} from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { HeldDecision } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import {
  addMs,
  DELIVERY_STEP_ID,
  createIdempotencyKey,
  type EpochMs,
  type StepId,
} from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import { isEnded, listOpenSteps, type OpenCoordination, type Step } from "../ledger/state.ts";
import { draftQuestion, createEscalationId, type EscalationSubject } from "./ask-people.ts";
import { draftHeldStepCancellation, isHeldStep } from "./decide-held.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { refuseAndRecordLate } from "./late-outcome.ts";
import {
  isBeyondStop,
  isPlanned,
  findReachedPlanLimit,
  isBudgetRestLent,
  findStopReason,
  mustStopRunningAttempts,
  type PlannedCoordination,
  type StopReason,
} from "./plan-rules.ts";

export function admitPlanSteps(
  state: PlannedCoordination,
  { steps }: AdmitPlanSteps,
  now: EpochMs,
): Decision {
  const fresh = steps.filter(({ stepId }) => !state.steps.has(stepId));
  if (fresh.length === 0) return { kind: "replay" };
  if (!state.created.forkedFrom && fresh.some(({ carried }) => carried))
    return refuse("NOT_A_FORK", "only a fork can carry results of another plan");
  const total = state.created.plan?.steps ?? 0;
  if (state.plan.admitted + fresh.length > total)
    return refuse("TOO_MANY_STEPS", `the plan has ${total} steps, not ${state.plan.admitted + fresh.length}`);
  const admitted = fresh.map((payload): FactDraft => ({ type: "step.admitted", payload }));
  return accept([...admitted, ...draftDoubtQuestions(state, fresh, now)]);
}

/** Drafts the questions about steps that their planner doubts. They are in the append that admits the steps (G2). */
function draftDoubtQuestions(
  state: PlannedCoordination,
  steps: AdmitPlanSteps["steps"],
  now: EpochMs,
): FactDraft[] {
  return steps
    .flatMap(({ stepId, decision }) => (decision ? [{ stepId, decision }] : []))
    .map(({ stepId, decision }, after) =>
      draftQuestion(
        state,
        { stepId, askedBy: state.created.ownerSession, ...createDoubtQuestion(decision) },
        { now, questionsBefore: after },
      ),
    );
}

/** Returns the question whether a decision with low confidence is to be carried out. */
export function createDoubtQuestion({
  confidence,
  floor,
}: HeldDecision): Pick<EscalationSubject, "cause" | "kind" | "answers" | "confidence"> {
  const measured = confidence === undefined ? {} : { measured: confidence };
  return {
    cause: "confidence",
    kind: "approval",
    answers: ["approve", "deny"],
    confidence: { ...measured, floor, of: "decision" },
  };
}

/** Begins the next attempt of a planned step, or of a spawn whose result goes back to its agent for revision. */
export function dispatchStep(state: OpenCoordination, command: DispatchStep, now: EpochMs): Decision {
  const { stepId, attempt } = command;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const { phase } = step;
  if (attempt <= phase.attempt) return { kind: "replay", stepId };
  if (attempt !== phase.attempt + 1)
    return refuse(
      "STALE_ATTEMPT",
      `attempt ${attempt} of step ${stepId} cannot begin: the next attempt is ${phase.attempt + 1}`,
    );
  const refusal = refuseAttemptStart(state, step, now);
  if (refusal) return refusal;
  const deadlineAtMs = computeAttemptDeadline(state, step, now);
  const payload: FactPayloads["step.dispatched"] = {
    stepId,
    attempt,
    lane: step.spec.lane,
    idempotencyKey: createIdempotencyKey(state.coordinationId, stepId, attempt),
    deadlineAtMs,
    targetSession: command.targetSession,
    ...(command.message && { message: command.message }),
    ...(command.gateway !== undefined && { gateway: command.gateway }),
  };
  return accept([{ type: "step.dispatched", payload }], stepId);
}

function refuseAttemptStart(state: OpenCoordination, step: Step, now: EpochMs): Decision | undefined {
  if (!isPlanned(state)) return refuseUnlessRevised(state, step);
  const refusal = step.spec.planned ? refuseUnreadyStep(state, step, now) : refuseUnlessRevised(state, step);
  return refusal ?? refuseStopped(state, step, now);
}

function refuseUnlessRevised(
  { cancelledBy }: OpenCoordination,
  { spec, phase, cancelledBy: cancelledStepBy }: Step,
): Decision | undefined {
  if (phase.status !== "backoff" || !phase.revision)
    return refuse(
      "NOT_READY",
      `step ${spec.stepId} is ${phase.status}, and only the model that asked for a spawn can start it`,
    );
  return (cancelledBy ?? cancelledStepBy)
    ? refuse("PLAN_STOPPED", "no further attempt may begin: cancelled")
    : undefined;
}

function refuseUnreadyStep({ plan }: PlannedCoordination, step: Step, now: EpochMs): Decision | undefined {
  const { spec, phase } = step;
  if (isEnded(phase)) return refuse("STEP_ENDED", `step ${spec.stepId} is ${phase.status}`);
  if (plan.ready[spec.lane].has(spec.stepId) || isAttemptDue(step, now)) return undefined;
  return refuse("NOT_READY", `step ${spec.stepId} is ${phase.status} and may not begin yet`);
}

/** Refuses where the plan is stopped, waits for people or has spent its budget. A delivery reports the stop, so it begins. */
function refuseStopped(state: PlannedCoordination, step: Step, now: EpochMs): Decision | undefined {
  if (isBeyondStop(state, step)) return undefined;
  const stop = step.cancelledBy ? "cancelled" : findStopReason(state, now);
  if (stop) return refuse("PLAN_STOPPED", `no further attempt may begin: ${stop}`);
  if (state.plan.decisionQuestion)
    return refuse("NOT_READY", "people were asked whether the plan is to begin, and have not answered");
  const limit = state.plan.budgetQuestion ? "open question" : findReachedPlanLimit(state, now);
  if (limit) return refuse("BUDGET_SPENT", `the plan's budget is spent: ${limit}`);
  return isBudgetRestLent(state)
    ? refuse("NOT_READY", "plans of other steps may use the rest of the plan's budget")
    : undefined;
}

function computeAttemptDeadline({ created }: OpenCoordination, step: Step, now: EpochMs): EpochMs {
  const { spec, granted } = step;
  const ownDeadline = addMs(now, spec.timeoutMs);
  if (isDelivery(step)) return ownDeadline;
  // An attempt that people grant gets the wall time again: otherwise it would be over before it began.
  const begunAtMs = granted === undefined ? (step.begunAtMs ?? now) : now;
  const wallMs = spec.planned?.budget?.wallMs;
  const limits = [created.plan?.deadlineAtMs, wallMs === undefined ? undefined : addMs(begunAtMs, wallMs)];
  return limits.reduce<EpochMs>(
    (least, limit) => (limit !== undefined && limit < least ? limit : least),
    ownDeadline,
  );
}

export function reportStep(state: OpenCoordination, { type: _, ...payload }: ReportStep): Decision {
  const { stepId, attempt } = payload;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const isCurrent = attempt === step.phase.attempt;
  if (isCurrent && (step.phase.status === "running" || step.phase.status === "dispatched")) {
    if (isSameReport(step, payload)) return { kind: "replay", stepId };
    if ((step.reports ?? 0) < BOUNDS.reportsPerAttemptMax)
      return accept([{ type: "step.reported", payload }], stepId);
    return refuse(
      "TOO_MANY_REPORTS",
      "there are enough reports of this attempt; the newest one counts, so end your turn",
    );
  }
  return refuseAndRecordLate(step, { attempt, outcome: "reported" });
}

function isSameReport({ report }: Step, reported: Omit<ReportStep, "type">): boolean {
  return (
    report?.attempt === reported.attempt &&
    report.outcome === reported.outcome &&
    report.output.sha256 === reported.output.sha256 &&
    report.confidence === reported.confidence
  );
}

export function stopChild(
  state: PlannedCoordination,
  { childSessionKey, outcome, usage }: StopChild,
): Decision {
  const stray = state.plan.strays.get(childSessionKey);
  if (!stray) return { kind: "replay" };
  const { stepId, attempt } = stray;
  const payload = { stepId, attempt, childSessionKey, outcome, ...(usage && { usage }) };
  return accept([{ type: "step.child_stopped", payload }], stepId);
}

export function skipSteps(state: PlannedCoordination, { stepIds }: SkipSteps, now: EpochMs): Decision {
  const facts = [...new Set(stepIds)].flatMap((stepId) => draftStepSkip(state, stepId, now));
  return facts.length > 0 ? accept(facts) : { kind: "replay" };
}

function draftStepSkip(state: PlannedCoordination, stepId: StepId, now: EpochMs): FactDraft[] {
  const step = state.steps.get(stepId);
  if (!step || isBeyondStop(state, step)) return [];
  const stop = step.cancelledBy ? "cancelled" : findStopReason(state, now);
  if (stop) return draftStepEndAtStop(state, step, stop);
  return state.plan.doomed.has(stepId)
    ? [...draftDoubtQuestionClosing(state, stepId), draftSkippedStep(stepId, "dependency")]
    : [];
}

/** Drafts the end of a step at a stop. A spawn of a child of the plan ends only with a stop that also ends its parents. */
function draftStepEndAtStop(state: PlannedCoordination, step: Step, stop: StopReason): FactDraft[] {
  const { spec, phase } = step;
  if (!spec.planned && !mustStopRunningAttempts(stop) && phase.status !== "backoff") return [];
  switch (phase.status) {
    case "waiting":
    case "backoff":
      return [...draftDoubtQuestionClosing(state, spec.stepId), draftSkippedStep(spec.stepId, stop)];
    case "blocked":
      return [draftEscalationClosing(phase.escalationId, createCancelledClosing(state))];
    case "held":
      return mustStopRunningAttempts(stop) && isHeldStep(step) ? draftHeldStepCancellation(state, step) : [];
    default:
      return [];
  }
}

/** Drafts the end of the open question whether the step may begin. */
function draftDoubtQuestionClosing(state: OpenCoordination, stepId: StepId): FactDraft[] {
  if (!state.steps.get(stepId)?.spec.decision) return [];
  const open = state.openQuestions
    .keySeq()
    .find((escalationId) => state.escalations.get(escalationId)?.stepId === stepId);
  return open === undefined ? [] : [draftEscalationClosing(open, { resolution: "cancelled" })];
}

function draftSkippedStep(stepId: StepId, because: FactPayloads["step.skipped"]["because"]): FactDraft {
  return { type: "step.skipped", payload: { stepId, because } };
}

type ClosingFields = Omit<FactPayloads["escalation.closed"], "escalationId">;

/** Returns how the question of a blocked step is closed at a stop: `by` says who cancelled, and without it the step fails. */
function createCancelledClosing({ cancelledBy }: PlannedCoordination): ClosingFields {
  return { resolution: "cancelled", ...(cancelledBy && { by: cancelledBy }) };
}

function draftEscalationClosing(escalationId: string, rest: ClosingFields): FactDraft {
  return { type: "escalation.closed", payload: { escalationId, ...rest } };
}

/**
 * Grants a step, or as many waiting ones as one append holds, an attempt; for all, it also closes the budget's
 * question.
 */
export function retryStep(state: PlannedCoordination, { stepId, by }: RetryStep, now: EpochMs): Decision {
  if (stepId && !state.steps.has(stepId)) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const stop = findStopReason(state, now);
  if (stop) return refuse("PLAN_STOPPED", `no further attempt may begin: ${stop}`);
  const candidates = stepId ? [stepId] : state.plan.timed.toArray();
  const facts = draftRetryGrants(state, { candidates, by, now });
  const { budgetQuestion } = state.plan;
  if (!stepId && budgetQuestion)
    facts.push(draftEscalationClosing(budgetQuestion, { resolution: "continued", by }));
  if (facts.length > 0) return accept(facts, stepId);
  return refuseRetry(state, { candidates, stepId, now });
}

/**
 * Drafts the grants of the next steps that can be retried, as many as one append may hold. The same command again takes the following
 * ones, also where none of those before has begun.
 */
function draftRetryGrants(
  { steps }: PlannedCoordination,
  {
    candidates,
    by,
    now,
  }: Pick<RetryStep, "by"> & { readonly candidates: readonly StepId[]; readonly now: EpochMs },
): FactDraft[] {
  return candidates
    .map((candidate) => draftRetryGrant(steps.get(candidate), by, now))
    .filter((facts) => facts.length > 0)
    .slice(0, BOUNDS.stepsPerAppendMax)
    .flat();
}

function refuseRetry(
  { steps }: PlannedCoordination,
  request: {
    readonly candidates: readonly StepId[];
    readonly stepId: StepId | undefined;
    readonly now: EpochMs;
  },
): Decision {
  const { candidates, stepId, now } = request;
  if (candidates.some((candidate) => isAttemptDue(steps.get(candidate), now)))
    return { kind: "replay", ...(stepId && { stepId }) };
  const which = stepId
    ? `step ${stepId} is ${steps.get(stepId)?.phase.status ?? "unknown"}`
    : "no step waits";
  return refuse(
    "NOTHING_TO_RETRY",
    `${which}; only a step that waits for people or for its next attempt can be tried again`,
  );
}

/** True when the next attempt may already begin, so that granting it again changes nothing (D2). */
function isAttemptDue(step: Step | undefined, now: EpochMs): boolean {
  return step?.phase.status === "backoff" && now >= step.phase.retryAtMs;
}

function draftRetryGrant(step: Step | undefined, by: RetryStep["by"], now: EpochMs): FactDraft[] {
  if (!step?.spec.planned || isAttemptDue(step, now)) return [];
  const { stepId } = step.spec;
  const granted: FactDraft = { type: "step.retry_granted", payload: { stepId, by } };
  if (step.phase.status === "backoff") return [granted];
  if (step.phase.status !== "blocked" || step.phase.attempt > BOUNDS.retryBudgetMax) return [];
  return [draftEscalationClosing(step.phase.escalationId, { resolution: "retried", by }), granted];
}

export function cancelCoordination(state: OpenCoordination, { by, stepId }: CancelCoordination): Decision {
  if (stepId === undefined) return cancelWholeCoordination(state, by);
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (step.cancelledBy) return { kind: "replay", stepId };
  if (isEnded(step.phase)) return refuse("STEP_ENDED", `step ${stepId} is ${step.phase.status}`);
  const requested: FactDraft = { type: "coordination.cancel_requested", payload: { by, stepId } };
  return accept([requested, ...draftIdleStepEnd(state, step, by)], stepId);
}

/**
 * Decides on cancelling a whole coordination: refused while its owner is being told the result, or was. By `parent` it
 * is accepted also after another cancelled it, and while it is being told.
 */
function cancelWholeCoordination(state: OpenCoordination, by: CancelCoordination["by"]): Decision {
  const isLast = by === "parent" && state.cancelledBy !== "parent";
  if (state.cancelledBy && !isLast) return { kind: "replay" };
  const delivery = state.plan && state.steps.get(DELIVERY_STEP_ID);
  // The owner is being told how the plan ended, so the end cannot change any more.
  if (delivery && (!isLast || isEnded(delivery.phase)))
    return refuse(
      "COORDINATION_ENDED",
      "all steps of the plan have ended, and its owner is being told the result",
    );
  return accept([
    { type: "coordination.cancel_requested", payload: { by } },
    ...(isPlanned(state) ? [] : draftIdleSpawnEnds(state, by)),
  ]);
}

/** Drafts the end of spawns that run nowhere now. A plan needs none of this: its stop ends its steps. */
function draftIdleSpawnEnds(state: OpenCoordination, by: CancelCoordination["by"]): FactDraft[] {
  return listOpenSteps(state).flatMap((step) => draftIdleStepEnd(state, step, by));
}

/** Drafts the end of a cancelled step that does not run, so that no runner has to stop it. */
function draftIdleStepEnd(state: OpenCoordination, step: Step, by: CancelCoordination["by"]): FactDraft[] {
  if (isHeldStep(step)) return draftHeldStepCancellation(state, step);
  const { spec, phase } = step;
  if (phase.status === "waiting" || phase.status === "backoff")
    return [...draftDoubtQuestionClosing(state, spec.stepId), draftSkippedStep(spec.stepId, "cancelled")];
  return phase.status === "blocked"
    ? [draftEscalationClosing(phase.escalationId, { resolution: "cancelled", by })]
    : [];
}

/** Trips the circuit breaker: no attempt begins until people allow it. Where nobody is to be asked, the plan stops. */
export function tripBreaker(state: PlannedCoordination, now: EpochMs): Decision {
  const { budgetQuestion, decisionQuestion } = state.plan;
  if (budgetQuestion || decisionQuestion || findStopReason(state, now)) return { kind: "replay" };
  if (!findReachedPlanLimit(state, now))
    return refuse("NOT_READY", "the budget of the plan is not spent yet");
  if (state.created.failurePolicy.escalationPolicy === "hitl")
    return accept([
      draftQuestion(state, { cause: "budget", kind: "approval", answers: ["approve", "deny"] }, { now }),
    ]);
  const escalationId = createEscalationId(state);
  const question: FactDraft = {
    type: "coordination.escalated",
    payload: { escalationId, cause: "budget", kind: "approval", deadlineAtMs: now },
  };
  return accept([question, draftEscalationClosing(escalationId, { resolution: "cancelled" })]);
}
