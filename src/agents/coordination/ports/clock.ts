import type { EpochMs } from "../contracts/ids.ts";

/** Time as the shell sees it; the core gets it as arguments. */
export interface Clock {
  now(): EpochMs;
  /** Calls `run` once at about `atMs`, without keeping the process alive. Returns the cancellation. */
  wakeAt(atMs: EpochMs, run: () => void): () => void;
}
