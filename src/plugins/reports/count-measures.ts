/** Owns: counting what the measures are of, over the coordinations that were opened since a time. */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { RunEntry, LogReader } from "../../agents/coordination/ports/ledger-store.ts";
import { listFoundRuns } from "../../agents/coordination/runtime/log/read-found.ts";
import { readLog } from "../../agents/coordination/runtime/log/read-pages.ts";
import {
  addCounts,
  createCoordinationCounter,
  createCounts,
  type Counts,
} from "../../agents/coordination/stats/count-coordination.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

export interface MeasuredCounts {
  readonly counts: Counts;
  /** True where there are more coordinations than may be counted. */
  readonly isCut: boolean;
}

/** Counts coordinations. It keeps its counts, so that a log is read again only after it has grown. */
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

interface Kept {
  readonly length: number;
  readonly counts: Counts;
}

export function createMeasureCounter(): MeasureCounter {
  let kept = new Map<string, Kept>();
  return {
    count: async (reader, { since, limit = Number.MAX_SAFE_INTEGER, onProgress }) => {
      const counted = new Map<string, Kept>();
      const sum = createCounts();
      for await (const entry of listFoundRuns(reader, { filter: { since } })) {
        if (counted.size === limit) return { counts: sum, isCut: true };
        const counts = await countRun(reader, entry, kept);
        counted.set(entry.runId, { length: entry.length, counts });
        addCounts(sum, counts);
        onProgress?.(counted.size);
      }
      kept = counted;
      return { counts: sum, isCut: false };
    },
  };
}

async function countRun(
  reader: LogReader,
  { runId, length }: RunEntry,
  kept: ReadonlyMap<string, Kept>,
): Promise<Counts> {
  const before = kept.get(runId);
  if (before?.length === length) return before.counts;
  const counter = createCoordinationCounter();
  for await (const page of readLog(reader, runId)) for (const event of page) counter.take(event);
  return counter.counts;
}
