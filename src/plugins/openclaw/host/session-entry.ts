/**
 * Owns: what is found out by the key of a session: which agent it belongs to, whether the dashboard shows it, and the host's entry
 * of it, where we note things of ours.
 */
import type { OpenClawPluginApi } from "./sdk.ts";

export type HostSessions = OpenClawPluginApi["runtime"]["agent"]["session"];

/** The agent that a session key names. */
export function agentOf(sessionKey: string): string {
  return /^agent:([^:]+):/u.exec(sessionKey)?.[1] ?? "main";
}

/** Returns the host's entry of a session as it is now; `undefined` where there is none. */
export function readSessionEntry(
  session: HostSessions,
  sessionKey: string,
  agentId = agentOf(sessionKey),
): ReturnType<HostSessions["getSessionEntry"]> {
  return session.getSessionEntry({ sessionKey, agentId, readConsistency: "latest" });
}

type Notes = { [key: string]: string | number | Notes };

/** Writes notes of ours to the host's entry of a session. Those of other names stay. */
export async function noteInEntry(session: HostSessions, sessionKey: string, notes: Notes): Promise<void> {
  await session.patchSessionEntry({
    sessionKey,
    agentId: agentOf(sessionKey),
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

/** True for a session that the dashboard shows: one of a person, or a child whose spawn says `visible: true`. */
export function isShownKey(session: string): boolean {
  return session.includes(":dashboard:");
}
