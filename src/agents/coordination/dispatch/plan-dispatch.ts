/**
 * Owns: what the runtime should do next about a coordination, and when to look again. Timers are derived from state
 * here and are never the only copy of a fact. Effect ids are derived from state: planning twice plans the same ids.
 */
import { addMs, idempotencyKey, type EpochMs, type StepId } from "../contracts/ids.ts";
import { openStepsOf, type Coordination, type OpenCoordination, type Step } from "../ledger/state.ts";
import { beginsNothing, isPlanned } from "./plan-rules.ts";
import { gateDeadlines, gateEffects, type GateEffect } from "./gate-effects.ts";
import { nextPlanDeadline, planEffects, recoverPlan, type PlanEffect, type RunStep } from "./plan-effects.ts";
import type { Capacity, EndCoordination } from "./capacity.ts";

export type Effect = AskHost | EndCoordination | StopObserved | CloseReview | GateEffect | PlanEffect;

/** Ask the host what became of a step, and rule on the answer. */
export interface AskHost {
  readonly kind: "askHost";
  readonly effectId: string;
  readonly stepId: StepId;
  readonly attempt: number;
}

/** Stop a child that a model spawned. */
export interface StopObserved {
  readonly kind: "stopObserved";
  readonly effectId: string;
  readonly stepId: StepId;
  readonly attempt: number;
}

/** Nobody answered about a conflict in time, or the gateway that asked is gone. */
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

export function planDispatch(state: Coordination, now: EpochMs, capacity: Capacity = NO_LIMIT): Effect[] {
  if (state.kind !== "open") return [];
  const stops = observedOf(state).filter((step) => isToStop(state, step));
  const asks = observedOf(state).filter(
    (step) => isAtWork(step) && !isContinued(step) && now >= dueAt(state, step),
  );
  const effects: Effect[] = [
    ...stops.map((step) => ({ kind: "stopObserved" as const, ...about(state, step, "stop") })),
    ...asks.map((step) => askHost(state, step)),
    ...overdueReviews(state, now),
    ...gateEffects(state, now),
    ...continuations(state, now, capacity),
  ];
  if (isPlanned(state)) return [...effects, ...planEffects(state, now, capacity)];
  const isOver = hasNothingOpen(state) && now >= settlesAt(state);
  return isOver ? [...effects, endCoordination(state)] : effects;
}

/** At start every open step is reconciled with the host, due or not. */
export function planRecovery(state: Coordination, now: EpochMs, capacity: Capacity = NO_LIMIT): Effect[] {
  if (state.kind !== "open") return [];
  const asks = [
    ...observedOf(state)
      .filter((step) => isAtWork(step) && !isContinued(step))
      .map((step) => askHost(state, step)),
    ...overdueReviews(state, now),
    ...gateEffects(state, now),
    ...continuations(state, now, capacity),
  ];
  if (!isPlanned(state)) return asks;
  return [...asks, ...recoverPlan(state, now), ...planEffects(state, now, capacity)];
}

/**
 * When `planDispatch` has something to do at the latest; `undefined` when never. With `after`, what is due already is left
 * out, because it may wait for something else and must not hide what comes later.
 */
export function nextDeadline(state: Coordination, after?: EpochMs): EpochMs | undefined {
  if (state.kind !== "open") return undefined;
  const due = observedOf(state).flatMap((step) => [
    ...(isDueByItself(state, step) ? [dueAt(state, step)] : []),
    // What is to stop is to stop now.
    ...(isToStop(state, step) ? [state.changedAtMs] : []),
  ]);
  const reviews = state.reviews.valueSeq().map(closesAt).toArray();
  const gates = gateDeadlines(state);
  if (isPlanned(state)) return least([...due, ...reviews, ...gates, ...nextPlanDeadline(state)], after);
  const isIdle = hasNothingOpen(state);
  const idle = isIdle ? [settlesAt(state)] : due;
  return least([...idle, ...reviews, ...gates], isIdle ? undefined : after);
}

/** Whoever cancelled does not wait for answers. */
function hasNothingOpen({ openSteps, tellings, openQuestions, cancelledBy }: OpenCoordination): boolean {
  const isAsked = openQuestions.size > 0 && cancelledBy === undefined;
  return openSteps.size === 0 && tellings.size === 0 && !isAsked;
}

function isAtWork({ phase }: Step): boolean {
  return phase.status !== "held" && phase.status !== "backoff";
}

/** Children that a model spawned and whose results go back to them: from then on their turns are ours. */
function continuations(state: OpenCoordination, now: EpochMs, capacity: Capacity): RunStep[] {
  const isStopped = isPlanned(state) && beginsNothing(state, now);
  return observedOf(state)
    .filter((step) => step.phase.status !== "backoff" || !isStopped)
    .filter((step) => isContinued(step) && (state.cancelledBy ?? step.cancelledBy) === undefined)
    .map((step): RunStep => {
      const { phase, spec } = step;
      const attempt = phase.status === "backoff" ? phase.attempt + 1 : phase.attempt;
      const effectId = `${idempotencyKey(state.coordinationId, spec.stepId, attempt)}:run`;
      const readyAtMs = phase.status === "backoff" ? phase.retryAtMs : step.admittedAtMs;
      return { kind: "runStep", effectId, stepId: spec.stepId, attempt, lane: spec.lane, readyAtMs };
    })
    .filter(({ effectId }) => !capacity.isUnderway(effectId));
}

/** D2: the attempts after the first of a spawn are started by us, and followed by whoever started them. */
export function isContinued({ spec, phase, revisions = 0 }: Step): boolean {
  if (spec.planned || revisions === 0) return false;
  return (
    phase.status === "backoff" ||
    ((phase.status === "dispatched" || phase.status === "running") && phase.attempt > 1)
  );
}

/** A held result waits for what `gateDeadlines` names; while people are asked about the whole plan, nothing is continued. */
function isDueByItself(state: OpenCoordination, { phase }: Step): boolean {
  if (phase.status === "held") return false;
  const { budgetQuestion, decisionQuestion } = state.plan ?? {};
  return phase.status !== "backoff" || (budgetQuestion === undefined && decisionQuestion === undefined);
}

function least(times: readonly EpochMs[], after = -1): EpochMs | undefined {
  return times.reduce<EpochMs | undefined>(
    (earliest, at) => (at > after && (earliest === undefined || at < earliest) ? at : earliest),
    undefined,
  );
}

/** The open steps that a model spawned. */
function observedOf(state: OpenCoordination): Step[] {
  if (!state.plan) return openStepsOf(state);
  return state.plan.timed
    .toArray()
    .flatMap((stepId) => state.steps.get(stepId) ?? [])
    .filter(({ spec }) => !spec.planned);
}

function isToStop({ cancelledBy }: OpenCoordination, step: Step): boolean {
  return step.phase.status === "running" && (cancelledBy ?? step.cancelledBy) !== undefined;
}

/** The host tells of the answer first, also of one that did not come. */
const REVIEW_GRACE_MS = 15_000;

function closesAt(reviewByMs: EpochMs): EpochMs {
  return addMs(reviewByMs, REVIEW_GRACE_MS);
}

function overdueReviews({ reviews, coordinationId }: OpenCoordination, now: EpochMs): CloseReview[] {
  return reviews
    .filter((reviewByMs) => now >= closesAt(reviewByMs))
    .keySeq()
    .toArray()
    .map((conflictId) => ({
      kind: "closeReview",
      effectId: `${coordinationId}:review:${conflictId}`,
      conflictId,
    }));
}

function settlesAt(state: OpenCoordination): EpochMs {
  return addMs(state.changedAtMs, state.created.settleMs);
}

/** The host enforces a spawn's own limit from a later start than ours, and tells of it later still. */
export function overdueAt(
  state: OpenCoordination,
  { deadlineAtMs }: { readonly deadlineAtMs: EpochMs },
): EpochMs {
  return addMs(deadlineAtMs, state.created.acknowledgeMs);
}

function dueAt(state: OpenCoordination, { phase, admittedAtMs }: Step): EpochMs {
  if (phase.status === "running") return overdueAt(state, phase);
  if (phase.status === "backoff") return phase.retryAtMs;
  if (phase.status === "dispatched") return addMs(phase.dispatchedAtMs, state.created.acknowledgeMs);
  return admittedAtMs;
}

function about(state: OpenCoordination, { spec, phase }: Step, act: string) {
  const { attempt } = phase;
  const key = idempotencyKey(state.coordinationId, spec.stepId, attempt);
  return { effectId: `${key}:${act}`, stepId: spec.stepId, attempt };
}

function askHost(state: OpenCoordination, step: Step): AskHost {
  return { kind: "askHost", ...about(state, step, "ask") };
}

function endCoordination(state: OpenCoordination): EndCoordination {
  return { kind: "endCoordination", effectId: `${state.coordinationId}:end` };
}
