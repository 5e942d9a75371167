/** Owns: planning the next effects of a plan. */
import { laneSchema, type Lane } from "../../contracts/envelope.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import {
  addMs,
  createIdempotencyKey,
  type EpochMs,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import { pickBestRequests, type ReadyRequest } from "../../lanes/pick-best.ts";
import { isBeingMerged } from "../decide-held.ts";
import type { OpenCoordination, Step, StepPhase } from "../../ledger/state.ts";
import {
  hasIdleSteps,
  hasQuestionAboutPlan,
  isBeyondStop,
  isPlanHeldBack,
  mustStopStep,
  isWorkedOff,
  findReachedPlanLimit,
  findStopReason,
  mustStopRunningAttempts,
  hasWorkToBegin,
  type PlannedCoordination,
  type StopReason,
} from "../plan-rules.ts";
import type { EndCoordination, Capacity } from "./capacity.ts";
import { planWorktreeEffects, type StepEffect, type WorktreeEffect } from "../worktree-effects.ts";

export type PlanEffect =
  | RunStep
  | StopStep
  | StopStray
  | AdmitSteps
  | SkipDoomed
  | TripBreaker
  | JudgePlan
  | EndCoordination
  | WorktreeEffect;

/** Brings an attempt to its end: dispatches, starts and follows it, or takes it up where a crash left it. */
export interface RunStep extends StepEffect<"runStep"> {
  readonly lane: Lane;
  readonly readyAtMs: EpochMs;
}

/** Cancels an attempt that is under way. */
export type StopStep = StepEffect<"stopStep">;

/** Stops the child that may be left of an attempt that was given up. */
export interface StopStray extends StepEffect<"stopStray"> {
  readonly childSessionKey: SessionKey;
}

/** Admits the next steps of the plan, from an index of its graph on. */
export interface AdmitSteps {
  readonly kind: "admitSteps";
  readonly effectId: string;
  readonly from: number;
}

/** Ends steps that can no longer run. */
export interface SkipDoomed {
  readonly kind: "skipSteps";
  readonly effectId: string;
  readonly stepIds: readonly StepId[];
}

/** Judges how far the plan reached its success criteria. */
export interface JudgePlan {
  readonly kind: "judgePlan";
  readonly effectId: string;
}

/** Trips the circuit breaker: the budget is spent. */
export interface TripBreaker {
  readonly kind: "tripBreaker";
  readonly effectId: string;
}

/**
 * Returns the effects of a plan that are due now, in order, for others to carry out: stops, merges, skips, admissions,
 * and steps that begin as far as `capacity` allows.
 */
export function planEffects(state: PlannedCoordination, now: EpochMs, capacity: Capacity): PlanEffect[] {
  const stop = findStopReason(state, now);
  const effects: PlanEffect[] = [
    ...planStrayStops(state),
    ...planStepStops(state, now),
    ...planWorktreeEffects(state),
  ];
  const skippableSteps = listStepsToEnd(state, stop);
  const [firstSkippable] = skippableSteps;
  if (firstSkippable !== undefined)
    effects.push({
      kind: "skipSteps",
      effectId: `${state.coordinationId}:skip:${firstSkippable}`,
      stepIds: skippableSteps,
    });
  const total = state.created.plan?.steps ?? 0;
  if (state.plan.admitted < total)
    effects.push({
      kind: "admitSteps",
      effectId: `${state.coordinationId}:admit:${state.plan.admitted}`,
      from: state.plan.admitted,
    });
  const budgetStops = stop === undefined ? planBreakerTrips(state, now) : [];
  effects.push(
    ...budgetStops,
    ...planAttempts(state, {
      now,
      capacity,
      isHeld: stop !== undefined || isBeginningHeldBack(state, budgetStops),
    }),
  );
  return isWorkedOff(state) ? [...effects, planEnd(state)] : effects;
}

/** Returns the effect that ends the plan, or before that the one that judges its success criteria. */
function planEnd({
  created,
  successCriteria,
  coordinationId,
}: PlannedCoordination): JudgePlan | EndCoordination {
  const isJudged = !created.plan?.successCriteria || successCriteria !== undefined;
  return isJudged
    ? { kind: "endCoordination", effectId: `${coordinationId}:end` }
    : { kind: "judgePlan", effectId: `${coordinationId}:judge` };
}

/**
 * Returns an effect for every attempt under way that is not to be stopped, by which it is taken up again at the start
 * of the runtime.
 */
export function planAttemptRecovery(state: PlannedCoordination, now: EpochMs): PlanEffect[] {
  return state.plan.running
    .toArray()
    .flatMap((stepId) => state.steps.get(stepId) ?? [])
    .filter((step) => !mustStopStep(state, step, now))
    .map((step) => createRunStepEffect(state, step, step.phase.attempt, step.admittedAtMs));
}

/**
 * Lists the times at which effects of a plan become due although nothing happens. Times that no longer matter are left
 * out: they would hide later ones.
 */
export function listPlanDeadlines(state: PlannedCoordination): EpochMs[] {
  const { plan, steps, created } = state;
  const isWaiting = isPlanHeldBack(state);
  const times = plan.timed
    .toArray()
    .flatMap((stepId) => findRetryTime(steps.get(stepId)?.phase, isWaiting) ?? []);
  const deadlineAtMs = created.plan?.deadlineAtMs;
  if (deadlineAtMs !== undefined && hasIdleSteps(state)) times.push(deadlineAtMs);
  if (hasQuestionAboutPlan(state)) return times;
  const wallMs = created.plan?.budget?.wallMs;
  return wallMs !== undefined && !plan.stop && hasWorkToBegin(state)
    ? [...times, addMs(plan.allowedFromMs, wallMs)]
    : times;
}

/** Returns when a retry is due. While the whole plan waits, nothing is tried again. */
function findRetryTime(phase: StepPhase | undefined, isWaiting: boolean): EpochMs | undefined {
  return phase?.status === "backoff" && !isWaiting ? phase.retryAtMs : undefined;
}

/** Plans to stop the children that may be left of attempts which were given up. */
function planStrayStops({ plan, coordinationId }: PlannedCoordination): StopStray[] {
  return plan.strays.toArray().map(([childSessionKey, { stepId, attempt }]) => ({
    kind: "stopStray",
    effectId: `${createIdempotencyKey(coordinationId, stepId, attempt)}:stray`,
    stepId,
    attempt,
    childSessionKey,
  }));
}

function planStepStops(state: PlannedCoordination, now: EpochMs): StopStep[] {
  return state.plan.running
    .toArray()
    .flatMap((stepId) => {
      const step = state.steps.get(stepId);
      return step && mustStopStep(state, step, now) ? [step] : [];
    })
    .map((step) => ({ kind: "stopStep", ...createStepEffectFields(state, step, "run:stop") }));
}

/**
 * Returns the steps that end now without a run, as many as one append may hold. A step may be cancelled although its
 * plan goes on.
 */
function listStepsToEnd(state: PlannedCoordination, stop: StopReason | undefined): StepId[] {
  const { plan, openSteps, steps, held: heldSteps } = state;
  const isEnding = (stepId: StepId): boolean => {
    const step = steps.get(stepId);
    const because = step?.cancelledBy ? "cancelled" : stop;
    return step !== undefined && because !== undefined && isEndedByStop(state, step, because);
  };
  const stoppedSteps = stop
    ? openSteps.toSeq().filter(isEnding)
    : plan.doomed.union(plan.timed.filter(isEnding), heldSteps.filter(isEnding));
  return stoppedSteps.take(BOUNDS.stepsPerAppendMax).toArray();
}

/** True when the stop ends the step: it is idle, or its result waits for a ruling that nobody needs any more. */
function isEndedByStop(state: PlannedCoordination, step: Step, stop: StopReason): boolean {
  const { status } = step.phase;
  if (isBeyondStop(state, step)) return false;
  if (status === "held") return mustStopRunningAttempts(stop) && !isBeingMerged(state, step);
  // A spawn in backoff has no child at work: its result goes back to its agent.
  return status === "waiting" || status === "backoff" || status === "blocked";
}

/** Plans to trip the circuit breaker where the plan's budget is spent; nothing while people are asked. */
function planBreakerTrips(state: PlannedCoordination, now: EpochMs): TripBreaker[] {
  if (hasQuestionAboutPlan(state) || !findReachedPlanLimit(state, now)) return [];
  return [{ kind: "tripBreaker", effectId: `${state.coordinationId}:trip:${state.escalations.size}` }];
}

/** True when only the delivery may begin: the plan waits, or its circuit breaker is about to trip. */
function isBeginningHeldBack(state: PlannedCoordination, trips: readonly TripBreaker[]): boolean {
  return isPlanHeldBack(state) || trips.length > 0;
}

interface PlanningPass {
  readonly now: EpochMs;
  readonly capacity: Capacity;
  /** True when only the delivery may begin. */
  readonly isHeld: boolean;
}

/** Returns the attempts to begin: as many as the lanes take, and where they cannot take all, those that they would run first. */
function planAttempts(
  state: PlannedCoordination,
  { now, capacity, isHeld: isStepHeld }: PlanningPass,
): RunStep[] {
  const { plan, steps } = state;
  if (Object.values(capacity.room).every((free) => free === 0)) return [];
  const candidates: RunCandidate[] = [];
  const consider = (step: Step | undefined, readyAtMs: EpochMs): void => {
    if (!step?.spec.planned || (!isBeyondStop(state, step) && (isStepHeld || step.cancelledBy))) return;
    const effect = createRunStepEffect(state, step, step.phase.attempt + 1, readyAtMs);
    if (!capacity.isUnderway(effect.effectId)) candidates.push(createCandidate(step, effect));
  };
  for (const stepId of plan.timed) {
    const step = steps.get(stepId);
    if (step?.phase.status === "backoff" && now >= step.phase.retryAtMs) consider(step, step.phase.retryAtMs);
  }
  // A full lane is skipped early: this runs at every change of the plan, mostly while the busiest lane is full.
  for (const lane of laneSchema.options)
    if (capacity.room[lane] > 0)
      for (const [stepId, readyAtMs] of plan.ready[lane]) consider(steps.get(stepId), readyAtMs);
  return laneSchema.options.flatMap((lane) => pickAttemptsForLane(lane, candidates, capacity));
}

/** A step that is ready to run, ranked as a request to a lane. */
interface RunCandidate extends ReadyRequest {
  readonly effect: RunStep;
}

function createCandidate({ spec }: Step, effect: RunStep): RunCandidate {
  return {
    effect,
    priority: spec.priority,
    readyAtMs: effect.readyAtMs,
    criticalPathMs: spec.planned?.criticalPathMs ?? 0,
    session: spec.sourceSession,
    agentId: spec.agentId,
  };
}

function pickAttemptsForLane(lane: Lane, candidates: readonly RunCandidate[], capacity: Capacity): RunStep[] {
  const waiting = candidates.filter(({ effect }) => effect.lane === lane);
  const { room, agingMs, allowance } = capacity;
  const count = room[lane];
  const takesAll = waiting.length <= count && !allowance;
  const chosen = takesAll
    ? waiting
    : pickBestRequests(waiting, { count, agingMs, ...(allowance && { allowance }) });
  return chosen.map(({ effect }) => effect);
}

/** Returns the effect that runs an attempt of a step: the one under way, or the one after it. */
export function createRunStepEffect(
  { coordinationId }: OpenCoordination,
  { spec: { stepId, lane } }: Step,
  attempt: number,
  readyAtMs: EpochMs,
): RunStep {
  const effectId = `${createIdempotencyKey(coordinationId, stepId, attempt)}:run`;
  return { kind: "runStep", effectId, stepId, attempt, lane, readyAtMs };
}

/**
 * Returns the fields that an effect on the newest attempt of a step has whatever its kind; `act` tells the ids of its
 * effects apart.
 */
export function createStepEffectFields(
  { coordinationId }: OpenCoordination,
  { spec: { stepId }, phase: { attempt } }: Step,
  act: string,
): Omit<StepEffect<string>, "kind"> {
  return { effectId: `${createIdempotencyKey(coordinationId, stepId, attempt)}:${act}`, stepId, attempt };
}
