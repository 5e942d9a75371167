/** Owns: what a dispatcher remembers between two looks, and the work that its stop waits for. */
import type { AgentId, CoordinationId, EpochMs, SessionKey } from "../../contracts/ids.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { LaneSlot } from "../../ports/lane-runner.ts";
import type { AppendBasis } from "../../ports/run-store.ts";
import type { AttemptStarts } from "../attempts/prepare-attempt.ts";

/** Work that was handed to the lanes and has not given its place back. */
export interface HeldPlace {
  readonly session: SessionKey;
  readonly agentId: AgentId;
  readonly isReleased?: boolean;
}

/** An attempt that this process brings to its end. */
export interface AttemptUnderway extends HeldPlace, AttemptStarts {
  readonly runId: CoordinationId;
  readonly stepId: string;
  readonly over: AbortController;
  slot?: LaneSlot;
  /** Its place is free though it goes on. */
  isReleased?: boolean;
}

/** A coordination that is being looked at, and what came up meanwhile. */
export interface LookUnderway {
  /** True once something happened that the look may not have seen. */
  again: boolean;
  /** The basis of what was decided meanwhile and may not be on disk yet. */
  decidedOn: AppendBasis | undefined;
}

export interface EffectUnderway {
  /** How long the log was when it began. */
  readonly begunAt: number;
  /** Resolves when it is over, whatever became of it. */
  readonly over: PromiseWithResolvers<void>;
}

/** The memory of one dispatcher between two looks; nothing of it is a fact. */
export interface DispatcherMemory {
  readonly wakes: Map<CoordinationId, () => void>;
  /** Effects under way, by their id. */
  readonly underway: Map<string, EffectUnderway>;
  /** Effects under way that are due again with what was recorded since they began. */
  readonly dueAgain: Set<string>;
  /** When the host was last asked each question since the last sweep, by the id of its effect. */
  readonly lastAsks: Map<string, EpochMs>;
  /** Notices under way that have had their turn, by the id of their effect. */
  readonly pastTurn: Set<string>;
  /** Attempts under way or waiting for their lane, by the id of their effect. */
  readonly driven: Map<string, AttemptUnderway>;
  readonly looking: Map<CoordinationId, LookUnderway>;
  /** Until when it is not tried again to record something after the ledger failed, unless something is recorded before. */
  readonly pauseEnds: Map<CoordinationId, EpochMs>;
  /** Coordinations that wait for something that is recorded in another one, by that one. */
  readonly waiting: Map<CoordinationId, Set<CoordinationId>>;
  /** Coordinations whose steps found a lane full, a cap reached or their provider closed, or may have. */
  readonly starved: Set<CoordinationId>;
  /** Looks, sweeps and attempts under way. */
  readonly working: Set<Promise<void>>;
  readonly stopping: AbortController;
  cancelSweep: () => void;
  /** Why the last sweep failed: the sweeps behind it that fail for the same reason do not log it again. */
  sweepFailure: string | undefined;
}

/** Releases the place of a driven attempt in its lane; one that is not given yet is released as soon as it is. */
export function releasePlace(driven: AttemptUnderway): void {
  driven.isReleased = true;
  driven.slot?.release();
}

/** Returns the empty memory of a dispatcher, in which nothing is under way. */
export function createDispatcherMemory(): DispatcherMemory {
  return {
    wakes: new Map(),
    underway: new Map(),
    dueAgain: new Set(),
    lastAsks: new Map(),
    pastTurn: new Set(),
    driven: new Map(),
    looking: new Map(),
    pauseEnds: new Map(),
    waiting: new Map(),
    starved: new Set(),
    working: new Set(),
    stopping: new AbortController(),
    cancelSweep: () => undefined,
    sweepFailure: undefined,
  };
}

/**
 * Notes in the dispatcher's memory that an effect begins, and returns `undefined`. Where it is under way already, it
 * is noted as due again if something was recorded since, and the promise of its end is returned.
 */
export function beginEffect(
  { underway, dueAgain }: DispatcherMemory,
  effectId: string,
  { nextSequence }: Coordination,
): Promise<void> | undefined {
  const earlier = underway.get(effectId);
  if (!earlier) underway.set(effectId, { begunAt: nextSequence, over: Promise.withResolvers() });
  else if (nextSequence > earlier.begunAt) dueAgain.add(effectId);
  return earlier?.over.promise;
}

/**
 * Notes in the dispatcher's memory that an effect is over, and resolves the promise of that. Returns true where it
 * became due again meanwhile.
 */
export function endEffect({ underway, dueAgain }: DispatcherMemory, effectId: string): boolean {
  underway.get(effectId)?.over.resolve();
  underway.delete(effectId);
  return dueAgain.delete(effectId);
}

/**
 * Notes in the dispatcher's memory that a coordination is to be looked at again once something is recorded in another
 * one.
 */
export function rememberWaiting(
  { waiting }: DispatcherMemory,
  runId: CoordinationId,
  otherId: CoordinationId,
): void {
  waiting.set(otherId, new Set([runId, ...(waiting.get(otherId) ?? [])]));
}

/**
 * Waits for work, which is in the dispatcher's memory meanwhile so that `stop` waits for it, too. The work must not
 * reject, and looks, sweeps and attempts do not.
 */
export async function trackWork(memory: DispatcherMemory, work: Promise<void>): Promise<void> {
  memory.working.add(work);
  await work;
  memory.working.delete(work);
}

/** True once the dispatcher was told to stop. */
export function isStopped({ stopping }: DispatcherMemory): boolean {
  return stopping.signal.aborted;
}
