/** Owns: what the key of a session says: which agent it belongs to, and whether somebody spawned it. */

/** The agent that a session key names. */
export function agentOf(sessionKey: string): string {
  return /^agent:([^:]+):/u.exec(sessionKey)?.[1] ?? "main";
}

/** True for a session that somebody spawned, as its key says. */
export function isChildKey(session: string): boolean {
  return /:(?:subagent|acp):/u.test(session);
}

/** True for a session that the dashboard shows: one of a person, or a child whose spawn says `visible: true`. */
export function isShownKey(session: string): boolean {
  return session.includes(":dashboard:");
}
