/** Owns: the states of coordinations that are met again and again, so that each log is read once. Bounded by how long the logs are. */
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { evolve } from "../../agents/coordination/ledger/evolve.ts";
import { createUnopenedCoordination, type Coordination } from "../../agents/coordination/ledger/state.ts";
import type { LogReader } from "../../agents/coordination/ports/ledger-store.ts";
import { giveWay } from "../../platform/give-way.ts";

export interface FoldedRuns {
  /** Returns the state after so many events of its log. @throws CoordinationError as `LedgerStore.read` */
  read(runId: CoordinationId, length: number): Promise<Coordination>;
  /** Keeps a newer state. */
  keep(state: Coordination): void;
  drop(runId: CoordinationId): void;
  has(runId: CoordinationId): boolean;
}

const EVENTS_PER_READ = 500;
/** Weighs a state besides what its events left in it, in events. */
const WEIGHT_MIN = 100;

/**
 * Creates a cache of folded states of coordinations, bounded by their events and a fixed weight for each; beyond it
 * those that were stored longest ago are dropped, but never the newest.
 */
export function createFoldedRuns(reader: () => Promise<LogReader>, weightMax: number): FoldedRuns {
  /** The one that was used last is the last. */
  const states = new Map<CoordinationId, Coordination>();
  let weight = 0;
  const drop = (runId: CoordinationId): void => {
    const state = states.get(runId);
    if (state) weight -= weighState(state);
    states.delete(runId);
  };
  const keep = (state: Coordination): void => {
    drop(state.coordinationId);
    states.set(state.coordinationId, state);
    weight += weighState(state);
    for (const runId of states.keys()) {
      if (weight <= weightMax || runId === state.coordinationId) break;
      drop(runId);
    }
  };
  return {
    keep,
    drop,
    has: (runId) => states.has(runId),
    read: async (runId, length) => {
      const rememberedState = states.get(runId);
      let state =
        rememberedState && rememberedState.nextSequence <= length
          ? rememberedState
          : createUnopenedCoordination(runId);
      if (state.nextSequence === length) return state;
      const ledger = await reader();
      while (state.nextSequence < length) {
        const limit = Math.min(EVENTS_PER_READ, length - state.nextSequence);
        const events = await ledger.read(runId, { from: state.nextSequence, limit });
        if (events.length === 0) break;
        for (const event of events) state = evolve(state, event);
        await giveWay();
      }
      keep(state);
      return state;
    },
  };
}

/** Returns how much of the bound a state takes, in events. */
function weighState({ nextSequence }: Coordination): number {
  return WEIGHT_MIN + nextSequence;
}
