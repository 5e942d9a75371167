/** Owns: metrics over a recorded ledger, which count it from its first event on unless they are told otherwise. */
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { createMetrics, type Metrics } from "../../src/plugins/metrics/create-metrics.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";
import { parsePrometheusText, readCounted, type Family } from "../support/prometheus-text.ts";
import { createManualClock, openTestLedger } from "../support/temp-ledger.ts";

export interface MetricsScene extends AsyncDisposable {
  readonly metrics: Metrics;
  /** Scrapes until everything is counted. */
  read(): Promise<Map<string, Family>>;
  /** As `read`, the series that are not 0 alone, without what the ledger takes on disk. */
  count(): Promise<Record<string, number>>;
}

interface SceneOptions {
  /** The position behind which it counts. Absent: it counts from the first event on. */
  readonly after?: number | "newest";
  readonly clock?: Clock;
}

export async function openMetrics(path: string, options: SceneOptions = {}): Promise<MetricsScene> {
  const { after = 0, clock = createManualClock() } = options;
  const store = await openTestLedger(path, { mode: "read" });
  const metrics = createMetrics({
    reader: () => Promise.resolve(store),
    clock,
    logger: quietLogger,
    findStart: () => (after === "newest" ? undefined : after),
  });
  const read = async (): Promise<Map<string, Family>> => {
    for (;;) {
      const families = parsePrometheusText(await metrics.scrape());
      const behind = families.get("coordination_metrics_behind_events");
      if (behind?.samples.get("coordination_metrics_behind_events") === 0) return families;
    }
  };
  return {
    metrics,
    read,
    count: async () => {
      const { coordination_ledger_bytes: _, ...counted } = readCounted(await read());
      return counted;
    },
    [Symbol.asyncDispose]: async () => {
      metrics.close();
      await store.close();
    },
  };
}
