/** Owns: the metrics of this gateway: one for each runtime. Nothing of it is loaded where the operator does not want them. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { RunningCoordinator } from "../../compose.ts";
import type { MetricsHost } from "../../compose-metrics.ts";
import { createOpenOnce } from "../../open-once.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";

export interface MetricsFace {
  /** Returns all metrics, and the type of that text. @throws CoordinationError where the ledger cannot be read */
  scrape(): Promise<{ readonly text: string; readonly contentType: string }>;
  readonly noteAppend: () => Promise<MetricsHost["noteAppend"]>;
  /** Has all counted that is appended from now on, however late the metrics read the ledger first. */
  countFromNow(reads: Pick<RunningCoordinator["reads"], "newestPosition">): Promise<void>;
  close(): Promise<void>;
}

export interface MetricsFaceDependencies {
  readonly logger: Logger;
  /** The path or the URL of the ledger. */
  readonly place: string;
  readonly coordinator: () => Promise<RunningCoordinator>;
}

/**
 * Creates the runtime's access to the metrics, which are loaded at their first use, and again after a failure; they
 * count from the ledger's position at `countFromNow`.
 */
export function createMetricsFace({ logger, place, coordinator }: MetricsFaceDependencies): MetricsFace {
  let start: number | undefined;
  const prepare = async (): Promise<number | undefined> => {
    await coordinator();
    return start;
  };
  // Counting begins here, so it is made with the runtime.
  const loaded = createOpenOnce(
    () =>
      runOutsideCalls(async () => {
        const { createMetricsHost } = await import("../../compose-metrics.ts");
        return createMetricsHost({ logger, ledgerPath: place, prepare });
      }),
    () => new CoordinationError("LEDGER_CLOSED", "the metrics are closed"),
  );
  return {
    scrape: async () => {
      const host = await loaded.get();
      return { text: await host.scrape(), contentType: host.contentType };
    },
    noteAppend: async () => (await loaded.get()).noteAppend,
    countFromNow: async (reads) => {
      // Where it cannot be read, the metrics begin with their first look.
      start = await reads.newestPosition().catch(() => undefined);
    },
    close: loaded.close,
  };
}
