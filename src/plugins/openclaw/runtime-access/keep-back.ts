/**
 * Owns: keeping back everything that a child says before the ledger has why. Where a child wrote is known when its call has ended,
 * and what its model says next may come sooner; so its words wait for the record from before the call on.
 *
 * H3 once the record is made, the ledger says what is kept back.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { accessGateMemory } from "./gate-memory.ts";
import { findRuntime, type SharedRuntime } from "./shared-runtime.ts";

/** From here on whatever the child says is kept from its parent, as it is of a child whose results are checked. */
export function keepEverythingBack(session: string): void {
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (gatedSession) gated.set(session, { ...gatedSession, isStrict: true });
}

/** Notes a call that may change something, of a child whose result is held where that lies outside of the folder asked. */
export function beginChange(runtime: SharedRuntime, session: string, callKey: string): void {
  const watched = runtime.children.get(session)?.watched;
  if (!watched?.isHeldOnMismatch || watched.asked.folder === undefined) return;
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (!gatedSession) return;
  gated.set(session, { ...gatedSession, changes: new Set(gatedSession.changes).add(callKey) });
}

/** Ends the call: what it changed is recorded. */
export async function endChange(runtime: SharedRuntime, session: string, callKey: string): Promise<void> {
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

/** Has the end of a child wait for work that says whether it ran as it was asked. */
export function holdEndUntil(session: string, work: Promise<unknown>): void {
  if (findRuntime()?.children.get(session)) accessGateMemory().texts.following(session as SessionKey, work);
}
