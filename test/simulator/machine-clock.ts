/** Owns: the clock of one machine, which may be ahead of the world's or behind it. */
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { FakeClock } from "../support/fake-clock.ts";

export interface MachineClock extends FakeClock {
  /** How far it is ahead of the world's. Timers that were set stay as they are. */
  offsetMs: number;
}

export function createMachineClock(world: FakeClock): MachineClock {
  const clock: MachineClock = {
    offsetMs: 0,
    steady: world.steady,
    get pending() {
      return world.pending;
    },
    get nextAtMs() {
      return world.nextAtMs === undefined ? undefined : world.nextAtMs + clock.offsetMs;
    },
    now: () => (world.now() + clock.offsetMs) as EpochMs,
    wakeAt: (atMs, run) => world.wakeAt((atMs - clock.offsetMs) as EpochMs, run),
    jump: (atMs) => {
      world.jump(atMs - clock.offsetMs);
    },
    advance: (ms) => world.advance(ms),
  };
  return clock;
}
