/**
 * Owns: which of the requests that wait for a lane goes first.
 *
 * N1 a request is overtaken only by one of a higher priority that became ready less than `agingMs` later for each level
 *    between them; so nothing starves. N2 the order never changes with time: waiting raises all alike, so it is worked out once.
 */
import type { Priority } from "../contracts/envelope.ts";
import type { EpochMs } from "../contracts/ids.ts";

const LEVEL: Readonly<Record<Priority, number>> = { low: -1, normal: 0, high: 1, critical: 2 };

/** The fields that the rank of a request follows from. */
export interface RequestUrgency {
  readonly priority: Priority;
  readonly readyAtMs: EpochMs;
  readonly criticalPathMs: number;
}

export interface LaneRank {
  /** When it became ready, moved by its priority: the smaller goes first. */
  readonly key: number;
  /** Among equals the one with more work behind it goes first. */
  readonly criticalPathMs: number;
  /** Then the one that came first. */
  readonly arrival: number;
}

/**
 * Returns the rank of a lane's request, by priority, age, critical path and arrival; it never changes with time (N2).
 */
export function rankRequest(
  { priority, readyAtMs, criticalPathMs }: RequestUrgency,
  agingMs: number,
  arrival: number,
): LaneRank {
  return { key: readyAtMs - LEVEL[priority] * agingMs, criticalPathMs, arrival };
}

/** Compares two ranks: negative when `a` goes first. Never 0 for two requests, because no two have the same arrival. */
export function compareRanks(a: LaneRank, b: LaneRank): number {
  return a.key - b.key || b.criticalPathMs - a.criticalPathMs || a.arrival - b.arrival;
}
