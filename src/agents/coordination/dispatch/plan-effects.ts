/** Owns: what the runtime should do next about a plan. */
import { laneSchema, type Lane } from "../contracts/envelope.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import { addMs, idempotencyKey, type EpochMs, type SessionKey, type StepId } from "../contracts/ids.ts";
import { pickBest, type ReadyRequest } from "../lanes/pick-best.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import type { Step, StepPhase } from "../ledger/state.ts";
import {
  hasIdleSteps,
  isToStop,
  isWorkedOff,
  reachedLimit,
  stopOf,
  stopsRunning,
  wantsToBegin,
  type PlannedCoordination,
  type StopReason,
} from "./plan-rules.ts";
import type { EndCoordination } from "./capacity.ts";
import type { Capacity } from "./capacity.ts";

export type PlanEffect =
  RunStep | StopStep | StopStray | AdmitSteps | SkipDoomed | TripBreaker | JudgePlan | EndCoordination;

interface OfStep {
  readonly effectId: string;
  readonly stepId: StepId;
  readonly attempt: number;
}

/** Bring an attempt to its end: dispatch it, start it, follow it; or take it up where a crash left it. */
export interface RunStep extends OfStep {
  readonly kind: "runStep";
  readonly lane: Lane;
  readonly readyAtMs: EpochMs;
}

/** Cancel an attempt under way. */
export interface StopStep extends OfStep {
  readonly kind: "stopStep";
}

/** Stop what may be left of an attempt that was given up. */
export interface StopStray extends OfStep {
  readonly kind: "stopStray";
  readonly childSessionKey: SessionKey;
}

/** Admit the next steps of the plan. */
export interface AdmitSteps {
  readonly kind: "admitSteps";
  readonly effectId: string;
  readonly from: number;
}

export interface SkipDoomed {
  readonly kind: "skipSteps";
  readonly effectId: string;
  readonly stepIds: readonly StepId[];
}

/** Find out how far the plan reached what it is for. */
export interface JudgePlan {
  readonly kind: "judgePlan";
  readonly effectId: string;
}

export interface TripBreaker {
  readonly kind: "tripBreaker";
  readonly effectId: string;
}

export function planEffects(state: PlannedCoordination, now: EpochMs, capacity: Capacity): PlanEffect[] {
  const stop = stopOf(state, now);
  const effects: PlanEffect[] = [...strays(state), ...stops(state, now)];
  const lost = skippable(state, stop);
  if (lost.length > 0)
    effects.push({
      kind: "skipSteps",
      effectId: `${state.coordinationId}:skip:${lost[0] ?? ""}`,
      stepIds: lost,
    });
  const total = state.created.plan?.steps ?? 0;
  if (state.plan.admitted < total)
    effects.push({
      kind: "admitSteps",
      effectId: `${state.coordinationId}:admit:${state.plan.admitted}`,
      from: state.plan.admitted,
    });
  const held = stop === undefined ? budgetEffects(state, now) : [];
  effects.push(
    ...held,
    ...begins(state, { now, capacity, isHeld: stop !== undefined || isHeld(state, held) }),
  );
  return isWorkedOff(state) ? [...effects, atTheEnd(state)] : effects;
}

function atTheEnd({
  created,
  successCriteria,
  coordinationId,
}: PlannedCoordination): JudgePlan | EndCoordination {
  const isJudged = !created.plan?.successCriteria || successCriteria !== undefined;
  return isJudged
    ? { kind: "endCoordination", effectId: `${coordinationId}:end` }
    : { kind: "judgePlan", effectId: `${coordinationId}:judge` };
}

/** People were asked about the whole plan. */
function isAsked({ plan }: PlannedCoordination): boolean {
  return plan.budgetQuestion !== undefined || plan.decisionQuestion !== undefined;
}

/** At start every attempt under way is taken up again. */
export function recoverPlan(state: PlannedCoordination, now: EpochMs): PlanEffect[] {
  return state.plan.running
    .toArray()
    .flatMap((stepId) => state.steps.get(stepId) ?? [])
    .filter((step) => !isToStop(state, step, now))
    .map((step) => ({
      kind: "runStep",
      ...ofStep(state, step),
      lane: step.spec.lane,
      readyAtMs: step.admittedAtMs,
    }));
}

/**
 * When a plan needs to be looked at though nothing happened. What has passed and means nothing any more is left out: it
 * would hide what is due later.
 */
export function nextPlanDeadline(state: PlannedCoordination): EpochMs[] {
  const { plan, steps, created } = state;
  const asked = isAsked(state);
  const times = plan.timed.toArray().flatMap((stepId) => dueAt(steps.get(stepId)?.phase, asked) ?? []);
  const deadlineAtMs = created.plan?.deadlineAtMs;
  if (deadlineAtMs !== undefined && hasIdleSteps(state)) times.push(deadlineAtMs);
  if (asked) return times;
  const wallMs = created.plan?.budget?.wallMs;
  return wallMs !== undefined && !plan.stop && wantsToBegin(state)
    ? [...times, addMs(plan.allowedFromMs, wallMs)]
    : times;
}

/** While people are asked about the whole plan, nothing is tried again. */
function dueAt(phase: StepPhase | undefined, isAsked: boolean): EpochMs | undefined {
  return phase?.status === "backoff" && !isAsked ? phase.retryAtMs : undefined;
}

function strays({ plan, coordinationId }: PlannedCoordination): StopStray[] {
  return plan.strays.toArray().map(([childSessionKey, { stepId, attempt }]) => ({
    kind: "stopStray",
    effectId: `${idempotencyKey(coordinationId, stepId, attempt)}:stray`,
    stepId,
    attempt,
    childSessionKey,
  }));
}

function stops(state: PlannedCoordination, now: EpochMs): StopStep[] {
  const isStopping = stopOf(state, now) !== undefined;
  return state.plan.running
    .toArray()
    .flatMap((stepId) => {
      const step = state.steps.get(stepId);
      return step && (isStopping || step.cancelledBy) && isToStop(state, step, now) ? [step] : [];
    })
    .map((step) => ({
      kind: "stopStep",
      ...ofStep(state, step),
      effectId: `${ofStep(state, step).effectId}:stop`,
    }));
}

/** So many at once, so that an append stays short. A step may be cancelled though its plan goes on. */
function skippable(state: PlannedCoordination, stop: StopReason | undefined): StepId[] {
  const { plan, openSteps, steps, held } = state;
  const ends = (stepId: StepId): boolean => {
    const step = steps.get(stepId);
    const because = step?.cancelledBy ? "cancelled" : stop;
    return step !== undefined && because !== undefined && endsAtStop(step, because);
  };
  const lost = stop
    ? openSteps.toSeq().filter(ends)
    : plan.doomed.union(plan.timed.filter(ends), held.filter(ends));
  return lost.take(BOUNDS.stepsPerAppendMax).toArray();
}

/** What is idle, and results that wait for a ruling which nobody needs any more; also of what children of the plan spawned. */
function endsAtStop(step: Step, stop: StopReason): boolean {
  const { status } = step.phase;
  if (isDelivery(step)) return false;
  if (status === "held") return stopsRunning(stop);
  if (step.spec.planned) return status === "waiting" || status === "backoff" || status === "blocked";
  // A spawn whose result goes back to its agent runs nowhere.
  return status === "backoff";
}

function budgetEffects(state: PlannedCoordination, now: EpochMs): TripBreaker[] {
  if (isAsked(state) || !reachedLimit(state, now)) return [];
  return [{ kind: "tripBreaker", effectId: `${state.coordinationId}:trip:${state.escalations.size}` }];
}

function isHeld(state: PlannedCoordination, trips: readonly TripBreaker[]): boolean {
  return isAsked(state) || trips.length > 0;
}

interface Beginning {
  readonly now: EpochMs;
  readonly capacity: Capacity;
  /** Only the delivery may begin. */
  readonly isHeld: boolean;
}

/** The attempts to begin: as many as the lanes take, those first that the lanes would let run first. */
function begins(state: PlannedCoordination, { now, capacity, isHeld: held }: Beginning): RunStep[] {
  const { plan, steps } = state;
  if (Object.values(capacity.room).every((free) => free === 0)) return [];
  const candidates: Candidate[] = [];
  const consider = (step: Step | undefined, readyAtMs: EpochMs): void => {
    if (!step?.spec.planned || (!isDelivery(step) && (held || step.cancelledBy))) return;
    const effect = nextAttempt(state, step, readyAtMs);
    if (!capacity.isUnderway(effect.effectId)) candidates.push(candidateOf(step, effect));
  };
  for (const stepId of plan.timed) {
    const step = steps.get(stepId);
    if (step?.phase.status === "backoff" && now >= step.phase.retryAtMs) consider(step, step.phase.retryAtMs);
  }
  // Asked at every change of the plan, mostly while the lane of the many is full.
  for (const lane of laneSchema.options)
    if (capacity.room[lane] > 0)
      for (const [stepId, readyAtMs] of plan.ready[lane]) consider(steps.get(stepId), readyAtMs);
  return laneSchema.options.flatMap((lane) => chosenFor(lane, candidates, capacity));
}

interface Candidate extends ReadyRequest {
  readonly effect: RunStep;
}

function candidateOf({ spec }: Step, effect: RunStep): Candidate {
  return {
    effect,
    priority: spec.priority,
    readyAtMs: effect.readyAtMs,
    criticalPathMs: spec.planned?.criticalPathMs ?? 0,
    session: spec.sourceSession,
    agentId: spec.agentId,
  };
}

function chosenFor(lane: Lane, candidates: readonly Candidate[], capacity: Capacity): RunStep[] {
  const waiting = candidates.filter(({ effect }) => effect.lane === lane);
  const { room, agingMs, allowance } = capacity;
  const count = room[lane];
  const takesAll = waiting.length <= count && !allowance;
  const chosen = takesAll ? waiting : pickBest(waiting, { count, agingMs, ...(allowance && { allowance }) });
  return chosen.map(({ effect }) => effect);
}

function nextAttempt(state: PlannedCoordination, { spec, phase }: Step, readyAtMs: EpochMs): RunStep {
  const attempt = phase.attempt + 1;
  const effectId = `${idempotencyKey(state.coordinationId, spec.stepId, attempt)}:run`;
  return { kind: "runStep", effectId, stepId: spec.stepId, attempt, lane: spec.lane, readyAtMs };
}

function ofStep(state: PlannedCoordination, { spec, phase }: Step): OfStep {
  const { stepId } = spec;
  const { attempt } = phase;
  return { effectId: `${idempotencyKey(state.coordinationId, stepId, attempt)}:run`, stepId, attempt };
}
