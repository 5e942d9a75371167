/**
 * Owns: acting on what `planDispatch` says, when it is due. Timers follow from the states; the effects under way are
 * remembered only so that one process does not do the same thing twice at once.
 */
import { addMs, type CoordinationId, type EpochMs, type IdempotencyKey } from "../../contracts/ids.ts";
import { readErrorCode } from "../../contracts/errors.ts";
import { findNextDeadline, planDispatch, type Effect } from "../../dispatch/effects/plan-dispatch.ts";
import type { Capacity } from "../../dispatch/effects/capacity.ts";
import type { RunStep } from "../../dispatch/effects/plan-effects.ts";
import type { Coordination, OpenCoordination } from "../../ledger/state.ts";
import type { LaneRequest, LaneRunner, LaneSlot } from "../../ports/lane-runner.ts";
import { driveAttempt } from "../attempts/drive-attempt.ts";
import type { AttemptStarts } from "../attempts/prepare-attempt.ts";
import { isGateEffect, performGateEffect } from "./perform-gate-effect.ts";
import { computeAllowance, type HeldPlace } from "./caps-left.ts";
import { laterOf, lookAgainAt, PAUSE_MS_MIN } from "./look-again-at.ts";
import { isCommonEffect, performEffect, type EffectParts } from "./perform-effect.ts";
import { performPlanEffect } from "./perform-plan-effect.ts";
import { recordOutOfReach } from "./out-of-reach.ts";
import { OWN_TIME, TAKES_TIME } from "./slow-effects.ts";
import { awaitStart, isDrivenHere, listDrivenHere, stopAttempt, type DrivenParts } from "./driven-here.ts";
import { createQuestionPlan, createRecoveryPlan, type Plan } from "./recovery-plans.ts";
import { tellPlan, tellRecentPlans } from "./tell-plans.ts";
import type { SpawnGate } from "../spawns/spawn-gate.ts";
import { describeError } from "../../std/describe-error.ts";

export interface DispatcherParts
  extends Omit<EffectParts, "stopping" | "watch" | "giveBack" | "halt">, DrivenParts {
  readonly lanes: LaneRunner;
  readonly gate: SpawnGate;
  /** Hears at every sweep of each coordination that is open here, whoever opened it. */
  readonly onOpen: (state: OpenCoordination) => void;
}

export interface Dispatcher {
  /** Looks at the coordination again when its state says so. */
  readonly watch: (state: Coordination) => void;
  /** Looks at a plan at once: something may begin, and its record shares the transaction of what let it begin. */
  readonly changed: (state: Coordination) => void;
  /** A step's child waits for other work: its place in the lane is free. */
  readonly giveBack: (runId: CoordinationId, stepId: string) => void;
  /** Looks at a coordination soon, because others appended to it. */
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

/** An attempt that this process brings to its end. */
interface Driven extends HeldPlace, AttemptStarts {
  readonly runId: CoordinationId;
  readonly stepId: string;
  readonly over: AbortController;
  slot?: LaneSlot;
  /** Its place is free though it goes on. */
  isReleased?: boolean;
}

/** The memory of one dispatcher between two looks; nothing of it is a fact. */
interface Memory {
  readonly wakes: Map<CoordinationId, () => void>;
  readonly underway: Set<string>;
  /** Attempts under way or waiting for their lane, by the id of their effect. */
  readonly driven: Map<string, Driven>;
  /** Coordinations being looked at, and whether they are to be looked at again. */
  readonly looking: Map<CoordinationId, { again: boolean }>;
  /** Coordinations whose steps found a lane full. */
  readonly starved: Set<CoordinationId>;
  /** Looks, sweeps and attempts under way. */
  readonly working: Set<Promise<void>>;
  readonly stopping: AbortController;
  cancelSweep: () => void;
}

interface Dispatching {
  readonly parts: DispatcherParts;
  readonly memory: Memory;
  readonly effectParts: EffectParts;
}

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  const memory = createMemory();
  const watch = (state: Coordination): void => {
    const due = findNextDeadline(state);
    const { coordinationId: runId } = state;
    if (due !== undefined)
      wakeAt(dispatching, { runId, atMs: laterOf(due, addMs(parts.clock.now(), PAUSE_MS_MIN)) });
  };
  const onChanged = (state: Coordination): void => {
    if (state.kind !== "unopened" && state.plan) lookSoon(dispatching, state.coordinationId);
  };
  const giveBack = (runId: CoordinationId, stepId: string): void => {
    for (const driven of memory.driven.values())
      if (driven.runId === runId && driven.stepId === stepId) release(driven);
    lookAtStarved(dispatching);
  };
  const halt: EffectParts["halt"] = (key) => haltAttempt(dispatching, key);
  const effectParts: EffectParts = { ...parts, stopping: memory.stopping.signal, watch, giveBack, halt };
  const dispatching: Dispatching = { parts, memory, effectParts };
  const endOfRoom = parts.lanes.onRoom(() => lookAtStarved(dispatching));
  return {
    watch,
    changed: onChanged,
    giveBack,
    lookAt: (runId) => {
      lookSoon(dispatching, runId);
    },
    adopt: (runId) => trackWork(memory, look(dispatching, { runId, plan: createRecoveryPlan(parts) })),
    drop: (runId) => {
      dropRun(dispatching, runId);
    },
    askHost: (runId, stepId) =>
      trackWork(memory, look(dispatching, { runId, plan: createQuestionPlan(stepId) })),
    start: async () => {
      await trackWork(memory, sweep(dispatching));
      await trackWork(memory, logFailures(dispatching, "recent plans", tellRecentPlans(parts)));
    },
    stop: async () => {
      endOfRoom();
      memory.stopping.abort();
      memory.cancelSweep();
      for (const cancel of memory.wakes.values()) cancel();
      memory.wakes.clear();
      for (const { over } of memory.driven.values()) over.abort();
      while (memory.working.size > 0) await Promise.all(memory.working);
      await parts.lanes.idle();
    },
  };
}

/** Looks again at those whose steps found no place. */
function lookAtStarved(dispatching: Dispatching): void {
  const starved = [...dispatching.memory.starved];
  dispatching.memory.starved.clear();
  for (const runId of starved) lookSoon(dispatching, runId);
}

/** Releases a place, even before it was given. */
function release(driven: Driven): void {
  driven.isReleased = true;
  driven.slot?.release();
}

function createMemory(): Memory {
  return {
    wakes: new Map(),
    underway: new Set(),
    driven: new Map(),
    looking: new Map(),
    starved: new Set(),
    working: new Set(),
    stopping: new AbortController(),
    cancelSweep: () => undefined,
  };
}

/** Remembers work until it is through, for `stop` to wait for. Looks, sweeps and attempts do not reject. */
async function trackWork(memory: Memory, work: Promise<void>): Promise<void> {
  memory.working.add(work);
  await work;
  memory.working.delete(work);
}

function isStopped({ stopping }: Memory): boolean {
  return stopping.signal.aborted;
}

function wakeAt(
  dispatching: Dispatching,
  { runId, atMs }: { readonly runId: CoordinationId; readonly atMs: EpochMs },
): void {
  const { parts, memory } = dispatching;
  memory.wakes.get(runId)?.();
  memory.wakes.delete(runId);
  if (isStopped(memory)) return;
  const wake = (): void => {
    memory.wakes.delete(runId);
    lookSoon(dispatching, runId);
  };
  memory.wakes.set(runId, parts.clock.wakeAt(atMs, wake));
}

/** Looks once for all changes that come while another look is under way. */
function lookSoon(dispatching: Dispatching, runId: CoordinationId): void {
  const { memory } = dispatching;
  if (isStopped(memory)) return;
  const looking = memory.looking.get(runId);
  if (looking) looking.again = true;
  else void trackWork(memory, lookUntilQuiet(dispatching, runId));
}

async function lookUntilQuiet(dispatching: Dispatching, runId: CoordinationId): Promise<void> {
  const looking = { again: true };
  dispatching.memory.looking.set(runId, looking);
  while (looking.again) {
    looking.again = false;
    await look(dispatching, { runId, plan: planDispatch });
  }
  dispatching.memory.looking.delete(runId);
}

async function look(
  dispatching: Dispatching,
  { runId, plan }: { readonly runId: CoordinationId; readonly plan: Plan },
): Promise<void> {
  const { parts, memory } = dispatching;
  if (isStopped(memory)) return;
  try {
    if (!(await isDrivenHere(parts, runId))) return;
    const state = await parts.runs.state(runId);
    tellPlan(parts, state);
    const due = plan(state, parts.clock.now(), capacityOf(dispatching, runId));
    const effects = parts.homes?.select(state, due) ?? due;
    await Promise.all(effects.map((effect) => act(dispatching, { state, effect })));
    const atMs = lookAgainAt(parts, await parts.runs.state(runId));
    if (atMs !== undefined) wakeAt(dispatching, { runId, atMs });
  } catch (error) {
    const code = readErrorCode(error);
    parts.logger.error({ runId, code }, `could not move the coordination on: ${describeError(error)}`);
    wakeAt(dispatching, { runId, atMs: addMs(parts.clock.now(), parts.settings.sweepMs) });
  }
}

/** The gateway that drives it now has given up the agents that work here. */
function dropRun(dispatching: Dispatching, runId: CoordinationId): void {
  const { parts, memory } = dispatching;
  memory.wakes.get(runId)?.();
  memory.wakes.delete(runId);
  for (const driven of memory.driven.values()) {
    if (driven.runId !== runId) continue;
    driven.over.abort();
    void trackWork(
      memory,
      logFailures(dispatching, runId, stopAttempt(parts, driven, memory.stopping.signal)),
    );
  }
}

function capacityOf({ parts, memory }: Dispatching, runId: CoordinationId): Capacity {
  const { lanes, settings } = parts;
  const room = {
    control: lanes.room("control"),
    data: lanes.room("data"),
    escalation: lanes.room("escalation"),
  };
  if (Object.values(room).includes(0)) memory.starved.add(runId);
  const allowance = computeAllowance(settings, memory.driven.values());
  // The end of any attempt may leave a place under a cap.
  if (allowance) memory.starved.add(runId);
  return {
    room,
    agingMs: settings.agingMs,
    ...(allowance && { allowance }),
    isUnderway: (effectId) => memory.driven.has(effectId),
  };
}

/** Effects of plans that wait for agents are not waited for: other steps go on meanwhile. */
async function act(
  dispatching: Dispatching,
  { state, effect }: { readonly state: Coordination; readonly effect: Effect },
): Promise<void> {
  if (state.kind !== "open") return;
  if (dispatching.parts.homes?.isOutOfReach(state, effect)) {
    await recordOutOfReach(dispatching.effectParts, state, effect);
    return;
  }
  if (effect.kind === "runStep") {
    drive(dispatching, { state, effect });
    return;
  }
  const acting = perform(dispatching, { state, effect });
  const { coordinationId } = state;
  if (OWN_TIME.has(effect.kind))
    void trackWork(
      dispatching.memory,
      logFailures(dispatching, coordinationId, lookAfter(dispatching, state, acting)),
    );
  else if (state.plan && TAKES_TIME.has(effect.kind))
    void trackWork(dispatching.memory, logFailures(dispatching, coordinationId, acting));
  else await acting;
}

/** Looks again after an effect: what it recorded was read while it was under way, and more may follow. */
async function lookAfter(
  dispatching: Dispatching,
  before: OpenCoordination,
  acting: Promise<void>,
): Promise<void> {
  await acting;
  const { coordinationId } = before;
  const after = await dispatching.parts.runs.state(coordinationId);
  if (after.nextSequence !== before.nextSequence) lookSoon(dispatching, coordinationId);
}

async function perform(
  { memory, effectParts, parts }: Dispatching,
  { state, effect }: { readonly state: Coordination; readonly effect: Exclude<Effect, RunStep> },
): Promise<void> {
  const { underway } = memory;
  if (underway.has(effect.effectId)) return;
  underway.add(effect.effectId);
  try {
    if (isGateEffect(effect)) await performGateEffect(effectParts, state, effect);
    else if (isCommonEffect(effect))
      await parts.lanes.operate(() => performEffect(effectParts, state, effect));
    else await performPlanEffect(effectParts, state, effect);
  } finally {
    underway.delete(effect.effectId);
  }
}

/** An agent that is being started can be stopped only when the host knows of it. */
async function haltAttempt({ parts, memory }: Dispatching, attemptKey: IdempotencyKey): Promise<void> {
  const driven = memory.driven.get(`${attemptKey}:run`);
  driven?.over.abort();
  if (driven) await awaitStart(parts, driven, memory.stopping.signal);
}

/** Takes a place in the lane for as long as the attempt lasts. */
function drive(
  dispatching: Dispatching,
  { state, effect }: { readonly state: Coordination & { kind: "open" }; readonly effect: RunStep },
): void {
  const { parts, memory, effectParts } = dispatching;
  const step = state.steps.get(effect.stepId);
  if (!step || memory.driven.has(effect.effectId) || isStopped(memory)) return;
  const { coordinationId: runId } = state;
  const { sourceSession: session, agentId, priority, planned } = step.spec;
  const driven: Driven = { runId, stepId: effect.stepId, session, agentId, over: new AbortController() };
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
    if (!driven.over.signal.aborted) await driveAttempt(effectParts, attempt, driven.over.signal);
  };
  // An attempt that an earlier process began is at work already: it takes a place when there is one, and waits for none.
  const begun = step.phase.attempt === effect.attempt ? driveUnlessStopped() : undefined;
  const work = async (slot: LaneSlot): Promise<void> => {
    driven.slot = slot;
    if (driven.isReleased) slot.release();
    await (begun ?? driveUnlessStopped());
  };
  const runInLane = async (): Promise<void> => {
    const [result] = await Promise.all([parts.lanes.run(request, work), begun]);
    memory.driven.delete(effect.effectId);
    // Room may have come back before the refusal was heard of.
    if (result.kind === "full" && parts.lanes.room(effect.lane) === 0) memory.starved.add(runId);
    else lookSoon(dispatching, runId);
    if (parts.settings.perSessionMax !== undefined || parts.settings.perAgentMax !== undefined)
      lookAtStarved(dispatching);
  };
  // After a failure the next sweep takes the attempt up again.
  void trackWork(
    memory,
    logFailures(dispatching, runId, runInLane()).finally(() => memory.driven.delete(effect.effectId)),
  );
}

async function logFailures({ parts }: Dispatching, runId: string, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const code = readErrorCode(error);
    if (code !== "LEDGER_CLOSED")
      parts.logger.error({ runId, code }, `could not move the coordination on: ${describeError(error)}`);
  }
}

async function sweep(dispatching: Dispatching): Promise<void> {
  const { parts, memory } = dispatching;
  try {
    for await (const runId of listDrivenHere(parts)) {
      if (isStopped(memory)) return;
      await look(dispatching, { runId, plan: createRecoveryPlan(parts) });
    }
    await parts.content.deleteBefore(addMs(parts.clock.now(), -parts.settings.contentMs));
  } catch (error) {
    const code = readErrorCode(error);
    parts.logger.error({ code }, `the sweep failed: ${describeError(error)}`);
  }
  if (isStopped(memory)) return;
  memory.cancelSweep = parts.clock.wakeAt(addMs(parts.clock.now(), parts.settings.sweepMs), () => {
    void trackWork(memory, sweep(dispatching));
  });
}
