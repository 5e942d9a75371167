/**
 * Owns: what sessions are held to, as a ledger said it. The bounds on a step are fixed with its admission. Children at work outlive a
 * reload, and module instances of the plugin share nothing else, so this lies on `globalThis`.
 */
import type { SessionBounds } from "../../../agents/coordination/runtime/privileges/bounds-of-session.ts";
import { createRecent, type Recent } from "../host/recent.ts";

export interface RememberedBounds {
  readonly sessionBounds: SessionBounds;
  /** The ledger that says so. It may have a password. */
  readonly place: string;
}

const KEY = Symbol.for("openclaw-coordination.bounds-memory");
const SESSIONS_MAX = 10_000;

type Holder = { [KEY]?: Recent<RememberedBounds> | undefined };

/** Returns the memory of this process, by session. */
export function accessBoundsMemory(): Recent<RememberedBounds> {
  const holder = globalThis as Holder;
  return (holder[KEY] ??= createRecent<RememberedBounds>(SESSIONS_MAX));
}
