/**
 * Owns: what is found out by the key of a session: which agent it belongs to, whether the dashboard shows it, and the host's entry
 * of it, where we note things of ours.
 */
import type { OpenClawPluginApi } from "./sdk.ts";

export type HostSessions = OpenClawPluginApi["runtime"]["agent"]["session"];

/** Returns the id of the agent in a session key; `main` where the key names none. */
export function readSessionAgent(sessionKey: string): string {
  return /^agent:([^:]+):/u.exec(sessionKey)?.[1] ?? "main";
}

/**
 * Returns the host's entry of a session as it is stored now, for the agent in the key where none is given; `undefined`
 * where there is none.
 */
export function readSessionEntry(
  session: HostSessions,
  sessionKey: string,
  agentId = readSessionAgent(sessionKey),
): ReturnType<HostSessions["getSessionEntry"]> {
  return session.getSessionEntry({ sessionKey, agentId, readConsistency: "latest" });
}

/** Notes of this plugin in the host's entry of a session. */
type EntryNotes = { [key: string]: string | number | EntryNotes };

/** Merges the notes into the plugin's part of the host's entry of a session; notes of other names stay. */
export async function writeSessionNotes(
  session: HostSessions,
  sessionKey: string,
  notes: EntryNotes,
): Promise<void> {
  await session.patchSessionEntry({
    sessionKey,
    agentId: readSessionAgent(sessionKey),
    preserveActivity: true,
    // The host merges the result shallowly: keep what else is there.
    update: ({ pluginExtensions }) => ({
      pluginExtensions: {
        ...pluginExtensions,
        coordination: { ...pluginExtensions?.["coordination"], ...notes },
      },
    }),
  });
}

/**
 * True of the key of a session that the dashboard shows: one of a person, or a child whose spawn says `visible: true`.
 */
export function isDashboardSession(session: string): boolean {
  return session.includes(":dashboard:");
}
