/**
 * Owns: which version of a resource each session has seen last. In memory only: what is forgotten, or was seen before a restart, is
 * not known, and then what the ledger says of changes decides.
 */
import type { EpochMs, SessionKey } from "../../contracts/ids.ts";
import { rememberNewest } from "../../std/remember-newest.ts";
import type { TextPlace } from "./write-call.ts";

const SESSIONS_MAX = 2_000;
const RESOURCES_MAX = 4_000;

/** The version of a resource that a session saw, when, and how much of it. */
export interface VersionSighting {
  readonly version: string;
  readonly atMs: EpochMs;
  /** The session has seen a part of it: all that comes before this place, if anything, and perhaps more. Absent: all of it. */
  readonly upTo?: TextPlace;
  /** Changes of others were merged into what the session wrote, and it has not seen them. */
  readonly lacksMerged?: boolean;
}

/** A version of a resource that a session saw, in the order of all that was seen. */
export interface SeenVersion extends VersionSighting {
  /** Counts all that was seen in this process: times may be equal. */
  readonly order: number;
}

export interface KnownVersions {
  seen(session: SessionKey, resource: string): SeenVersion | undefined;
  /** The last version that the session has seen all of. */
  seenWhole(session: SessionKey, resource: string): SeenVersion | undefined;
  /** `order`: where it was looked at before now, as `takeNextOrder` counted then. */
  see(session: SessionKey, resource: string, sight: VersionSighting, order?: number): void;
  /** Counts on: what is seen from now on comes later. */
  takeNextOrder(): number;
  /** The session did something that may have changed anything, such as a shell command. */
  touchAnything(session: SessionKey, atMs: EpochMs): void;
  touchedAtMs(session: SessionKey): EpochMs | undefined;
}

interface OfResource {
  readonly last: SeenVersion;
  readonly whole: SeenVersion | undefined;
}

interface OfSession {
  readonly resources: Map<string, OfResource>;
  touchedAtMs?: EpochMs;
}

/**
 * Returns an empty memory of which version of each resource each session has seen last; the oldest are forgotten
 * beyond a bound.
 */
export function createKnownVersions(): KnownVersions {
  const sessions = new Map<SessionKey, OfSession>();
  let lastOrder = 0;
  const takeNextOrder = (): number => (lastOrder += 1);
  const findSession = (session: SessionKey): OfSession => {
    const seenBySession = sessions.get(session) ?? { resources: new Map<string, OfResource>() };
    rememberNewest(sessions, session, seenBySession, SESSIONS_MAX);
    return seenBySession;
  };
  return {
    seen: (session, resource) => sessions.get(session)?.resources.get(resource)?.last,
    seenWhole: (session, resource) => sessions.get(session)?.resources.get(resource)?.whole,
    see: (session, resource, sight, order = takeNextOrder()) => {
      const { resources } = findSession(session);
      const last = { ...sight, order };
      const whole = sight.upTo ? resources.get(resource)?.whole : last;
      rememberNewest(resources, resource, { last, whole }, RESOURCES_MAX);
    },
    takeNextOrder,
    touchAnything: (session, atMs) => {
      findSession(session).touchedAtMs = atMs;
    },
    touchedAtMs: (session) => sessions.get(session)?.touchedAtMs,
  };
}
