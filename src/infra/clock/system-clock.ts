/** Owns: the time of day of this machine, and timers of any length that keep no process alive. */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";

/** setTimeout fires at once when asked to wait longer than this. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now() as EpochMs,
  wakeAt: (atMs, run) => {
    let timer: NodeJS.Timeout;
    const wait = (): void => {
      const leftMs = atMs - Date.now();
      timer =
        leftMs > TIMEOUT_MS_MAX ? setTimeout(wait, TIMEOUT_MS_MAX) : setTimeout(run, Math.max(0, leftMs));
      timer.unref();
    };
    wait();
    return () => {
      clearTimeout(timer);
    };
  },
};
