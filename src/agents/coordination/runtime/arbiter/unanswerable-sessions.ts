/** Owns: for which sessions nobody could be asked lately. */
import type { EpochMs, SessionKey } from "../../contracts/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import { rememberNewest } from "../../std/remember-newest.ts";

const SESSIONS_MAX = 1_000;
/** Somebody may have come since. */
const ASKED_AGAIN_MS = 10 * 60_000;

export interface UnanswerableSessions {
  has(session: SessionKey): boolean;
  add(session: SessionKey): void;
}

/** Returns an empty memory of the sessions for which nobody could be asked; each is forgotten after ten minutes. */
export function createUnanswerableSessions(clock: Clock): UnanswerableSessions {
  const askedAtMs = new Map<SessionKey, EpochMs>();
  return {
    has: (session) => {
      const atMs = askedAtMs.get(session);
      return atMs !== undefined && clock.now() < atMs + ASKED_AGAIN_MS;
    },
    add: (session) => {
      rememberNewest(askedAtMs, session, clock.now(), SESSIONS_MAX);
    },
  };
}
