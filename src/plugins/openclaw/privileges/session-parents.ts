/** Owns: who spawned a session, by its key and by the host's own record of it: also for sessions that the ledger does not know. */
import { isChildSessionKey } from "../../../agents/coordination/contracts/host-agent-id.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { ParentOf } from "../../../agents/coordination/runtime/privileges/bounds-of-session.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { isDashboardSession, readSessionEntry } from "../host/session-entry.ts";

export interface SessionParents {
  /** Finds the session from which another one comes, whether an agent spawned it or a person opened it there. */
  readonly parentOf: ParentOf;
  /** True for a session that an agent spawned. Never throws: where the host cannot say it now, a session of the dashboard is a person's. */
  readonly isChild: (session: string) => boolean;
  /** True for a session that began after that time. Never throws: false where the host cannot say it. */
  readonly isYoungerThan: (session: string, atMs: number) => boolean;
}

const SESSIONS_MAX = 1_000;

/**
 * Creates the lookup of which session spawned a session, and whether it is a child at all, by the host's record. That
 * does not change, so what was found once is kept.
 */
export function createSessionParents({ runtime }: OpenClawPluginApi): SessionParents {
  const parents = createRecentMap<SessionKey>(SESSIONS_MAX);
  const spawned = createRecentMap<boolean>(SESSIONS_MAX);
  const readEntry = (session: string): SessionEntry | undefined =>
    readSessionEntry(runtime.agent.session, session);
  const isRecordedChild = (session: string): boolean => {
    try {
      const entry = spawned.get(session) === undefined ? readEntry(session) : undefined;
      if (entry) spawned.set(session, isNonEmptyText(entry.spawnedBy));
    } catch {
      // H2: a person's session goes on where the host cannot read its record. It is read again next time.
    }
    return spawned.get(session) ?? false;
  };
  return {
    parentOf: (session) => {
      const parent = parents.get(session) ?? readParent(readEntry(session), session);
      if (parent !== undefined) parents.set(session, parent);
      return parent;
    },
    isChild: (session) =>
      isChildSessionKey(session) || (isDashboardSession(session) && isRecordedChild(session)),
    isYoungerThan: (session, atMs) => {
      try {
        const createdAt = readEntry(session)?.createdAt;
        return typeof createdAt === "number" && createdAt > atMs;
      } catch {
        return false;
      }
    },
  };
}

interface SessionEntry {
  readonly spawnedBy?: unknown;
  readonly parentSessionKey?: unknown;
  readonly createdAt?: unknown;
}

function readParent(entry: SessionEntry | undefined, session: SessionKey): SessionKey | undefined {
  const parent = entry?.spawnedBy ?? entry?.parentSessionKey;
  return isNonEmptyText(parent) && parent !== session ? (parent as SessionKey) : undefined;
}

function isNonEmptyText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
