/** Owns: what a dispatcher remembers between two looks, and the work that its stop waits for. */
import type { CoordinationId } from "../../contracts/ids.ts";
import type { LaneSlot } from "../../ports/lane-runner.ts";
import type { AppendBasis } from "../../ports/run-store.ts";
import type { AttemptStarts } from "../attempts/prepare-attempt.ts";
import type { HeldPlace } from "./caps-left.ts";

/** An attempt that this process brings to its end. */
export interface Driven extends HeldPlace, AttemptStarts {
  readonly runId: CoordinationId;
  readonly stepId: string;
  readonly over: AbortController;
  slot?: LaneSlot;
  /** Its place is free though it goes on. */
  isReleased?: boolean;
}

/** A coordination that is being looked at, and what came up meanwhile. */
export interface Looking {
  /** True once something happened that the look may not have seen. */
  again: boolean;
  /** The basis of what was decided meanwhile and may not be on disk yet. */
  decidedOn: AppendBasis | undefined;
}

/** The memory of one dispatcher between two looks; nothing of it is a fact. */
export interface DispatcherMemory {
  readonly wakes: Map<CoordinationId, () => void>;
  readonly underway: Set<string>;
  /** Notices under way that have had their turn, by the id of their effect. */
  readonly pastTurn: Set<string>;
  /** Attempts under way or waiting for their lane, by the id of their effect. */
  readonly driven: Map<string, Driven>;
  readonly looking: Map<CoordinationId, Looking>;
  /** Coordinations whose steps found a lane full. */
  readonly starved: Set<CoordinationId>;
  /** Looks, sweeps and attempts under way. */
  readonly working: Set<Promise<void>>;
  readonly stopping: AbortController;
  cancelSweep: () => void;
}

/** Releases a place, even before it was given. */
export function releasePlace(driven: Driven): void {
  driven.isReleased = true;
  driven.slot?.release();
}

export function createMemory(): DispatcherMemory {
  return {
    wakes: new Map(),
    underway: new Set(),
    pastTurn: new Set(),
    driven: new Map(),
    looking: new Map(),
    starved: new Set(),
    working: new Set(),
    stopping: new AbortController(),
    cancelSweep: () => undefined,
  };
}

/** Remembers work until it is through, for `stop` to wait for. Looks, sweeps and attempts do not reject. */
export async function trackWork(memory: DispatcherMemory, work: Promise<void>): Promise<void> {
  memory.working.add(work);
  await work;
  memory.working.delete(work);
}

export function isStopped({ stopping }: DispatcherMemory): boolean {
  return stopping.signal.aborted;
}
