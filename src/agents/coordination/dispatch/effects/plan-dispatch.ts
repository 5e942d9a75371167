/**
 * Owns: planning the next effects of a coordination, and the time to look again. Timers are derived from state here and are
 * never the only copy of a fact. Effect ids are derived from state: planning twice plans the same ids.
 */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import { isForNobody } from "../../ledger/given-up.ts";
import { openStepsOf, type Coordination, type OpenCoordination, type Step } from "../../ledger/state.ts";
import { hasStoppedBeginning, isHeldBack, isPlanned } from "../plan-rules.ts";
import { listGateDeadlines, planGateEffects, type GateEffect } from "./gate-effects.ts";
import {
  createRunStep,
  createStepEffect,
  listPlanDeadlines,
  planEffects,
  recoverPlan,
  type PlanEffect,
  type RunStep,
} from "./plan-effects.ts";
import type { StepEffect } from "../worktree-effects.ts";
import type { Capacity, EndCoordination } from "./capacity.ts";
import { isContinuedByUs } from "./followed-steps.ts";

export type Effect = AskHost | EndCoordination | StopObserved | CloseReview | GateEffect | PlanEffect;

/** Asks the host what became of a step, and rules on the answer. */
export type AskHost = StepEffect<"askHost">;

/** Stops a child that a model spawned. */
export type StopObserved = StepEffect<"stopObserved">;

/** Closes the review of a conflict that nobody answered in time, or whose gateway is gone. */
export interface CloseReview {
  readonly kind: "closeReview";
  readonly effectId: string;
  readonly conflictId: string;
}

const NO_LIMIT: Capacity = {
  room: { control: Infinity, data: Infinity, escalation: Infinity },
  agingMs: 60_000,
  isUnderway: () => false,
};

/** Returns the effects that are due now. */
export function planDispatch(state: Coordination, now: EpochMs, capacity: Capacity = NO_LIMIT): Effect[] {
  if (state.kind !== "open") return [];
  const effects: Effect[] = [
    ...planObservedStops(state, now),
    ...planOverdueAsks(state, now, capacity),
    ...planOverdueReviews(state, now),
    ...planGateEffects(state, now, capacity),
    ...planContinuations(state, now, capacity),
  ];
  if (isPlanned(state)) return [...effects, ...planEffects(state, now, capacity)];
  const isOver = isIdle(state) && now >= computeSettlingTime(state);
  return isOver ? [...effects, endCoordination(state)] : effects;
}

/** Returns the effects at the start of the runtime: every open step is reconciled with the host, due or not. */
export function planRecovery(state: Coordination, now: EpochMs, capacity: Capacity = NO_LIMIT): Effect[] {
  if (state.kind !== "open") return [];
  const effects = [
    ...planObservedStops(state, now),
    ...observedStepsOf(state)
      .filter((step) => isAtWork(step) && !isContinuedByUs(step))
      .map((step) => askHost(state, step)),
    ...planOverdueReviews(state, now),
    ...planGateEffects(state, now, capacity),
    ...planContinuations(state, now, capacity),
  ];
  if (!isPlanned(state)) return effects;
  return [...effects, ...recoverPlan(state, now), ...planEffects(state, now, capacity)];
}

/**
 * Returns the next time at which `planDispatch` has something to do; `undefined` when it never has. With `after`, times up to
 * it are left out: they may wait for something else and must not hide later ones.
 */
export function findNextDeadline(state: Coordination, after?: EpochMs): EpochMs | undefined {
  if (state.kind !== "open") return undefined;
  const due = observedStepsOf(state).flatMap((step) => {
    const dueAtMs = isDueByItself(state, step) ? computeDueTime(state, step) : undefined;
    return [dueAtMs, findStopTime(state, step)].filter((atMs) => atMs !== undefined);
  });
  const reviews = state.reviews.valueSeq().map(computeClosingTime).toArray();
  const gates = listGateDeadlines(state);
  if (isPlanned(state))
    return findEarliest([...due, ...reviews, ...gates, ...listPlanDeadlines(state)], after);
  const isCoordinationIdle = isIdle(state);
  const idle = isCoordinationIdle ? [computeSettlingTime(state)] : due;
  return findEarliest([...idle, ...reviews, ...gates], isCoordinationIdle ? undefined : after);
}

/** True when nothing is open that the end has to wait for. A cancelled coordination does not wait for answers. */
export function isIdle({ openSteps, tellings, openQuestions, cancelledBy }: OpenCoordination): boolean {
  const isAsked = openQuestions.size > 0 && cancelledBy === undefined;
  return openSteps.size === 0 && tellings.size === 0 && !isAsked;
}

function isAtWork({ phase }: Step): boolean {
  return phase.status !== "held" && phase.status !== "backoff";
}

/** Plans a question about every step that is overdue. One that was asked after that is asked again only after a while. */
function planOverdueAsks(state: OpenCoordination, now: EpochMs, { isAskedSince }: Capacity): AskHost[] {
  return observedStepsOf(state)
    .filter((step) => isAtWork(step) && !isContinuedByUs(step))
    .flatMap((step) => {
      const dueAtMs = computeDueTime(state, step);
      const ask = askHost(state, step);
      return now < dueAtMs || isAskedSince?.(ask.effectId, dueAtMs) === true ? [] : [ask];
    });
}

/** Plans the attempts of spawns whose results went back to their agents: from then on we start their turns. */
function planContinuations(state: OpenCoordination, now: EpochMs, capacity: Capacity): RunStep[] {
  const isStopped = isPlanned(state) && hasStoppedBeginning(state, now);
  return observedStepsOf(state)
    .filter((step) => step.phase.status !== "backoff" || !isStopped)
    .filter((step) => isContinuedByUs(step) && (state.cancelledBy ?? step.cancelledBy) === undefined)
    .filter((step) => !mustStopObserved(state, step, now))
    .map((step) => {
      const { phase, admittedAtMs } = step;
      return phase.status === "backoff"
        ? createRunStep(state, step, phase.attempt + 1, phase.retryAtMs)
        : createRunStep(state, step, phase.attempt, admittedAtMs);
    })
    .filter(({ effectId }) => !capacity.isUnderway(effectId));
}

/** True when time alone moves the step on. A held result has the deadlines of its gate; nothing is continued while the plan waits. */
function isDueByItself(state: OpenCoordination, { phase }: Step): boolean {
  if (phase.status === "held") return false;
  return phase.status !== "backoff" || !isPlanned(state) || !isHeldBack(state);
}

function findEarliest(times: readonly EpochMs[], after = -1): EpochMs | undefined {
  return times.reduce<EpochMs | undefined>(
    (earliest, at) => (at > after && (earliest === undefined || at < earliest) ? at : earliest),
    undefined,
  );
}

/** Returns the open steps that a model spawned. */
function observedStepsOf(state: OpenCoordination): Step[] {
  if (!state.plan) return openStepsOf(state);
  return state.plan.timed
    .toArray()
    .flatMap((stepId) => state.steps.get(stepId) ?? [])
    .filter(({ spec }) => !spec.planned);
}

function planObservedStops(state: OpenCoordination, now: EpochMs): StopObserved[] {
  return observedStepsOf(state)
    .filter((step) => mustStopObserved(state, step, now))
    .map((step) => ({ kind: "stopObserved", ...createStepEffect(state, step, "stop") }));
}

/**
 * True when a child that a model spawned is to be stopped: somebody asked for it, its plan fails fast, nobody waits for it, or the
 * deadline of its plan has passed: it has no deadline of its own that is cut to that.
 */
export function mustStopObserved(state: OpenCoordination, step: Step, now: EpochMs): boolean {
  const deadlineAtMs = state.created.plan?.deadlineAtMs;
  const isPlanOver = deadlineAtMs !== undefined && now >= deadlineAtMs;
  return step.phase.status === "running" && (isPlanOver || mustStopAtOnce(state, step));
}

/** Returns from when on a child that a model spawned is to be stopped; `undefined` where nothing says so. */
function findStopTime(state: OpenCoordination, step: Step): EpochMs | undefined {
  if (step.phase.status !== "running") return undefined;
  return mustStopAtOnce(state, step) ? state.changedAtMs : state.created.plan?.deadlineAtMs;
}

function mustStopAtOnce(state: OpenCoordination, step: Step): boolean {
  const isCancelled = (state.cancelledBy ?? step.cancelledBy) !== undefined;
  return isCancelled || state.plan?.stop === "fail_fast" || isForNobody(state, step.spec.sourceSession);
}

/** Grace for the host, in milliseconds: it reports the answer first, also that none came. */
const REVIEW_GRACE_MS = 15_000;

function computeClosingTime(reviewByMs: EpochMs): EpochMs {
  return addMs(reviewByMs, REVIEW_GRACE_MS);
}

function planOverdueReviews({ reviews, coordinationId }: OpenCoordination, now: EpochMs): CloseReview[] {
  return reviews
    .filter((reviewByMs) => now >= computeClosingTime(reviewByMs))
    .keySeq()
    .toArray()
    .map((conflictId) => ({
      kind: "closeReview",
      effectId: `${coordinationId}:review:${conflictId}`,
      conflictId,
    }));
}

function computeSettlingTime(state: OpenCoordination): EpochMs {
  return addMs(state.changedAtMs, state.created.settleMs);
}

/** Returns the time after which a step is overdue. The host counts a spawn's limit from a later start and reports it later still. */
export function computeOverdueTime(
  state: OpenCoordination,
  { deadlineAtMs }: { readonly deadlineAtMs: EpochMs },
): EpochMs {
  return addMs(deadlineAtMs, state.created.acknowledgeMs);
}

function computeDueTime(state: OpenCoordination, { phase, admittedAtMs }: Step): EpochMs {
  if (phase.status === "running") return computeOverdueTime(state, phase);
  if (phase.status === "backoff") return phase.retryAtMs;
  if (phase.status === "dispatched") return addMs(phase.dispatchedAtMs, state.created.acknowledgeMs);
  return admittedAtMs;
}

function askHost(state: OpenCoordination, step: Step): AskHost {
  return { kind: "askHost", ...createStepEffect(state, step, "ask") };
}

function endCoordination(state: OpenCoordination): EndCoordination {
  return { kind: "endCoordination", effectId: `${state.coordinationId}:end` };
}
