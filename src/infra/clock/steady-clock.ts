/** Owns: the steady clock of this process, by which durations are measured. */
import type { SteadyClock } from "../../agents/coordination/ports/clock.ts";

export const steadyClock: SteadyClock = { elapsedMs: () => performance.now() };
