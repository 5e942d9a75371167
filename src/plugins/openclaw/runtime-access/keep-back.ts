/**
 * Owns: keeping back everything that a child says before the ledger has why. Where a child wrote is known when its call has ended,
 * and what its model says next may come sooner; so its words wait for the record from before the call on.
 *
 * H3 once the record is made, the ledger says what is kept back.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { accessGateMemory } from "./gate-memory.ts";
import { findRuntime, type SharedRuntime } from "./shared-runtime.ts";

/**
 * Makes the gate of a child's session strict, so that all that it says from here on is kept from its parent; does
 * nothing for a session without a gate.
 */
export function keepEverythingBack(session: string): void {
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (gatedSession) gated.set(session, { ...gatedSession, isStrict: true });
}

/**
 * Notes a tool call that may change something, until whose end all words of the child are kept back. It does so only
 * for a child whose result is held where it changes something outside of the folder asked.
 */
export function beginChangingCall(runtime: SharedRuntime, session: string, callKey: string): void {
  const watched = runtime.children.get(session)?.watched;
  if (!watched?.isHeldOnMismatch || watched.asked.folder === undefined) return;
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (!gatedSession) return;
  gated.set(session, { ...gatedSession, changes: new Set(gatedSession.changes).add(callKey) });
}

/**
 * Forgets a tool call that may have changed something, so that the child's words pass again; where the ledger now
 * holds the child, all of its words are kept back instead.
 */
export async function endChangingCall(
  runtime: SharedRuntime,
  session: string,
  callKey: string,
): Promise<void> {
  const { gated } = accessGateMemory();
  if (!gated.get(session)?.changes?.has(callKey)) return;
  const { heldSessions } = await runtime.coordinator();
  const recorded = await heldSessions.gated(session as SessionKey);
  if (recorded?.isStrict) keepEverythingBack(session);
  // Another call may have begun or ended meanwhile.
  const newest = gated.get(session);
  if (!newest) return;
  const changes = new Set(newest.changes);
  changes.delete(callKey);
  gated.set(session, { ...newest, changes });
}

/**
 * Delays the end of a child's run until `work` settles, which says whether it ran as it was asked; does nothing for a
 * session that is no child known to the runtime.
 */
export function holdChildEndUntil(session: string, work: Promise<unknown>): void {
  if (findRuntime()?.children.get(session)) accessGateMemory().texts.following(session as SessionKey, work);
}
