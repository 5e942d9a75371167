/** Owns: the measures of coordination, each with its target and whether it is met. */
import type { StatsConfig } from "../contracts/config/stats-config.ts";
import type { CoordinationCounts } from "./count-coordination.ts";

/** The names of the measures, in the order in which they are told. */
export type MeasureName =
  "success" | "delivery" | "firstResult" | "duplicates" | "lostUpdates" | "held" | "answers";

export interface Measure {
  readonly name: MeasureName;
  /** A share from 0 to 1, milliseconds or a number. Absent where there is nothing to count. */
  readonly value?: number;
  readonly unit: "share" | "ms" | "count";
  readonly target: { readonly is: "at least" | "at most"; readonly value: number };
  /** How many things it was counted of. */
  readonly count: number;
  /** `few`: too few were counted to tell. */
  readonly verdict: "met" | "missed" | "few";
}

/** Fewer say nothing about a share, or about the 95th of 100. */
const COUNT_MIN = 20;

/** Returns the measures of what was counted, such as the share of successes, each with whether it meets its target. */
export function measureCounts(counts: CoordinationCounts, targets: StatsConfig): Measure[] {
  const { ended, succeeded, tellings, delivered, completed, conflicts, results } = counts;
  return [
    measureShare("success", { part: succeeded, whole: ended }, demandAtLeast(targets.successMin)),
    measureShare("delivery", { part: delivered, whole: tellings }, demandAtLeast(targets.deliveryMin)),
    measurePercentile("firstResult", counts.firstResultMs, allowAtMost(targets.firstResultMs)),
    measureIncidents(
      "duplicates",
      { value: counts.duplicates, count: completed },
      allowAtMost(targets.duplicatesMax),
    ),
    measureIncidents(
      "lostUpdates",
      { value: counts.lostUpdates, count: conflicts },
      allowAtMost(targets.lostUpdatesMax),
    ),
    measureShare("held", { part: counts.held, whole: results }, allowAtMost(targets.heldMax)),
    measurePercentile("answers", counts.answerMs, allowAtMost(targets.answerMs)),
  ];
}

/** The least or the greatest value that a measure should have. */
type MeasureTarget = Measure["target"];

function demandAtLeast(value: number): MeasureTarget {
  return { is: "at least", value };
}

function allowAtMost(value: number): MeasureTarget {
  return { is: "at most", value };
}

function isMet(value: number, target: MeasureTarget): boolean {
  return target.is === "at least" ? value >= target.value : value <= target.value;
}

function judgeMeasure(value: number | undefined, count: number, target: MeasureTarget): Measure["verdict"] {
  if (value === undefined || count < COUNT_MIN) return "few";
  return isMet(value, target) ? "met" : "missed";
}

function measureShare(
  name: MeasureName,
  { part, whole }: { readonly part: number; readonly whole: number },
  target: MeasureTarget,
): Measure {
  const value = whole === 0 ? undefined : part / whole;
  const verdict = judgeMeasure(value, whole, target);
  return { name, ...(value !== undefined && { value }), unit: "share", target, count: whole, verdict };
}

function measurePercentile(name: MeasureName, durations: readonly number[], target: MeasureTarget): Measure {
  const value = findPercentile(durations, 0.95);
  const count = durations.length;
  return {
    name,
    ...(value !== undefined && { value }),
    unit: "ms",
    target,
    count,
    verdict: judgeMeasure(value, count, target),
  };
}

/** Measures something that must not happen: one is enough to tell. */
function measureIncidents(
  name: MeasureName,
  { value, count }: { readonly value: number; readonly count: number },
  target: MeasureTarget,
): Measure {
  return { name, value, unit: "count", target, count, verdict: isMet(value, target) ? "met" : "missed" };
}

/**
 * Returns the smallest of the values that at least this share of them, from 0 to 1, does not exceed; `undefined` of no
 * values.
 */
export function findPercentile(values: readonly number[], share: number): number | undefined {
  const sorted = Float64Array.from(values).sort();
  return sorted.length === 0 ? undefined : sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
