/**
 * Owns: the metrics of one process over its ledger. Events are counted from the moment on in which the ledger is
 * opened, which begins at once; gauges are read when somebody asks.
 *
 * M2 A look at the ledger each second keeps the work of each request small, of the first one too.
 * M3 A request counts a bounded number of events; where more are new, they are counted behind it, and a gauge says how many.
 */
import { setImmediate as afterThisTurn } from "node:timers/promises";
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { createLedgerFollower, type FollowedLedger, type FollowerDependencies } from "./follow-ledger.ts";
import type { AppendOutcome } from "./time-appends.ts";
import { createGaugeReader, type Gauges, type MeasuredLedger } from "./read-gauges.ts";
import { createMetricValues, type MetricValues } from "./registry.ts";

export interface MetricsDependencies {
  readonly reader: () => Promise<FollowedLedger & MeasuredLedger>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly findStart: FollowerDependencies["findStart"];
}

export interface Metrics {
  readonly contentType: string;
  /** Returns all metrics in Prometheus' text format. @throws CoordinationError where the ledger cannot be read */
  scrape(): Promise<string>;
  /** Notes how long an append took. */
  noteAppend(seconds: number, outcome: AppendOutcome): void;
  close(): void;
}

/** Events that are counted at once. */
const PORTION_EVENTS = 100;
const LOOK_MS = 1_000;
/** A measurement that takes longer is not waited for: the one before is shown. */
const MEASURE_MS_MAX = 5;

/**
 * Creates the metrics of a ledger, which look for new events at intervals from now on and format all values for a
 * scrape.
 */
export function createMetrics({ reader, clock, logger, findStart }: MetricsDependencies): Metrics {
  const values = createMetricValues();
  const follower = createLedgerFollower({ reader, findStart, add: (sample) => values.add(sample) });
  const measure = createGaugeUpdater(createGaugeReader(reader), values);
  let cancel: (() => void) | undefined;
  let isLooking = false;
  let isClosed = false;
  const catchUp = async (): Promise<void> => {
    cancel?.();
    cancel = undefined;
    isLooking = true;
    try {
      // In portions, so that a request waits for one of them at most.
      let behind = 1;
      while (behind > 0 && !isClosed) behind = await follower.count(PORTION_EVENTS);
    } catch (error) {
      // The ledger is busy, or the gateway reloads: the next look counts.
      if (!isCoordinationError(error)) logger.error({}, "the metrics could not look for changes");
    }
    isLooking = false;
    arm();
  };
  const arm = (): void => {
    if (!isClosed && !isLooking) cancel ??= clock.wakeAt(addMs(clock.now(), LOOK_MS), () => void catchUp());
  };
  void catchUp();
  return {
    contentType: values.contentType,
    scrape: async () => {
      const behind = await follower.count(isLooking ? 0 : PORTION_EVENTS);
      values.set("coordination_metrics_behind_events", {}, behind);
      await measure();
      if (behind > 0 && !isLooking) void catchUp();
      else arm();
      return values.format();
    },
    noteAppend: (seconds, outcome) => {
      values.add({ name: "coordination_ledger_append_seconds", labels: { outcome }, seconds });
    },
    close: () => {
      isClosed = true;
      cancel?.();
    },
  };
}

/**
 * Returns a function that measures what is open and sets the gauges. It waits for the measuring the first time, and
 * while the last one was quick; a slow one goes on in the background.
 */
function createGaugeUpdater(read: () => Promise<Gauges>, values: MetricValues): () => Promise<void> {
  let tookMs = 0;
  let measuring: Promise<void> | undefined;
  const measure = async (isWaitedFor: boolean): Promise<void> => {
    // Reading is no waiting for a file: what begins at once would take the time of the request.
    if (!isWaitedFor) await afterThisTurn();
    const beganAtMs = performance.now();
    try {
      setGauges(values, await read());
    } finally {
      tookMs = performance.now() - beganAtMs;
      measuring = undefined;
    }
  };
  return async () => {
    const isQuick = tookMs <= MEASURE_MS_MAX;
    measuring ??= measure(isQuick);
    if (isQuick) await measuring;
    // Where it fails, the next request says so.
    else measuring.catch(() => (tookMs = 0));
  };
}

function setGauges(values: MetricValues, gauges: Gauges): void {
  values.set("coordination_open_coordinations", {}, gauges.openCoordinations);
  values.set("coordination_open_steps", {}, gauges.openSteps);
  values.set("coordination_open_questions", {}, gauges.openQuestions);
  values.set("coordination_ledger_bytes", {}, gauges.bytes);
  values.set("coordination_ledger_runs", { kind: "coordination" }, gauges.coordinations);
  values.set("coordination_ledger_runs", { kind: "workflow" }, gauges.workflowRuns);
}
