/**
 * Owns: which commands about the steps of a plan are accepted. D2 to D6 as in `decide.ts`; D6 a step begins only when enough
 * of its dependencies have completed.
 */
import type {
  AdmitPlanSteps,
  CancelCoordination,
  DispatchStep,
  ExpireEscalation,
  ReportStep,
  RetryStep,
  SkipSteps,
  StopChild,
} from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, DELIVERY_STEP_ID, idempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import { isEnded, openStepsOf, type OpenCoordination, type Step } from "../ledger/state.ts";
import { endOfClaims } from "./decide-claims.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { reachedLimit, stopOf, type PlannedCoordination } from "./plan-rules.ts";

export function admitPlanSteps(state: PlannedCoordination, { steps }: AdmitPlanSteps): Decision {
  const fresh = steps.filter(({ stepId }) => !state.steps.has(stepId));
  if (fresh.length === 0) return { kind: "replay" };
  const total = state.created.plan?.steps ?? 0;
  if (state.plan.admitted + fresh.length > total)
    return refuse("TOO_MANY_STEPS", `the plan has ${total} steps, not ${state.plan.admitted + fresh.length}`);
  return accept(fresh.map((payload) => ({ type: "step.admitted", payload })));
}

export function dispatchStep(state: PlannedCoordination, command: DispatchStep, now: EpochMs): Decision {
  const { stepId, attempt } = command;
  const step = state.steps.get(stepId);
  if (!step?.spec.planned) return refuse("UNKNOWN_STEP", `there is no step ${stepId} in the plan`);
  const { phase } = step;
  if (attempt <= phase.attempt) return { kind: "replay", stepId };
  if (attempt !== phase.attempt + 1)
    return refuse("STALE_ATTEMPT", `attempt ${attempt} of step ${stepId} does not follow ${phase.attempt}`);
  const held = unready(state, step, now) ?? heldBack(state, step, now);
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
  const limit = state.plan.budgetQuestion ? "open question" : reachedLimit(state, now);
  return limit ? refuse("BUDGET_SPENT", `the plan's budget is spent: ${limit}`) : undefined;
}

function attemptDeadline({ created }: PlannedCoordination, step: Step, now: EpochMs): EpochMs {
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

/** D3: an outcome that came too late changes nothing, and is recorded once. */
export function late(
  step: Step,
  { attempt, outcome }: Pick<FactPayloads["step.outcome_refused"], "attempt" | "outcome">,
): Decision {
  const { stepId } = step.spec;
  const isStale = attempt !== step.phase.attempt;
  const refusal = isStale
    ? refuse("STALE_ATTEMPT", `attempt ${attempt} is not attempt ${step.phase.attempt} of step ${stepId}`)
    : refuse("STEP_ENDED", `step ${stepId} is ${step.phase.status}`);
  const known = step.late ?? [];
  const isKnown = known.includes(`${attempt}:${outcome}`) || known.length >= BOUNDS.lateOutcomesPerStepMax;
  if (isKnown || attempt < 1 || attempt > step.phase.attempt) return refusal;
  const because = isStale ? "stale_attempt" : "step_ended";
  return {
    ...refusal,
    facts: [{ type: "step.outcome_refused", payload: { stepId, attempt, outcome, because } }],
  };
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
  if (!step?.spec.planned || isDelivery(step)) return [];
  const stop = step.cancelledBy ? "cancelled" : stopOf(state, now);
  if (!stop) return state.plan.doomed.has(stepId) ? [skipped(stepId, "dependency")] : [];
  switch (step.phase.status) {
    case "waiting":
    case "backoff":
      return [skipped(stepId, stop)];
    case "blocked":
      return [closing(step.phase.escalationId, unanswered(state))];
    default:
      return [];
  }
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
    return accept([{ type: "coordination.cancel_requested", payload: { by } }]);
  }
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (step.cancelledBy) return { kind: "replay", stepId };
  if (isEnded(step.phase)) return refuse("STEP_ENDED", `step ${stepId} is ${step.phase.status}`);
  const requested: FactDraft = { type: "coordination.cancel_requested", payload: { by, stepId } };
  return accept([requested, ...endingAtOnce(step, by)], stepId);
}

/** What does not run needs no runner to end. */
function endingAtOnce({ spec, phase }: Step, by: CancelCoordination["by"]): FactDraft[] {
  if (!spec.planned) return [];
  if (phase.status === "waiting" || phase.status === "backoff")
    return [{ type: "step.skipped", payload: { stepId: spec.stepId, because: "cancelled" } }];
  return phase.status === "blocked" ? [closing(phase.escalationId, { resolution: "cancelled", by })] : [];
}

export function expireEscalation(
  state: PlannedCoordination,
  { escalationId }: ExpireEscalation,
  now: EpochMs,
): Decision {
  const asked = state.escalations.find((escalation) => escalation.escalationId === escalationId);
  if (!asked || asked.closed) return { kind: "replay" };
  if (now < asked.deadlineAtMs) return refuse("NOT_READY", `the question ${escalationId} is still open`);
  return accept([closing(escalationId, { resolution: "expired" })]);
}

/** The circuit breaker: nothing begins until people allow it; where nobody is to be asked, the plan stops. */
export function tripBreaker(state: PlannedCoordination, now: EpochMs): Decision {
  if (state.plan.budgetQuestion || stopOf(state, now)) return { kind: "replay" };
  if (!reachedLimit(state, now)) return refuse("NOT_READY", "the budget is not spent");
  const escalationId = nextEscalationId(state);
  const asks = state.created.failurePolicy.escalationPolicy === "hitl";
  const deadlineAtMs = asks ? answerBy(state, now) : now;
  const asked: FactDraft = {
    type: "coordination.escalated",
    payload: { escalationId, cause: "budget", kind: "approval", deadlineAtMs },
  };
  return accept(asks ? [asked] : [asked, closing(escalationId, { resolution: "cancelled" })]);
}

export function nextEscalationId({ escalations }: OpenCoordination): string {
  return `escalation-${escalations.length + 1}`;
}

/** A question stays open for its time, and no longer than the plan runs. */
export function answerBy({ created }: OpenCoordination, now: EpochMs): EpochMs {
  const byMs = addMs(now, created.plan?.escalateMs ?? 0);
  const deadlineAtMs = created.plan?.deadlineAtMs;
  return deadlineAtMs !== undefined && deadlineAtMs < byMs ? deadlineAtMs : byMs;
}

/** How often and how long an owner is tried to be told. */
const DELIVERY = { timeoutMs: 600_000, retryBudget: 5, backoffMs: 2_000 } as const;

/** First the owner is told, as a step like any other; then the coordination ends. */
export function settlePlan(state: PlannedCoordination): Decision {
  const { plan, created } = state;
  const [open] = openStepsOf(state);
  if (open) return refuse("STEPS_OPEN", `step ${open.spec.stepId} is ${open.phase.status}`);
  if (plan.admitted < (created.plan?.steps ?? 0)) return refuse("STEPS_OPEN", "not all steps are admitted");
  if (plan.strays.size > 0)
    return refuse("STEPS_OPEN", "the child of an earlier attempt may still be at work");
  const delivery = state.steps.get(DELIVERY_STEP_ID);
  // The session that would be told was stopped with the step that it worked on: it must not be woken.
  if (!delivery && state.cancelledBy === "parent")
    return accept([
      ...endOfClaims(state, "coordination_ended"),
      { type: "coordination.terminal", payload: { ...verdictOn(state), delivery: "not_delivered" } },
    ]);
  if (!delivery) {
    const admitted: FactDraft = { type: "step.admitted", payload: deliverySpec(state) };
    const closed = plan.budgetQuestion ? [closing(plan.budgetQuestion, { resolution: "cancelled" })] : [];
    return accept([...closed, admitted], DELIVERY_STEP_ID);
  }
  return accept([
    ...endOfClaims(state, "coordination_ended"),
    { type: "coordination.terminal", payload: terminalOf(state, delivery) },
  ]);
}

function deliverySpec({ created }: PlannedCoordination): FactPayloads["step.admitted"] {
  const { timeoutMs, retryBudget, backoffMs } = DELIVERY;
  return {
    stepId: DELIVERY_STEP_ID,
    lane: "control",
    runner: "owner",
    agentId: created.ownerAgent,
    sourceSession: created.ownerSession,
    deliveryMode: "at_least_once",
    priority: "high",
    input: created.objective,
    timeoutMs,
    retryBudget,
    collect: false,
    call: {},
    planned: { dependsOn: [], fanIn: 0, backoffMs, criticalPathMs: timeoutMs },
  };
}

type Terminal = FactPayloads["coordination.terminal"];

function terminalOf(state: PlannedCoordination, delivery: Step): Terminal {
  return { ...verdictOn(state), delivery: deliveryState(delivery) };
}

/** How the plan ended, or would end with what is known now. */
export function verdictOn(state: PlannedCoordination): Pick<Terminal, "status" | "steps"> {
  const steps = { total: 0, completed: 0, failed: 0, timedOut: 0, cancelled: 0, skipped: 0 };
  for (const step of state.steps.values()) {
    if (!step.spec.planned || isDelivery(step)) continue;
    steps.total += 1;
    const { status } = step.phase;
    if (status === "completed" || status === "failed" || status === "cancelled" || status === "skipped")
      steps[status] += 1;
    if (status === "timed_out") steps.timedOut += 1;
  }
  return { status: terminalStatus(state, steps), steps };
}

function terminalStatus(
  { cancelledBy, plan }: PlannedCoordination,
  { total, completed }: Terminal["steps"],
): Terminal["status"] {
  if (completed === total) return "success";
  if (cancelledBy) return "cancelled";
  if (plan.hasExpired) return "escalated";
  return plan.stop === "fail_fast" || completed === 0 ? "failed" : "partial";
}

/** A time-out says that the host could not tell, and so does a turn that it no longer knows; it is never sent again. */
function deliveryState({ phase }: Step): NonNullable<Terminal["delivery"]> {
  if (phase.status === "completed") return "delivered";
  const isLost = phase.status === "failed" && phase.error?.code === "child_lost";
  return phase.status === "timed_out" || isLost ? "unknown" : "not_delivered";
}
