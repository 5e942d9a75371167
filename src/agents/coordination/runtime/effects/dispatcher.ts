/**
 * Owns: acting on what `planDispatch` says, when it is due. Its sweep, at the start after a crash and every `sweepMs`, takes up all
 * open coordinations. Timers follow from the states; the effects under way are remembered only so that one process does not do
 * the same thing twice at once.
 */
import { addMs, type CoordinationId, type EpochMs, type IdempotencyKey } from "../../contracts/ids.ts";
import { readErrorCode } from "../../contracts/errors.ts";
import { planDispatch, type Effect } from "../../dispatch/effects/next-effects.ts";
import { NOTICE_TURN_MS, type NotifyPeople } from "../../dispatch/effects/gate-effects.ts";
import type { RunStep } from "../../dispatch/effects/next-plan-effects.ts";
import type { Coordination, OpenCoordination } from "../../ledger/state.ts";
import type { LaneRequest, LaneSlot } from "../../ports/lane-runner.ts";
import type { AppendBasis } from "../../ports/run-store.ts";
import { driveAttempt } from "../attempts/drive-attempt.ts";
import { endPlanWithSpawn } from "../attempts/nested-plans.ts";
import {
  rememberWaiting,
  beginEffect,
  createDispatcherMemory,
  endEffect,
  isStopped,
  releasePlace,
  trackWork,
  type AttemptUnderway,
  type LookUnderway,
} from "./dispatcher-memory.ts";
import { computeCapacity } from "./compute-capacity.ts";
import { createFailureLog } from "./log-failures.ts";
import { findNextLookTime } from "./look-again-at.ts";
import type { EffectDependencies } from "./performer-dependencies.ts";
import { performEffect, type PerformedEffect } from "./perform-effect.ts";
import { recordSessionOutOfReach } from "./out-of-reach.ts";
import { isEffectAwaited } from "./slow-effects.ts";
import { awaitStart, isDrivenHere, listDrivenHere, stopAttempt } from "./driven-here.ts";
import { createAskHostPlanner, createRecoveryPlanner, type LookRequest } from "./recovery-planner.ts";
import { showPlan, showRecentlyEndedPlans } from "./tell-plans.ts";
import { removeForgottenWorktrees } from "../worktrees/remove-forgotten.ts";
import { describeError } from "../../std/describe-error.ts";
import type { DispatcherDependencies, DispatcherState } from "./dispatcher-state.ts";

export interface Dispatcher {
  /** Looks at a plan at once: something may begin, and its record shares the transaction of what let it begin. */
  readonly decided: (state: Coordination, basis: AppendBasis) => void;
  /** A step's child waits for other work: its place in the lane is free. */
  readonly giveBack: (runId: CoordinationId, stepId: string) => void;
  /** Looks at a coordination soon: something was appended to it, or an answer that a session waited for is to be told. */
  readonly lookAt: (runId: CoordinationId) => void;
  /** Goes on with a coordination that another process drove before. It does not throw. */
  readonly adopt: (runId: CoordinationId) => Promise<void>;
  /** Ends what this process does for a coordination that another gateway drives now, children included. */
  readonly drop: (runId: CoordinationId) => void;
  /** Asks the host about an open step now and records what its records say. */
  readonly askHost: (runId: CoordinationId, stepId: string) => Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createDispatcher(dependencies: DispatcherDependencies): Dispatcher {
  const memory = createDispatcherMemory();
  const lookAt = (runId: CoordinationId): void => {
    lookAfterAppend(dispatching, runId);
  };
  const onDecided = (state: Coordination, basis: AppendBasis): void => {
    if (state.kind !== "unopened" && state.plan) lookSoon(dispatching, state.coordinationId, basis);
  };
  const giveBack = (runId: CoordinationId, stepId: string): void => {
    for (const driven of memory.driven.values())
      if (driven.runId === runId && driven.stepId === stepId) releasePlace(driven);
    lookAtStarved(dispatching);
  };
  const halt: EffectDependencies["halt"] = (key) => haltAttempt(dispatching, key);
  const effectDependencies: EffectDependencies = {
    ...dependencies,
    stopping: memory.stopping.signal,
    lookAt,
    giveBack,
    lookAfter: (runId, otherId) => rememberWaiting(memory, runId, otherId),
    halt,
  };
  const failures = createFailureLog(dependencies.logger);
  const dispatching: DispatcherState = { dependencies, memory, effectDependencies, failures };
  const endOfRoom = dependencies.lanes.onRoom(() => lookAtStarved(dispatching));
  return {
    decided: onDecided,
    giveBack,
    lookAt,
    adopt: (runId) => trackWork(memory, recoverRun(dispatching, runId)),
    drop: (runId) => {
      dropRun(dispatching, runId);
    },
    askHost: (runId, stepId) =>
      trackWork(
        memory,
        planAndAct(dispatching, { runId, plan: createAskHostPlanner(stepId), awaited: "all" }),
      ),
    start: async () => {
      await trackWork(memory, sweep(dispatching));
      await trackWork(
        memory,
        logFailureOfWork(dispatching, "recent plans", showRecentlyEndedPlans(dependencies)),
      );
      void trackWork(memory, removeForgottenWorktrees(effectDependencies, memory.stopping.signal));
    },
    stop: async () => {
      endOfRoom();
      memory.stopping.abort();
      memory.cancelSweep();
      for (const cancel of memory.wakes.values()) cancel();
      memory.wakes.clear();
      for (const { over } of memory.driven.values()) over.abort();
      dependencies.lanes.stopHoldingBack();
      while (memory.working.size > 0) await Promise.all(memory.working);
      await dependencies.lanes.idle();
    },
  };
}

/** Looks at a coordination in which something was recorded, and at those that wait for it. */
function lookAfterAppend(dispatching: DispatcherState, runId: CoordinationId): void {
  const { pauseEnds, waiting } = dispatching.memory;
  pauseEnds.delete(runId);
  const others = waiting.get(runId) ?? [];
  waiting.delete(runId);
  for (const id of [runId, ...others]) lookSoon(dispatching, id);
}

function lookAtStarved(dispatching: DispatcherState): void {
  const starved = [...dispatching.memory.starved];
  dispatching.memory.starved.clear();
  for (const runId of starved) lookSoon(dispatching, runId);
}

function scheduleLook(
  dispatching: DispatcherState,
  { runId, atMs }: { readonly runId: CoordinationId; readonly atMs: EpochMs },
): void {
  const { dependencies, memory } = dispatching;
  memory.wakes.get(runId)?.();
  memory.wakes.delete(runId);
  if (isStopped(memory)) return;
  const wake = (): void => {
    memory.wakes.delete(runId);
    lookSoon(dispatching, runId);
  };
  memory.wakes.set(runId, dependencies.clock.wakeAt(atMs, wake));
}

function lookSoon(dispatching: DispatcherState, runId: CoordinationId, decidedOn?: AppendBasis): void {
  const { dependencies, memory } = dispatching;
  if (isStopped(memory)) return;
  const pauseEnd = memory.pauseEnds.get(runId);
  if (pauseEnd !== undefined && dependencies.clock.now() < pauseEnd) {
    scheduleLook(dispatching, { runId, atMs: pauseEnd });
    return;
  }
  const looking = memory.looking.get(runId);
  if (!looking) void trackWork(memory, lookUntilQuiet(dispatching, runId));
  else if (decidedOn) looking.decidedOn = decidedOn;
  else looking.again = true;
}

/** Looks until nothing has changed. Events that the ledger did not take are no change: a look would decide the same, and fail again. */
async function lookUntilQuiet(dispatching: DispatcherState, runId: CoordinationId): Promise<void> {
  const looking: LookUnderway = { again: true, decidedOn: undefined };
  dispatching.memory.looking.set(runId, looking);
  while (looking.again || looking.decidedOn?.isVoid === false) {
    looking.again = false;
    looking.decidedOn = undefined;
    await planAndAct(dispatching, { runId, plan: planDispatch, awaited: "short" });
  }
  dispatching.memory.looking.delete(runId);
}

/** Plans and performs the recovery of a coordination. Waits also for what it asks the host about spawns. */
function recoverRun(dispatching: DispatcherState, runId: CoordinationId): Promise<void> {
  const plan = createRecoveryPlanner(dispatching.dependencies);
  return planAndAct(dispatching, { runId, plan, awaited: "host" });
}

async function planAndAct(
  dispatching: DispatcherState,
  { runId, ...request }: LookRequest & { readonly runId: CoordinationId },
): Promise<void> {
  const { dependencies, memory } = dispatching;
  if (isStopped(memory)) return;
  try {
    if (!(await isDrivenHere(dependencies, runId))) return;
    const state = await dependencies.runs.state(runId);
    showPlan(dependencies, state);
    const plannedAtMs = dependencies.clock.now();
    const due = request.plan(state, plannedAtMs, computeCapacity(dependencies, memory, { runId, state }));
    const effects = dependencies.homes?.select(state, due) ?? due;
    await Promise.all([
      endPlanWithSpawn(dispatching.effectDependencies, state, dispatching.failures.noteUnread),
      ...effects.map((effect) => actOnEffect(dispatching, { ...request, state, effect })),
    ]);
    const atMs = findNextLookTime(dependencies, await dependencies.runs.state(runId), plannedAtMs);
    if (atMs !== undefined) scheduleLook(dispatching, { runId, atMs });
  } catch (error) {
    dispatching.failures.note(runId, error);
    pauseAfterLedgerFailure(dispatching, runId, error);
    scheduleLook(dispatching, {
      runId,
      atMs: addMs(dependencies.clock.now(), dependencies.settings.sweepMs),
    });
  }
}

function dropRun(dispatching: DispatcherState, runId: CoordinationId): void {
  const { dependencies, memory } = dispatching;
  memory.wakes.get(runId)?.();
  memory.wakes.delete(runId);
  dependencies.gate.forgetRun(runId);
  for (const driven of memory.driven.values()) {
    if (driven.runId !== runId) continue;
    driven.over.abort();
    continueBeside(dispatching, runId, stopAttempt(dependencies, driven, memory.stopping.signal));
  }
}

async function actOnEffect(
  dispatching: DispatcherState,
  { state, effect, awaited }: LookRequest & { readonly state: Coordination; readonly effect: Effect },
): Promise<void> {
  if (state.kind !== "open") return;
  if (dispatching.dependencies.homes?.isOutOfReach(state, effect)) {
    await recordSessionOutOfReach(dispatching.effectDependencies, state, effect);
    return;
  }
  if (effect.kind === "runStep") {
    driveInLane(dispatching, { state, effect });
    return;
  }
  const endOfEarlier = beginEffect(dispatching.memory, effect.effectId, state);
  if (endOfEarlier) return awaited === "all" ? endOfEarlier : undefined;
  const acting = performBegunEffect(dispatching, { state, effect });
  if (isEffectAwaited(state, effect, awaited)) await acting;
  else continueBeside(dispatching, state.coordinationId, acting);
}

/** Performs an effect that was noted as begun, and notes its end. */
async function performBegunEffect(
  dispatching: DispatcherState,
  { state, effect }: { readonly state: OpenCoordination; readonly effect: PerformedEffect },
): Promise<void> {
  const { memory, effectDependencies, dependencies } = dispatching;
  let isDueAgain: boolean;
  const endTurn = effect.kind === "notifyPeople" ? beginNoticeTurn(dispatching, state, effect) : undefined;
  try {
    await performEffect(effectDependencies, state, effect);
  } finally {
    endTurn?.();
    if (effect.kind === "askHost") memory.lastAsks.set(effect.effectId, dependencies.clock.now());
    isDueAgain = endEffect(memory, effect.effectId);
  }
  // The look that found it due again left it out.
  if (isDueAgain) lookSoon(dispatching, state.coordinationId);
}

/** Lets the next notice go out once this one has had its turn, whatever becomes of it. Returns what ends the turn. */
function beginNoticeTurn(
  dispatching: DispatcherState,
  { coordinationId }: OpenCoordination,
  { effectId }: NotifyPeople,
): () => void {
  const { memory, dependencies } = dispatching;
  const cancel = dependencies.clock.wakeAt(addMs(dependencies.clock.now(), NOTICE_TURN_MS), () => {
    memory.pastTurn.add(effectId);
    lookSoon(dispatching, coordinationId);
  });
  return () => {
    cancel();
    memory.pastTurn.delete(effectId);
  };
}

async function haltAttempt(
  { dependencies, memory }: DispatcherState,
  attemptKey: IdempotencyKey,
): Promise<void> {
  const driven = memory.driven.get(`${attemptKey}:run`);
  driven?.over.abort();
  if (driven) await awaitStart(dependencies, driven, memory.stopping.signal);
}

function driveInLane(
  dispatching: DispatcherState,
  { state, effect }: { readonly state: Coordination & { kind: "open" }; readonly effect: RunStep },
): void {
  const { dependencies, memory, effectDependencies } = dispatching;
  const step = state.steps.get(effect.stepId);
  if (!step || memory.driven.has(effect.effectId) || isStopped(memory)) return;
  const { coordinationId: runId } = state;
  const { sourceSession: session, agentId, priority, planned } = step.spec;
  const driven: AttemptUnderway = {
    runId,
    stepId: effect.stepId,
    session,
    agentId,
    over: new AbortController(),
  };
  memory.driven.set(effect.effectId, driven);
  const request: LaneRequest = {
    lane: effect.lane,
    priority,
    readyAtMs: effect.readyAtMs,
    session,
    agentId,
    criticalPathMs: planned?.criticalPathMs ?? 0,
  };
  const attempt = { runId, stepId: effect.stepId, attempt: effect.attempt, starts: driven };
  const driveUnlessStopped = async (): Promise<void> => {
    if (!driven.over.signal.aborted) await driveAttempt(effectDependencies, attempt, driven.over.signal);
  };
  // An attempt that an earlier process began is at work already: it takes a place when there is one, and waits for none.
  const begun = step.phase.attempt === effect.attempt ? driveUnlessStopped() : undefined;
  const work = async (slot: LaneSlot): Promise<void> => {
    driven.slot = slot;
    if (driven.isReleased) slot.release();
    await (begun ?? driveUnlessStopped());
  };
  const { lanes, settings } = dependencies;
  const runInLane = async (): Promise<void> => {
    const [result] = await Promise.all([lanes.run(request, work), begun]);
    memory.driven.delete(effect.effectId);
    // Room may have come back before the refusal was heard of.
    if (result.kind === "full" && lanes.room(effect.lane) === 0) memory.starved.add(runId);
    else lookSoon(dispatching, runId);
    if (settings.perSessionMax !== undefined || settings.perAgentMax !== undefined)
      lookAtStarved(dispatching);
  };
  // After a failure the next sweep takes the attempt up again.
  continueBeside(
    dispatching,
    runId,
    runInLane().finally(() => memory.driven.delete(effect.effectId)),
  );
}

/** Goes on with the work beside everything else; a stop waits for it. A failure is logged, and mended by the next sweep. */
function continueBeside(dispatching: DispatcherState, runId: CoordinationId, work: Promise<void>): void {
  const pausing = work.catch((error: unknown) => {
    pauseAfterLedgerFailure(dispatching, runId, error);
    throw error;
  });
  void trackWork(dispatching.memory, logFailureOfWork(dispatching, runId, pausing));
}

/** Begins a pause where the ledger failed: each look would try to record the same, and fail again. */
function pauseAfterLedgerFailure(
  { dependencies, memory }: DispatcherState,
  runId: CoordinationId,
  error: unknown,
): void {
  const { clock, settings } = dependencies;
  if (!readErrorCode(error).startsWith("LEDGER_")) return;
  memory.pauseEnds.set(runId, addMs(clock.now(), settings.sweepMs));
}

async function logFailureOfWork(
  { failures }: DispatcherState,
  runId: string,
  work: Promise<void>,
): Promise<void> {
  await work.catch((error: unknown) => failures.note(runId, error));
}

async function sweep(dispatching: DispatcherState): Promise<void> {
  const { dependencies, memory } = dispatching;
  const { clock, content, logger, settings } = dependencies;
  memory.lastAsks.clear();
  dispatching.failures.noteSweep();
  try {
    for await (const runId of listDrivenHere(dependencies)) {
      if (isStopped(memory)) return;
      await recoverRun(dispatching, runId);
    }
    await content.deleteBefore(addMs(clock.now(), -settings.contentMs));
    memory.sweepFailure = undefined;
  } catch (error) {
    const failure = describeError(error);
    if (failure !== memory.sweepFailure)
      logger.error({ code: readErrorCode(error) }, `the sweep failed: ${failure}`);
    memory.sweepFailure = failure;
  }
  if (isStopped(memory)) return;
  memory.cancelSweep = clock.wakeAt(addMs(clock.now(), settings.sweepMs), () => {
    void trackWork(memory, sweep(dispatching));
  });
}
