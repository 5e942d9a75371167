import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";

/** setTimeout fires at once when asked to wait longer than this. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now() as EpochMs,
  wakeAt: (atMs, run) => {
    const timer = setTimeout(run, Math.min(Math.max(0, atMs - Date.now()), TIMEOUT_MS_MAX));
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};
