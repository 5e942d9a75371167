/** Owns: which agent a session belongs to. */

/** The agent that a session key names. */
export function agentOf(sessionKey: string): string {
  return /^agent:([^:]+):/u.exec(sessionKey)?.[1] ?? "main";
}
