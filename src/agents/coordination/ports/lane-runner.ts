import type { Lane, Priority } from "../contracts/envelope.ts";

/** Limits how much of the host's own work on each lane runs at once. It holds no truth (style rule 19). */
export interface LaneRunner {
  /** Runs `work` when the lane has room and settles as it does. */
  run<T>(lane: Lane, priority: Priority, work: () => Promise<T>): Promise<T>;
  /** Resolves when no work is waiting or under way. */
  idle(): Promise<void>;
}
