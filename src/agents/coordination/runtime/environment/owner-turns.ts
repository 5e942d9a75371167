/**
 * Owns: which sessions, owners of coordinations and spawned children, are in the middle of a turn, as far as this
 * process has seen. It delays the end of a coordination, and that of a child whose first turn is over, and is never
 * recorded: after a restart no turn is known, and quiet time alone decides.
 */
import { addMs, type EpochMs, type SessionKey } from "../../contracts/ids.ts";
import { rememberNewest } from "../../std/remember-newest.ts";

/** A turn whose end was never seen stops counting after this. */
const TURN_MS_MAX = 6 * 3_600_000;
const SESSIONS_MAX = 10_000;

export interface OwnerTurns {
  began(session: SessionKey, runId: string, now: EpochMs): void;
  ended(session: SessionKey, runId: string, now: EpochMs): void;
  /** Since when the session has been quiet; `undefined` while a turn is under way, 0 when none was seen. */
  quietSince(session: SessionKey, now: EpochMs): EpochMs | undefined;
  /** True when a turn of the session is under way that had begun by `atMs`. */
  isUnderWaySince(session: SessionKey, atMs: EpochMs, now: EpochMs): boolean;
}

/** A turn of a session, named by the host's run, and whether it is over. */
interface OwnerTurn {
  readonly runId: string;
  readonly beganAtMs: EpochMs;
  /** The host may prompt the agent several times in one run, also after it heard that a try of the run had ended. */
  readonly promptedAtMs: EpochMs;
  readonly isOver: boolean;
}

/** The newest turn of a session, and when a turn of it last ended. */
interface SessionTurns {
  /** A session has one turn at a time: the newest one ends those before, also where their end was not heard. */
  newest: OwnerTurn | undefined;
  endedAtMs: EpochMs;
}

/** Creates the memory of which sessions are in the middle of a turn, and since when the others are quiet. */
export function createOwnerTurns(): OwnerTurns {
  const sessions = new Map<SessionKey, SessionTurns>();
  const turnsOf = (session: SessionKey): SessionTurns => {
    const turns: SessionTurns = sessions.get(session) ?? { newest: undefined, endedAtMs: 0 as EpochMs };
    rememberNewest(sessions, session, turns, SESSIONS_MAX);
    return turns;
  };
  const findActive = (session: SessionKey, now: EpochMs): OwnerTurn | undefined => {
    const newest = sessions.get(session)?.newest;
    return newest && !newest.isOver && addMs(newest.promptedAtMs, TURN_MS_MAX) >= now ? newest : undefined;
  };
  return {
    began: (session, runId, now) => {
      const turns = turnsOf(session);
      const beganAtMs = turns.newest?.runId === runId ? turns.newest.beganAtMs : now;
      turns.newest = { runId, beganAtMs, promptedAtMs: now, isOver: false };
    },
    ended: (session, runId, now) => {
      const turns = turnsOf(session);
      if (turns.newest?.runId === runId) turns.newest = { ...turns.newest, isOver: true };
      turns.endedAtMs = now;
    },
    quietSince: (session, now) =>
      findActive(session, now) ? undefined : (sessions.get(session)?.endedAtMs ?? (0 as EpochMs)),
    isUnderWaySince: (session, atMs, now) => {
      const active = findActive(session, now);
      return active !== undefined && active.beganAtMs <= atMs;
    },
  };
}
