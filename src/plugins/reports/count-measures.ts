/** Owns: counting what the measures are of, over the coordinations that were opened since a time. */
import type { CoordinationId, EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { RunEntry } from "../../agents/coordination/ports/ledger-store.ts";
import { listFoundRuns } from "../../agents/coordination/runtime/log/read-found.ts";
import { readLog } from "../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";
import {
  addCounts,
  createCoordinationCounter,
  createZeroCounts,
  type CoordinationCounts,
} from "../../agents/coordination/stats/count-coordination.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

export interface MeasuredCounts {
  readonly counts: CoordinationCounts;
  /** Coordinations whose logs cannot be read or lack events: nothing of them is counted. */
  readonly unreadable: readonly CoordinationId[];
  /** True where there are more coordinations than may be counted. */
  readonly isCut: boolean;
}

/** Counts coordinations. It keeps its counts, so that a log is read again only after it has grown, or where it was damaged. */
export interface MeasureCounter {
  /** Counts the newest `limit` of them at most; `onProgress` hears of each. */
  count(
    reader: ReportedLedger,
    wanted: {
      readonly since: EpochMs;
      readonly limit?: number;
      readonly onProgress?: (coordinations: number) => void;
    },
  ): Promise<MeasuredCounts>;
}

/** The counts of a coordination as they were at one length of its log. */
interface CachedCounts {
  readonly length: number;
  /** Absent where the log cannot be read or lacks events. */
  readonly counts?: CoordinationCounts;
}

/**
 * Creates the counter of the measures of coordinations that were opened since a time, which keeps the counts of each
 * log until that grows; those that are unreadable are returned apart.
 */
export function createMeasureCounter(): MeasureCounter {
  let kept: ReadonlyMap<string, CachedCounts> = new Map();
  return {
    count: async (reader, { since, limit = Number.MAX_SAFE_INTEGER, onProgress }) => {
      const counted = new Map<CoordinationId, CachedCounts>();
      const sum = createZeroCounts();
      let isCut = false;
      for await (const entry of listFoundRuns(reader, { filter: { since } })) {
        if (counted.size === limit) {
          isCut = true;
          break;
        }
        const run = await countRunOnce(reader, entry, kept);
        counted.set(entry.runId, run);
        if (run.counts) addCounts(sum, run.counts);
        onProgress?.(counted.size);
      }
      kept = counted;
      const unreadable = [...counted].filter(([, { counts }]) => !counts).map(([runId]) => runId);
      return { counts: sum, unreadable, isCut };
    },
  };
}

/** Counts a run; takes the counts from before where its log has not grown since. */
async function countRunOnce(
  reader: ReportedLedger,
  entry: RunEntry,
  kept: ReadonlyMap<string, CachedCounts>,
): Promise<CachedCounts> {
  const { runId, length } = entry;
  const before = kept.get(runId);
  if (before?.counts && before.length === length) return before;
  const counts = await readUnlessDamaged(() => countLog(reader, entry));
  return { length, ...(counts && { counts }) };
}

/** Counts the events of a log; `undefined` for one that lacks events, zero counts for one pruned meanwhile. */
async function countLog(
  reader: ReportedLedger,
  { runId, length }: RunEntry,
): Promise<CoordinationCounts | undefined> {
  const counter = createCoordinationCounter();
  let next = 0;
  for await (const page of readLog(reader, runId, { to: length }))
    for (const event of page) {
      if (event.sequence !== next) return undefined;
      next += 1;
      counter.take(event);
    }
  if (next === length) return counter.counts;
  // A run that was pruned meanwhile is not damaged.
  return (await reader.pruned.find(runId)) && createZeroCounts();
}
