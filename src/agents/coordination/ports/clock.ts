/** Owns: the ports for time: the time of day with its timers, and the steady time that durations are measured by. */
import type { EpochMs } from "../contracts/ids.ts";

/** Time as the shell sees it; the core gets it as arguments. */
export interface Clock {
  now(): EpochMs;
  /** Calls `run` once at about `atMs`, without keeping the process alive. Returns the cancellation. */
  wakeAt(atMs: EpochMs, run: () => void): () => void;
}

/** Time that only grows, whatever becomes of the clock of the day. It measures how long something takes. */
export interface SteadyClock {
  /** Milliseconds since some moment, which is another one in each process. */
  elapsedMs(): number;
}
