/**
 * Owns: the metrics over one ledger, with a reader of its own that writes nothing. Load it only where somebody wants metrics: with it
 * comes the library that formats them.
 */
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import { systemClock } from "./compose.ts";
import { openLedgerForReading } from "./ledger-reader.ts";
import { createMetrics } from "./metrics/create-metrics.ts";
import type { NoteAppend } from "./metrics/time-appends.ts";
import { createOpenOnce } from "./open-once.ts";

export interface MetricsOptions {
  readonly ledgerPath: string;
  readonly logger: Logger;
  /**
   * Makes sure that the ledger is there, and returns the position behind which events are counted. Where that fails, a ledger that is
   * there already is read all the same, and counted from then on.
   */
  readonly prepare?: () => Promise<number | undefined>;
}

export interface MetricsHost {
  readonly contentType: string;
  readonly noteAppend: NoteAppend;
  /** Returns all metrics in Prometheus' text format. @throws CoordinationError where the ledger cannot be read */
  scrape(): Promise<string>;
  close(): Promise<void>;
}

/**
 * Creates the metrics of a ledger, which is opened with the first reading of them, and which the caller has to close.
 */
export function createMetricsHost({ ledgerPath, logger, prepare }: MetricsOptions): MetricsHost {
  let start: number | undefined;
  const reader = createOpenOnce(
    async () => {
      start = await prepare?.().catch(() => undefined);
      return openLedgerForReading(ledgerPath);
    },
    () => new CoordinationError("LEDGER_CLOSED", "the metrics are closed"),
  );
  const metrics = createMetrics({
    reader: reader.get,
    clock: systemClock,
    logger,
    findStart: () => start,
  });
  return {
    contentType: metrics.contentType,
    noteAppend: (seconds, outcome) => metrics.noteAppend(seconds, outcome),
    scrape: () => metrics.scrape(),
    close: async () => {
      metrics.close();
      await reader.close();
    },
  };
}
