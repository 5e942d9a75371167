/**
 * Owns: which sessions are in the middle of a turn, as far as this process has seen. It is a hint that delays the end of
 * a coordination, never a fact: after a restart no turn is known and quiet time alone decides.
 */
import { addMs, type EpochMs, type SessionKey } from "../../contracts/ids.ts";

/** A turn whose end was never seen stops counting after this. */
const TURN_MS_MAX = 6 * 3_600_000;
const SESSIONS_MAX = 10_000;

export interface OwnerTurns {
  began(session: SessionKey, runId: string, now: EpochMs): void;
  ended(session: SessionKey, runId: string, now: EpochMs): void;
  /** Since when the session has been quiet; `undefined` while a turn is under way, 0 when none was seen. */
  quietSince(session: SessionKey, now: EpochMs): EpochMs | undefined;
}

interface Turns {
  readonly active: Map<string, EpochMs>;
  endedAtMs: EpochMs;
}

export function createOwnerTurns(): OwnerTurns {
  const sessions = new Map<SessionKey, Turns>();
  const turnsOf = (session: SessionKey): Turns => {
    const turns = sessions.get(session) ?? { active: new Map<string, EpochMs>(), endedAtMs: 0 as EpochMs };
    sessions.delete(session);
    sessions.set(session, turns);
    const [oldest] = sessions.keys();
    if (sessions.size > SESSIONS_MAX && oldest !== undefined) sessions.delete(oldest);
    return turns;
  };
  return {
    began: (session, runId, now) => {
      turnsOf(session).active.set(runId, now);
    },
    ended: (session, runId, now) => {
      const turns = turnsOf(session);
      turns.active.delete(runId);
      turns.endedAtMs = now;
    },
    quietSince: (session, now) => {
      const turns = sessions.get(session);
      if (!turns) return 0 as EpochMs;
      for (const [runId, beganAtMs] of turns.active) {
        if (addMs(beganAtMs, TURN_MS_MAX) < now) turns.active.delete(runId);
      }
      return turns.active.size > 0 ? undefined : turns.endedAtMs;
    },
  };
}
