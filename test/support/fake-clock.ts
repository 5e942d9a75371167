/** Owns: a clock whose time is a value, and moving it together with everything that waits for it. */
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock, SteadyClock } from "../../src/agents/coordination/ports/clock.ts";

export const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export interface FakeClock extends Clock {
  /** Moves with `advance`, and not with `jump`. */
  readonly steady: SteadyClock;
  /** Wake-ups that were asked for and neither came nor were cancelled. */
  readonly pending: number;
  /** When the next one is due. */
  readonly nextAtMs: number | undefined;
  /** Sets the time without waking anybody: a clock that was put back, or a machine that slept. */
  jump(atMs: number): void;
  /** Moves through time, waking everybody who is due on the way and letting them finish. */
  advance(ms: number): Promise<void>;
}

/** `settle` lets whoever was woken finish; with `drainTasks` that is quicker, where nothing waits for the event loop. */
export function createFakeClock(startMs: number = START_MS, settle = waitUntilSettled): FakeClock {
  let nowMs = startMs;
  let jumpedMs = 0;
  const wakes = new Set<{ readonly atMs: number; readonly run: () => void }>();
  const findEarliest = (): { readonly atMs: number; readonly run: () => void } | undefined =>
    [...wakes].reduce<{ readonly atMs: number; readonly run: () => void } | undefined>(
      (first, wake) => (first && first.atMs <= wake.atMs ? first : wake),
      undefined,
    );
  return {
    get pending() {
      return wakes.size;
    },
    get nextAtMs() {
      return findEarliest()?.atMs;
    },
    steady: { elapsedMs: () => nowMs - jumpedMs },
    now: () => nowMs as EpochMs,
    jump: (atMs) => {
      jumpedMs += atMs - nowMs;
      nowMs = atMs;
    },
    wakeAt: (atMs, run) => {
      const wake = { atMs, run };
      wakes.add(wake);
      return () => {
        wakes.delete(wake);
      };
    },
    advance: async (ms) => {
      const target = nowMs + ms;
      await waitUntilSettled();
      for (let wake = findEarliest(); wake && wake.atMs <= target; wake = findEarliest()) {
        wakes.delete(wake);
        nowMs = Math.max(nowMs, wake.atMs);
        wake.run();
        await settle();
      }
      nowMs = target;
    },
  };
}

/** Resolves when all promises that wait for nothing outside have run on. */
export async function waitUntilSettled(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves when all promises have run on that wait for other promises only: no turn of the event loop is spent. */
export async function drainTasks(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise<void>((resolve) => process.nextTick(resolve));
}
