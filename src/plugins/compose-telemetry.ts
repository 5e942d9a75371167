/**
 * Owns: the export of spans of one ledger, with a reader of its own. Load it only where somebody wants spans: with it comes the
 * exporter of OpenTelemetry.
 */
import { hash, randomUUID } from "node:crypto";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import type { ExportCursors } from "../agents/coordination/ports/export-cursors.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import { steadyClock } from "../infra/clock/steady-clock.ts";
import { createOtlpSender } from "../infra/otlp/otlp-sender.ts";
import { systemClock } from "./compose.ts";
import { openLedgerForReading } from "./ledger-reader.ts";
import { createOpenOnce } from "./open-once.ts";
import { createSpanExport } from "./telemetry/export-spans.ts";
import { createFollowedSpans } from "./telemetry/followed-spans.ts";

export interface TelemetryOptions {
  /** The path or the URL of the ledger. */
  readonly place: string;
  readonly logger: Logger;
  /** Makes sure that the ledger is there. */
  readonly cursors: () => Promise<ExportCursors>;
  /** Absent: what the environment says (`OTEL_EXPORTER_OTLP_*`). */
  readonly endpoint?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly version: string;
}

export interface TelemetryHost {
  /** Ends after the request under way, or after 2 s where the collector does not answer. */
  close(): Promise<void>;
}

/**
 * Starts exporting spans of the ledger's events to an OpenTelemetry collector, from where the last export stopped or
 * else from now on, and returns what stops it.
 */
export function startTelemetry(options: TelemetryOptions): TelemetryHost {
  const { place, logger, cursors } = options;
  const reader = createOpenOnce(
    async () => {
      await cursors();
      return openLedgerForReading(place);
    },
    () => new CoordinationError("LEDGER_CLOSED", "the export of spans is closed"),
  );
  const sender = createOtlpSender(options);
  const spans = createFollowedSpans(
    (text) => hash("sha256", text),
    (runId) => {
      logger.warn({ runId }, "the log of this run cannot be read: its spans are left out");
    },
  );
  const holder = randomUUID();
  const exporting = createSpanExport({
    ledger: reader.get,
    cursors,
    spans,
    sender,
    clock: systemClock,
    steady: steadyClock,
    logger,
    holder,
  });
  exporting.start();
  return {
    close: async () => {
      await exporting.close();
      await reader.close();
    },
  };
}
