/** Owns: a clock for tests of authors, which stands still until it is told to go on. */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";

/** A clock that a test moves. */
export interface ManualClock {
  readonly now: () => number;
  /** Moves on, ending on the way what is due, and lets everything that follows from it happen. */
  readonly advance: (ms: number) => Promise<void>;
}

/** A call that is due at a time of the clock. */
interface PendingWake {
  readonly atMs: number;
  readonly run: () => void;
}

/** Creates a clock that stands still until `advance` moves it, which runs the wakes that fall due on the way. */
export function createManualClock(startMs: number): ManualClock & { readonly clock: Clock } {
  let nowMs = startMs;
  const wakes = new Set<PendingWake>();
  const findNextWake = (untilMs: number): PendingWake | undefined =>
    [...wakes].filter(({ atMs }) => atMs <= untilMs).toSorted((a, b) => a.atMs - b.atMs)[0];
  return {
    now: () => nowMs,
    clock: {
      now: () => nowMs as EpochMs,
      wakeAt: (atMs, run) => {
        const wake = { atMs, run };
        wakes.add(wake);
        return () => wakes.delete(wake);
      },
    },
    advance: async (ms) => {
      const untilMs = nowMs + ms;
      await settleMicrotasks();
      for (let wake = findNextWake(untilMs); wake; wake = findNextWake(untilMs)) {
        wakes.delete(wake);
        nowMs = Math.max(nowMs, wake.atMs);
        wake.run();
        await settleMicrotasks();
      }
      nowMs = untilMs;
    },
  };
}

/** Resolves when all promises that wait for nothing outside have run on. */
async function settleMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
