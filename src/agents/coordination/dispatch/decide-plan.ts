/**
 * Owns: which commands about the steps of a plan are accepted. D2 to D6 as in `decide.ts`; D6 a step begins only when enough
 * of its dependencies have completed.
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
import { addMs, DELIVERY_STEP_ID, idempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import { isEnded, openStepsOf, type OpenCoordination, type Step } from "../ledger/state.ts";
import { asking, nextEscalationId, type Question } from "./ask-people.ts";
import { cancelHeld, isHeld } from "./decide-held.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { late } from "./late-outcome.ts";
import {
  isPlanned,
  reachedLimit,
  stopOf,
  stopsRunning,
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
    return refuse("NOT_A_FORK", "only a fork has results of another plan");
  const total = state.created.plan?.steps ?? 0;
  if (state.plan.admitted + fresh.length > total)
    return refuse("TOO_MANY_STEPS", `the plan has ${total} steps, not ${state.plan.admitted + fresh.length}`);
  const admitted = fresh.map((payload): FactDraft => ({ type: "step.admitted", payload }));
  return accept([...admitted, ...doubts(state, fresh, now)]);
}

/** G2: people are asked in the append that admits what its planner doubts, before any of it begins. */
function doubts(state: PlannedCoordination, steps: AdmitPlanSteps["steps"], now: EpochMs): FactDraft[] {
  return steps
    .flatMap(({ stepId, decision }) => (decision ? [{ stepId, decision }] : []))
    .map(({ stepId, decision }, after) =>
      asking(state, { stepId, askedBy: state.created.ownerSession, ...doubt(decision) }, { now, after }),
    );
}

/** The question whether a decision of low confidence is to be carried out. */
export function doubt({
  confidence,
  floor,
}: HeldDecision): Pick<Question, "cause" | "kind" | "answers" | "confidence"> {
  const measured = confidence === undefined ? {} : { measured: confidence };
  return {
    cause: "confidence",
    kind: "approval",
    answers: ["approve", "deny"],
    confidence: { ...measured, floor, of: "decision" },
  };
}

/** The next attempt of a step of the plan; or of a spawn, where its result goes back to its agent. */
export function dispatchStep(state: OpenCoordination, command: DispatchStep, now: EpochMs): Decision {
  const { stepId, attempt } = command;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const { phase } = step;
  if (attempt <= phase.attempt) return { kind: "replay", stepId };
  if (attempt !== phase.attempt + 1)
    return refuse("STALE_ATTEMPT", `attempt ${attempt} of step ${stepId} does not follow ${phase.attempt}`);
  const held = mayNotBegin(state, step, now);
  if (held) return held;
  const deadlineAtMs = attemptDeadline(state, step, now);
  const payload: FactPayloads["step.dispatched"] = {
    stepId,
    attempt,
    lane: step.spec.lane,
    idempotencyKey: idempotencyKey(state.coordinationId, stepId, attempt),
    deadlineAtMs,
    targetSession: command.targetSession,
    ...(command.message && { message: command.message }),
  };
  return accept([{ type: "step.dispatched", payload }], stepId);
}

function mayNotBegin(state: OpenCoordination, step: Step, now: EpochMs): Decision | undefined {
  if (!isPlanned(state)) return notRevised(state, step);
  const unfit = step.spec.planned ? unready(state, step, now) : notRevised(state, step);
  return unfit ?? heldBack(state, step, now);
}

function notRevised(
  { cancelledBy }: OpenCoordination,
  { spec, phase, cancelledBy: own }: Step,
): Decision | undefined {
  if (phase.status !== "backoff" || !phase.revision)
    return refuse(
      "NOT_READY",
      `step ${spec.stepId} is ${phase.status}, and a spawn is made by its model only`,
    );
  return (cancelledBy ?? own) ? refuse("PLAN_STOPPED", "nothing more begins: cancelled") : undefined;
}

function unready({ plan }: PlannedCoordination, step: Step, now: EpochMs): Decision | undefined {
  const { spec, phase } = step;
  if (isEnded(phase)) return refuse("STEP_ENDED", `step ${spec.stepId} is ${phase.status}`);
  if (plan.ready[spec.lane].has(spec.stepId) || isDue(step, now)) return undefined;
  return refuse("NOT_READY", `step ${spec.stepId} is ${phase.status} and may not begin yet`);
}

/** A delivery tells of the stop, so nothing holds it back. */
function heldBack(state: PlannedCoordination, step: Step, now: EpochMs): Decision | undefined {
  if (isDelivery(step)) return undefined;
  const stop = step.cancelledBy ? "cancelled" : stopOf(state, now);
  if (stop) return refuse("PLAN_STOPPED", `nothing more begins: ${stop}`);
  if (state.plan.decisionQuestion)
    return refuse("NOT_READY", "people were asked whether the plan is to begin, and have not answered");
  const limit = state.plan.budgetQuestion ? "open question" : reachedLimit(state, now);
  return limit ? refuse("BUDGET_SPENT", `the plan's budget is spent: ${limit}`) : undefined;
}

function attemptDeadline({ created }: OpenCoordination, step: Step, now: EpochMs): EpochMs {
  const { spec, granted } = step;
  const own = addMs(now, spec.timeoutMs);
  if (isDelivery(step)) return own;
  // What people grant beyond the budget has its time anew: it would be over before it began.
  const begunAtMs = granted === undefined ? (step.begunAtMs ?? now) : now;
  const wallMs = spec.planned?.budget?.wallMs;
  const limits = [created.plan?.deadlineAtMs, wallMs === undefined ? undefined : addMs(begunAtMs, wallMs)];
  return limits.reduce<EpochMs>(
    (least, limit) => (limit !== undefined && limit < least ? limit : least),
    own,
  );
}

export function reportStep(state: OpenCoordination, { type: _, ...payload }: ReportStep): Decision {
  const { stepId, attempt } = payload;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const isCurrent = attempt === step.phase.attempt;
  if (isCurrent && (step.phase.status === "running" || step.phase.status === "dispatched")) {
    if (isSame(step, payload)) return { kind: "replay", stepId };
    if ((step.reports ?? 0) < BOUNDS.reportsPerAttemptMax)
      return accept([{ type: "step.reported", payload }], stepId);
    return refuse(
      "TOO_MANY_REPORTS",
      "there are enough reports of this attempt; the newest one counts, so end your turn",
    );
  }
  return late(step, { attempt, outcome: "reported" });
}

function isSame({ report }: Step, given: Omit<ReportStep, "type">): boolean {
  return (
    report?.attempt === given.attempt &&
    report.outcome === given.outcome &&
    report.output.sha256 === given.output.sha256 &&
    report.confidence === given.confidence
  );
}

export function stopChild(state: PlannedCoordination, { childSessionKey, outcome }: StopChild): Decision {
  const stray = state.plan.strays.get(childSessionKey);
  if (!stray) return { kind: "replay" };
  const { stepId, attempt } = stray;
  return accept(
    [{ type: "step.child_stopped", payload: { stepId, attempt, childSessionKey, outcome } }],
    stepId,
  );
}

export function skipSteps(state: PlannedCoordination, { stepIds }: SkipSteps, now: EpochMs): Decision {
  const facts = [...new Set(stepIds)].flatMap((stepId) => skipping(state, stepId, now));
  return facts.length > 0 ? accept(facts) : { kind: "replay" };
}

function skipping(state: PlannedCoordination, stepId: StepId, now: EpochMs): FactDraft[] {
  const step = state.steps.get(stepId);
  if (!step || isDelivery(step)) return [];
  const stop = step.cancelledBy ? "cancelled" : stopOf(state, now);
  if (stop) return endingAtStop(state, step, stop);
  return state.plan.doomed.has(stepId) ? [...questionsOf(state, stepId), skipped(stepId, "dependency")] : [];
}

/** What a child of the plan spawned ends only with a stop that ends its parents, too. */
function endingAtStop(state: PlannedCoordination, step: Step, stop: StopReason): FactDraft[] {
  const { spec, phase } = step;
  if (!spec.planned && !stopsRunning(stop) && phase.status !== "backoff") return [];
  switch (phase.status) {
    case "waiting":
    case "backoff":
      return [...questionsOf(state, spec.stepId), skipped(spec.stepId, stop)];
    case "blocked":
      return [closing(phase.escalationId, unanswered(state))];
    case "held":
      return stopsRunning(stop) && isHeld(step) ? cancelHeld(state, step) : [];
    default:
      return [];
  }
}

/** Whether to begin it is not asked any more. */
function questionsOf(state: OpenCoordination, stepId: StepId): FactDraft[] {
  if (!state.steps.get(stepId)?.spec.decision) return [];
  const open = state.openQuestions
    .keySeq()
    .find((escalationId) => state.escalations.get(escalationId)?.stepId === stepId);
  return open === undefined ? [] : [closing(open, { resolution: "cancelled" })];
}

function skipped(stepId: StepId, because: FactPayloads["step.skipped"]["because"]): FactDraft {
  return { type: "step.skipped", payload: { stepId, because } };
}

/** A step that waits for people is cancelled by whoever cancels the plan; at other stops it fails. */
function unanswered({
  cancelledBy,
}: PlannedCoordination): Omit<FactPayloads["escalation.closed"], "escalationId"> {
  return { resolution: "cancelled", ...(cancelledBy && { by: cancelledBy }) };
}

function closing(
  escalationId: string,
  rest: Omit<FactPayloads["escalation.closed"], "escalationId">,
): FactDraft {
  return { type: "escalation.closed", payload: { escalationId, ...rest } };
}

export function retryStep(state: PlannedCoordination, { stepId, by }: RetryStep, now: EpochMs): Decision {
  if (stepId && !state.steps.has(stepId)) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const stop = stopOf(state, now);
  if (stop) return refuse("PLAN_STOPPED", `nothing more begins: ${stop}`);
  const candidates = stepId ? [stepId] : blockedSteps(state);
  const facts = candidates.flatMap((candidate) => granting(state.steps.get(candidate), by, now));
  const { budgetQuestion } = state.plan;
  if (!stepId && budgetQuestion) facts.push(closing(budgetQuestion, { resolution: "continued", by }));
  if (facts.length > 0) return accept(facts, stepId);
  return nothingGranted(state, { candidates, stepId, now });
}

/** So many at once, so that the append stays short; asked again, the next ones follow. */
function blockedSteps({ plan, steps }: PlannedCoordination): StepId[] {
  const waits = (stepId: StepId): boolean => {
    const status = steps.get(stepId)?.phase.status;
    return status === "blocked" || status === "backoff";
  };
  return plan.timed.toSeq().filter(waits).take(BOUNDS.stepsPerAppendMax).toArray();
}

function nothingGranted(
  { steps }: PlannedCoordination,
  given: {
    readonly candidates: readonly StepId[];
    readonly stepId: StepId | undefined;
    readonly now: EpochMs;
  },
): Decision {
  const { candidates, stepId, now } = given;
  if (candidates.some((candidate) => isDue(steps.get(candidate), now)))
    return { kind: "replay", ...(stepId && { stepId }) };
  const which = stepId
    ? `step ${stepId} is ${steps.get(stepId)?.phase.status ?? "unknown"}`
    : "no step waits";
  return refuse(
    "NOTHING_TO_RETRY",
    `${which}; only a step that waits for people or for its next attempt can be tried again`,
  );
}

/** D2: its next attempt may begin already. */
function isDue(step: Step | undefined, now: EpochMs): boolean {
  return step?.phase.status === "backoff" && now >= step.phase.retryAtMs;
}

function granting(step: Step | undefined, by: RetryStep["by"], now: EpochMs): FactDraft[] {
  if (!step?.spec.planned || isDue(step, now)) return [];
  const { stepId } = step.spec;
  const granted: FactDraft = { type: "step.retry_granted", payload: { stepId, by } };
  if (step.phase.status === "backoff") return [granted];
  if (step.phase.status !== "blocked" || step.phase.attempt > BOUNDS.retryBudgetMax) return [];
  return [closing(step.phase.escalationId, { resolution: "retried", by }), granted];
}

export function cancelCoordination(state: OpenCoordination, { by, stepId }: CancelCoordination): Decision {
  if (stepId === undefined) {
    if (state.cancelledBy) return { kind: "replay" };
    // How the plan ended is being told: it cannot end otherwise any more.
    if (state.plan && state.steps.has(DELIVERY_STEP_ID))
      return refuse("COORDINATION_ENDED", "all steps of the plan have ended, and its owner is being told");
    return accept([
      { type: "coordination.cancel_requested", payload: { by } },
      ...(isPlanned(state) ? [] : spawnsEnding(state, by)),
    ]);
  }
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (step.cancelledBy) return { kind: "replay", stepId };
  if (isEnded(step.phase)) return refuse("STEP_ENDED", `step ${stepId} is ${step.phase.status}`);
  const requested: FactDraft = { type: "coordination.cancel_requested", payload: { by, stepId } };
  return accept([requested, ...endingAtOnce(state, step, by)], stepId);
}

/** Spawns whose results are held or go back to their agents; the stop of a plan ends its steps by itself. */
function spawnsEnding(state: OpenCoordination, by: CancelCoordination["by"]): FactDraft[] {
  return openStepsOf(state).flatMap((step) => endingAtOnce(state, step, by));
}

/** What does not run needs no runner to end. */
function endingAtOnce(state: OpenCoordination, step: Step, by: CancelCoordination["by"]): FactDraft[] {
  if (isHeld(step)) return cancelHeld(state, step);
  const { spec, phase } = step;
  if (phase.status === "waiting" || phase.status === "backoff")
    return [...questionsOf(state, spec.stepId), skipped(spec.stepId, "cancelled")];
  return phase.status === "blocked" ? [closing(phase.escalationId, { resolution: "cancelled", by })] : [];
}

/** The circuit breaker: nothing begins until people allow it; where nobody is to be asked, the plan stops. */
export function tripBreaker(state: PlannedCoordination, now: EpochMs): Decision {
  const { budgetQuestion, decisionQuestion } = state.plan;
  if (budgetQuestion || decisionQuestion || stopOf(state, now)) return { kind: "replay" };
  if (!reachedLimit(state, now)) return refuse("NOT_READY", "the budget is not spent");
  if (state.created.failurePolicy.escalationPolicy === "hitl")
    return accept([
      asking(state, { cause: "budget", kind: "approval", answers: ["approve", "deny"] }, { now }),
    ]);
  const escalationId = nextEscalationId(state);
  const asked: FactDraft = {
    type: "coordination.escalated",
    payload: { escalationId, cause: "budget", kind: "approval", deadlineAtMs: now },
  };
  return accept([asked, closing(escalationId, { resolution: "cancelled" })]);
}
