/** Owns: when a coordination is looked at again. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import { findNextDeadline, hasNothingOpen } from "../../dispatch/effects/next-effects.ts";
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
 * Returns when the dispatcher is to look at a coordination again; `undefined` where it is not open or has no deadline.
 * That is its next deadline; where that had passed when the last look planned, it is when what the coordination waits
 * for may have changed.
 */
export function findNextLookTime(
  { turns, clock, settings }: LookDependencies,
  state: Coordination,
  plannedAtMs: EpochMs,
): EpochMs | undefined {
  const due = findNextDeadline(state);
  if (state.kind !== "open" || due === undefined) return undefined;
  if (due > plannedAtMs) return due;
  const now = clock.now();
  if (state.plan || !hasNothingOpen(state)) {
    const sweepAt = addMs(now, settings.sweepMs);
    const next = findNextDeadline(state, plannedAtMs);
    return next !== undefined && next < sweepAt ? next : sweepAt;
  }
  const quietSince = turns.quietSince(state.created.ownerSession, now) ?? now;
  return findLaterTime(addMs(quietSince, state.created.settleMs), addMs(now, PAUSE_MS_MIN));
}

function findLaterTime(a: EpochMs, b: EpochMs): EpochMs {
  return a > b ? a : b;
}
