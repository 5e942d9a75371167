/**
 * Owns: what sessions are held to, as a ledger said it. The bounds on a step are fixed with its admission. Children at work outlive a
 * reload.
 */
import type { SessionBounds } from "../../../agents/coordination/runtime/privileges/bounds-of-session.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import { shareInProcess } from "../host/share-in-process.ts";

export interface RememberedBounds {
  readonly sessionBounds: SessionBounds;
  /** The ledger that says so. It may have a password. */
  readonly place: string;
}

const SESSIONS_MAX = 10_000;

/** Returns the memory of this process, by session. */
export const accessBoundsMemory = shareInProcess("bounds-memory", () =>
  createRecentMap<RememberedBounds>(SESSIONS_MAX),
);
