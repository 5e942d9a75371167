/** Owns: the metrics of this gateway: one for each runtime. Nothing of it is loaded where the operator does not want them. */
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { createOnce } from "../../../agents/coordination/std/load-once.ts";
import type { RunningCoordinator } from "../../compose.ts";
import type { MetricsHost } from "../../compose-metrics.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";

export interface MetricsFace {
  /** Returns all metrics, and the type of that text. @throws CoordinationError where the ledger cannot be read */
  scrape(): Promise<{ readonly text: string; readonly contentType: string }>;
  readonly noteAppend: () => Promise<MetricsHost["noteAppend"]>;
  close(): Promise<void>;
}

export interface MetricsFaceDependencies {
  readonly logger: Logger;
  /** The path or the URL of the ledger. */
  readonly place: string;
  readonly coordinator: () => Promise<RunningCoordinator>;
}

export function createMetricsFace({ logger, place, coordinator }: MetricsFaceDependencies): MetricsFace {
  let isUsed = false;
  // Counting begins here, so it is made with the runtime.
  const load = createOnce(() => {
    isUsed = true;
    return runOutsideCalls(async () => {
      const { createMetricsHost } = await import("../../compose-metrics.ts");
      return createMetricsHost({ logger, ledgerPath: place, prepare: coordinator });
    });
  });
  return {
    scrape: async () => {
      const host = await load();
      return { text: await host.scrape(), contentType: host.contentType };
    },
    noteAppend: async () => (await load()).noteAppend,
    close: async () => {
      if (isUsed) await (await load()).close();
    },
  };
}
