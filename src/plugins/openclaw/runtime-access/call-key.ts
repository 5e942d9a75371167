/** Owns: the key by which the hooks before and after a call know that it is the same one. */

/** Creates the key of a call of a session, from the ids that the host tells. */
export function createCallKey(
  sessionKey: string | undefined,
  runId: string | undefined,
  toolCallId: string | undefined,
): string {
  return JSON.stringify([sessionKey, runId, toolCallId]);
}
