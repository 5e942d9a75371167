/** Owns: when a coordination is looked at again. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import { findNextDeadline, isIdle } from "../../dispatch/effects/plan-dispatch.ts";
import type { Coordination } from "../../ledger/state.ts";
import type { Clock } from "../../ports/clock.ts";
import type { OwnerTurns } from "../environment/owner-turns.ts";

/** Waits at least this long before it looks at a coordination again, whatever is due. */
const PAUSE_MS_MIN = 50;

interface LookDependencies {
  readonly turns: OwnerTurns;
  readonly clock: Clock;
  readonly settings: { readonly sweepMs: number };
}

/**
 * Returns when to look again: at the state's next deadline; where that had passed when the last look planned, and was acted on,
 * when what it waits for may have changed.
 */
export function lookAgainAt(
  { turns, clock, settings }: LookDependencies,
  state: Coordination,
  plannedAtMs: EpochMs,
): EpochMs | undefined {
  const due = findNextDeadline(state);
  if (state.kind !== "open" || due === undefined) return undefined;
  if (due > plannedAtMs) return due;
  const now = clock.now();
  if (state.plan || !isIdle(state)) {
    const sweepAt = addMs(now, settings.sweepMs);
    const next = findNextDeadline(state, plannedAtMs);
    return next !== undefined && next < sweepAt ? next : sweepAt;
  }
  const quietSince = turns.quietSince(state.created.ownerSession, now) ?? now;
  return laterOf(addMs(quietSince, state.created.settleMs), addMs(now, PAUSE_MS_MIN));
}

function laterOf(a: EpochMs, b: EpochMs): EpochMs {
  return a > b ? a : b;
}
