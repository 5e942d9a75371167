/**
 * Owns: counting what is appended to the ledger, whoever appends it, each event once. Events from before the counting
 * began only help to understand what follows.
 */
import { isCoordinationError, isLogDamage } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import { evolve } from "../../agents/coordination/ledger/evolve.ts";
import type { LedgerQueries } from "../../agents/coordination/ports/ledger-queries.ts";
import type { RunReader } from "../../agents/coordination/ports/ledger-store.ts";
import { readAppendedPastDamage } from "../../agents/coordination/runtime/log/read-appended.ts";
import { giveWay } from "../../platform/give-way.ts";
import { isCounted, listMetricSamples } from "./count-event.ts";
import type { Sample } from "./definitions.ts";
import { createFoldedRuns, type FoldedRuns } from "./folded-runs.ts";

export type FollowedLedger = RunReader &
  Pick<LedgerQueries, "readAppended" | "readArrivals" | "newestPosition">;

export interface FollowerDependencies {
  readonly reader: () => Promise<FollowedLedger>;
  /**
   * Returns the position behind which events are counted. It is called when the ledger is read first; `undefined`: behind the newest
   * one then.
   */
  readonly findStart: () => number | undefined;
  readonly add: (sample: Sample) => void;
}

export interface LedgerFollower {
  /** Counts what is new, at most about so many events. Returns how many are left. @throws CoordinationError of the ledger */
  count(eventsMax: number): Promise<number>;
}

const SLICE_EVENTS = 50;
/** The weight of the states that are remembered, in events of their logs. */
const WEIGHT_MAX = 400_000;
/** Coordinations whose logs are damaged and that are remembered as such. */
const DAMAGED_MAX = 1_000;

const UNREADABLE: Sample = { name: "coordination_metrics_unreadable_total", labels: {} };

/**
 * Creates the follower that reads events from where it last stopped in the ledger, each event once, and passes the
 * samples of each slice to `add`.
 */
export function createLedgerFollower({ reader, findStart, add }: FollowerDependencies): LedgerFollower {
  const counter = createEventCounter(createFoldedRuns(reader, WEIGHT_MAX));
  let reached: number | undefined;
  let counting: Promise<unknown> = Promise.resolve();
  const openLedger = async (): Promise<FollowedLedger> => {
    try {
      return await reader();
    } catch (error) {
      // Everything in a ledger that is created later is new.
      if (isCoordinationError(error) && error.code === "LEDGER_NOT_FOUND") reached ??= 0;
      throw error;
    }
  };
  const countSome = async (eventsMax: number): Promise<number> => {
    const ledger = await openLedger();
    reached ??= findStart() ?? (await ledger.newestPosition());
    const from = reached;
    for (;;) {
      const left = (await ledger.newestPosition()) - reached;
      if (left <= 0 || reached - from >= eventsMax) return Math.max(0, left);
      const slice = await readSliceSamples(ledger, reached, counter);
      // Together, so that a slice that fails half-way is counted once all the same.
      slice.samples.forEach(add);
      ({ reached } = slice);
      await giveWay();
    }
  };
  return {
    count: (eventsMax) => {
      // One after the other: two would count the same events twice.
      const turn = counting.then(() => countSome(eventsMax));
      counting = turn.catch(() => undefined);
      return turn;
    },
  };
}

/** The samples of a part of the ledger, and where the next part begins. */
interface SampleSlice {
  readonly samples: readonly Sample[];
  readonly reached: number;
}

async function readSliceSamples(
  ledger: FollowedLedger,
  after: number,
  counter: EventCounter,
): Promise<SampleSlice> {
  const { items, reached, skipped } = await readAppendedPastDamage(ledger, { after, limit: SLICE_EVENTS });
  const samples: Sample[] = [];
  for (const event of items) samples.push(...(await counter.count(event)));
  if (skipped && (await ledger.entry(skipped.runId)) !== undefined) samples.push(UNREADABLE);
  return { samples, reached };
}

interface EventCounter {
  /** Folds an event into its run and returns the samples that the event adds; no sums are kept. */
  count(event: RunEvent): Promise<readonly Sample[]>;
}

function createEventCounter(runs: FoldedRuns): EventCounter {
  const damaged = new Set<CoordinationId>();
  const noteDamage = (runId: CoordinationId): void => {
    runs.drop(runId);
    const [first] = damaged;
    if (damaged.size >= DAMAGED_MAX && first !== undefined) damaged.delete(first);
    damaged.add(runId);
  };
  return {
    count: async (event) => {
      const { runId, sequence } = event;
      if (damaged.has(runId)) return isCounted(event) ? [UNREADABLE] : [];
      if (!isCounted(event) && !runs.has(runId)) return [];
      try {
        const before = await runs.read(runId, sequence);
        const after = evolve(before, event);
        if (after.kind === "ended") runs.drop(runId);
        else runs.keep(after);
        return listMetricSamples({ before, event, after });
      } catch (error) {
        if (!isLogDamage(error)) throw error;
        noteDamage(runId);
        return [UNREADABLE];
      }
    },
  };
}
