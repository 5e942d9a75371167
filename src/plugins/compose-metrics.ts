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
  /** Makes sure that the ledger is there; where that fails, one that is there already is read all the same. */
  readonly prepare?: () => Promise<unknown>;
}

export interface MetricsHost {
  readonly contentType: string;
  readonly noteAppend: NoteAppend;
  /** Returns all metrics in Prometheus' text format. @throws CoordinationError where the ledger cannot be read */
  scrape(): Promise<string>;
  close(): Promise<void>;
}

export function createMetricsHost({ ledgerPath, logger, prepare }: MetricsOptions): MetricsHost {
  const reader = createOpenOnce(
    async () => {
      await prepare?.().catch(() => undefined);
      return openLedgerForReading(ledgerPath);
    },
    () => new CoordinationError("LEDGER_CLOSED", "the metrics are closed"),
  );
  const metrics = createMetrics({ reader: reader.get, clock: systemClock, logger });
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
