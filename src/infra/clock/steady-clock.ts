import type { SteadyClock } from "../../agents/coordination/ports/clock.ts";

export const steadyClock: SteadyClock = { elapsedMs: () => performance.now() };
