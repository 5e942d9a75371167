/** Owns: the export of spans of this gateway: one for each runtime. Nothing of it is loaded where the operator does not want it. */
import type { TelemetryConfig } from "../../../agents/coordination/contracts/config/telemetry-config.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { readPackageVersion } from "../../../platform/package-files.ts";
import type { RunningCoordinator } from "../../compose.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";

export interface TelemetryFace {
  close(): Promise<void>;
}

export interface TelemetryFaceDependencies {
  readonly settings: TelemetryConfig;
  readonly logger: Logger;
  /** The path or the URL of the ledger. */
  readonly place: string;
  readonly coordinator: () => Promise<RunningCoordinator>;
}

/**
 * Begins to export spans in the background, and returns the handle whose `close` stops that; where the exporter cannot
 * start, that is logged and nothing is thrown.
 */
export function createTelemetryFace({
  settings,
  logger,
  place,
  coordinator,
}: TelemetryFaceDependencies): TelemetryFace {
  const { endpoint, headers } = settings;
  const started = runOutsideCalls(async () => {
    const { startTelemetry } = await import("../../compose-telemetry.ts");
    return startTelemetry({
      place,
      logger,
      cursors: async () => (await coordinator()).exports,
      ...(endpoint !== undefined && { endpoint }),
      headers,
      version: readPackageVersion(),
    });
  });
  // Nobody waits for it before the runtime closes: a rejection would end the gateway.
  const running = started.catch((error: unknown) => {
    logger.error({ error: describeError(error) }, "spans are not exported: the exporter cannot start");
  });
  return { close: async () => (await running)?.close() };
}
