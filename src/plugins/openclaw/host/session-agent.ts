/** Owns: what the key of a session says: which agent it belongs to, and whether somebody spawned it. */

/** The agent that a session key names. */
export function agentOf(sessionKey: string): string {
  return /^agent:([^:]+):/u.exec(sessionKey)?.[1] ?? "main";
}

/** True for a session that somebody spawned, as its key says. */
export function isChildSession(session: string): boolean {
  return /:(?:subagent|acp):/u.test(session);
}
