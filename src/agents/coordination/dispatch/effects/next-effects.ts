/**
 * Owns: planning the next effects of a coordination, and the time to look again. Timers are derived from state here and are
 * never the only copy of a fact. Effect ids are derived from state: planning twice plans the same ids.
 */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import { isWorkingForNobody } from "../../ledger/given-up.ts";
import { listOpenSteps, type Coordination, type OpenCoordination, type Step } from "../../ledger/state.ts";
import { hasStoppedBeginning, isPlanHeldBack, isPlanned } from "../plan-rules.ts";
import { listGateDeadlines, planGateEffects, type GateEffect } from "./gate-effects.ts";
import {
  createRunStepEffect,
  createStepEffectFields,
  listPlanDeadlines,
  planEffects,
  planAttemptRecovery,
  type PlanEffect,
  type RunStep,
} from "./next-plan-effects.ts";
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

/**
 * Returns all effects of a coordination that are due now, in order, for others to carry out; none unless it is open.
 */
export function planDispatch(state: Coordination, now: EpochMs, capacity: Capacity = NO_LIMIT): Effect[] {
  if (state.kind !== "open") return [];
  const effects: Effect[] = [
    ...planSpawnStops(state, now),
    ...planOverdueHostQuestions(state, now, capacity),
    ...planReviewClosings(state, now),
    ...planGateEffects(state, now, capacity),
    ...planContinuedSpawns(state, now, capacity),
  ];
  if (isPlanned(state)) return [...effects, ...planEffects(state, now, capacity)];
  const isOver = hasNothingOpen(state) && now >= computeSettlingTime(state);
  return isOver ? [...effects, createEndCoordination(state)] : effects;
}

/**
 * Returns the effects at the start of the runtime, for others to carry out: every attempt under way is asked about or
 * taken up again, due or not. None unless the coordination is open.
 */
export function planRecovery(state: Coordination, now: EpochMs, capacity: Capacity = NO_LIMIT): Effect[] {
  if (state.kind !== "open") return [];
  const effects = [
    ...planSpawnStops(state, now),
    ...listOpenSpawns(state)
      .filter((step) => isAtWork(step) && !isContinuedByUs(step))
      .map((step) => createAskHost(state, step)),
    ...planReviewClosings(state, now),
    ...planGateEffects(state, now, capacity),
    ...planContinuedSpawns(state, now, capacity),
  ];
  if (!isPlanned(state)) return effects;
  return [...effects, ...planAttemptRecovery(state, now), ...planEffects(state, now, capacity)];
}

/**
 * Returns the next time at which `planDispatch` has something to do; `undefined` when it never has. With `after`, times up to
 * it are left out: they may wait for something else and must not hide later ones.
 */
export function findNextDeadline(state: Coordination, after?: EpochMs): EpochMs | undefined {
  if (state.kind !== "open") return undefined;
  const spawnDueTimes = listOpenSpawns(state).flatMap((step) => {
    const dueAtMs = isDueByItself(state, step) ? computeSpawnDueTime(state, step) : undefined;
    return [dueAtMs, findSpawnStopTime(state, step)].filter((atMs) => atMs !== undefined);
  });
  const reviews = state.reviews.valueSeq().map(computeReviewClosingTime).toArray();
  const gates = listGateDeadlines(state);
  if (isPlanned(state))
    return findEarliestTime([...spawnDueTimes, ...reviews, ...gates, ...listPlanDeadlines(state)], after);
  const isCoordinationIdle = hasNothingOpen(state);
  const idle = isCoordinationIdle ? [computeSettlingTime(state)] : spawnDueTimes;
  return findEarliestTime([...idle, ...reviews, ...gates], isCoordinationIdle ? undefined : after);
}

/**
 * True when no step, telling or question is open that the coordination's end has to wait for. A cancelled coordination
 * does not wait for answers.
 */
export function hasNothingOpen({
  openSteps,
  tellings,
  openQuestions,
  cancelledBy,
}: OpenCoordination): boolean {
  const isAsked = openQuestions.size > 0 && cancelledBy === undefined;
  return openSteps.size === 0 && tellings.size === 0 && !isAsked;
}

/** True unless the result of the step is held or the step waits for its next attempt. */
function isAtWork({ phase }: Step): boolean {
  return phase.status !== "held" && phase.status !== "backoff";
}

/**
 * Plans to ask the host about every spawn that is overdue. One that was asked about after that is asked about again
 * only after a while.
 */
function planOverdueHostQuestions(
  state: OpenCoordination,
  now: EpochMs,
  { isAskedSince }: Capacity,
): AskHost[] {
  return listOpenSpawns(state)
    .filter((step) => isAtWork(step) && !isContinuedByUs(step))
    .flatMap((step) => {
      const dueAtMs = computeSpawnDueTime(state, step);
      const ask = createAskHost(state, step);
      return now < dueAtMs || isAskedSince?.(ask.effectId, dueAtMs) === true ? [] : [ask];
    });
}

/** Plans the attempts of spawns whose results went back to their agents: from then on we start their turns. */
function planContinuedSpawns(state: OpenCoordination, now: EpochMs, capacity: Capacity): RunStep[] {
  const isStopped = isPlanned(state) && hasStoppedBeginning(state, now);
  return listOpenSpawns(state)
    .filter((step) => step.phase.status !== "backoff" || !isStopped)
    .filter((step) => isContinuedByUs(step) && (state.cancelledBy ?? step.cancelledBy) === undefined)
    .filter((step) => !mustStopSpawn(state, step, now))
    .map((step) => {
      const { phase, admittedAtMs } = step;
      return phase.status === "backoff"
        ? createRunStepEffect(state, step, phase.attempt + 1, phase.retryAtMs)
        : createRunStepEffect(state, step, phase.attempt, admittedAtMs);
    })
    .filter(({ effectId }) => !capacity.isUnderway(effectId));
}

/** True when time alone moves the step on. A held result has the deadlines of its gate; nothing is continued while the plan waits. */
function isDueByItself(state: OpenCoordination, { phase }: Step): boolean {
  if (phase.status === "held") return false;
  return phase.status !== "backoff" || !isPlanned(state) || !isPlanHeldBack(state);
}

/** Returns the earliest time that is later than `after`; `undefined` where there is none. */
function findEarliestTime(times: readonly EpochMs[], after = -1): EpochMs | undefined {
  return times.reduce<EpochMs | undefined>(
    (earliest, at) => (at > after && (earliest === undefined || at < earliest) ? at : earliest),
    undefined,
  );
}

/** Returns the open steps that a model spawned. */
function listOpenSpawns(state: OpenCoordination): Step[] {
  if (!state.plan) return listOpenSteps(state);
  return state.plan.timed
    .toArray()
    .flatMap((stepId) => state.steps.get(stepId) ?? [])
    .filter(({ spec }) => !spec.planned);
}

function planSpawnStops(state: OpenCoordination, now: EpochMs): StopObserved[] {
  return listOpenSpawns(state)
    .filter((step) => mustStopSpawn(state, step, now))
    .map((step) => ({ kind: "stopObserved", ...createStepEffectFields(state, step, "stop") }));
}

/**
 * True when a running child that a model spawned is to be stopped: somebody asked for it, its plan fails fast, nobody
 * waits for it, or its plan is past its deadline. It has no deadline of its own that is cut to that.
 */
export function mustStopSpawn(state: OpenCoordination, step: Step, now: EpochMs): boolean {
  const deadlineAtMs = state.created.plan?.deadlineAtMs;
  const isPlanOver = deadlineAtMs !== undefined && now >= deadlineAtMs;
  return step.phase.status === "running" && (isPlanOver || mustStopSpawnAtOnce(state, step));
}

/** Returns from when on a child that a model spawned is to be stopped; `undefined` where nothing says so. */
function findSpawnStopTime(state: OpenCoordination, step: Step): EpochMs | undefined {
  if (step.phase.status !== "running") return undefined;
  return mustStopSpawnAtOnce(state, step) ? state.changedAtMs : state.created.plan?.deadlineAtMs;
}

/**
 * True when a spawn is to be stopped without regard to the time: it was cancelled, its plan fails fast, or nobody
 * waits for it.
 */
function mustStopSpawnAtOnce(state: OpenCoordination, step: Step): boolean {
  const isCancelled = (state.cancelledBy ?? step.cancelledBy) !== undefined;
  return (
    isCancelled || state.plan?.stop === "fail_fast" || isWorkingForNobody(state, step.spec.sourceSession)
  );
}

/** Grace for the host, in milliseconds: it reports the answer first, also that none came. */
const REVIEW_GRACE_MS = 15_000;

function computeReviewClosingTime(reviewByMs: EpochMs): EpochMs {
  return addMs(reviewByMs, REVIEW_GRACE_MS);
}

/** Plans to close the reviews of conflicts that the host has not answered by the end of their grace. */
function planReviewClosings({ reviews, coordinationId }: OpenCoordination, now: EpochMs): CloseReview[] {
  return reviews
    .filter((reviewByMs) => now >= computeReviewClosingTime(reviewByMs))
    .keySeq()
    .toArray()
    .map((conflictId) => ({
      kind: "closeReview",
      effectId: `${coordinationId}:review:${conflictId}`,
      conflictId,
    }));
}

/** Returns the time from which on a coordination that is idle ends. */
function computeSettlingTime(state: OpenCoordination): EpochMs {
  return addMs(state.changedAtMs, state.created.settleMs);
}

/**
 * Returns the time from which on a step is overdue: its deadline and the time that the host has to acknowledge. The
 * host counts a spawn's limit from a later start and reports it later still.
 */
export function computeOverdueTime(
  state: OpenCoordination,
  { deadlineAtMs }: { readonly deadlineAtMs: EpochMs },
): EpochMs {
  return addMs(deadlineAtMs, state.created.acknowledgeMs);
}

/** Returns the time at which the runtime has to ask the host about a spawn, or to begin its next attempt. */
function computeSpawnDueTime(state: OpenCoordination, { phase, admittedAtMs }: Step): EpochMs {
  if (phase.status === "running") return computeOverdueTime(state, phase);
  if (phase.status === "backoff") return phase.retryAtMs;
  if (phase.status === "dispatched") return addMs(phase.dispatchedAtMs, state.created.acknowledgeMs);
  return admittedAtMs;
}

function createAskHost(state: OpenCoordination, step: Step): AskHost {
  return { kind: "askHost", ...createStepEffectFields(state, step, "ask") };
}

function createEndCoordination(state: OpenCoordination): EndCoordination {
  return { kind: "endCoordination", effectId: `${state.coordinationId}:end` };
}
