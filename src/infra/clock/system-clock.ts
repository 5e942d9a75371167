/** Owns: the time of day of this machine, and timers of any length that keep no process alive. */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";

/** setTimeout fires at once when asked to wait longer than this. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = createClock(() => Date.now());

const STARTED_AT_MS = Date.now() - performance.now();

/** Tells the time as if nobody had put the machine's clock forward or back since this process started. */
export const unshiftedClock: Clock = createClock(() => Math.round(STARTED_AT_MS + performance.now()));

function createClock(readMs: () => number): Clock {
  return {
    now: () => readMs() as EpochMs,
    wakeAt: (atMs, run) => {
      let timer: NodeJS.Timeout;
      const wait = (): void => {
        const leftMs = atMs - readMs();
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
}
