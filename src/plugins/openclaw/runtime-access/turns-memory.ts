/**
 * Owns: the turns of sessions that are under way in this process. They outlive a reload, and their beginning is told
 * only once.
 */
import type { EpochMs, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { createOwnerTurns } from "../../../agents/coordination/runtime/environment/owner-turns.ts";
import type { HookContext } from "../host/sdk.ts";
import { shareInProcess } from "../host/share-in-process.ts";

/** Returns the turns of this process. */
export const accessOwnerTurns = shareInProcess("owner-turns", createOwnerTurns);

/**
 * Notes in this process's memory of turns that a session's run has ended, also while no ledger is open, because it is
 * told only once.
 */
export function noteTurnEnd({ sessionKey, runId }: HookContext<"agent_end">): void {
  if (sessionKey && runId) accessOwnerTurns().ended(sessionKey as SessionKey, runId, Date.now() as EpochMs);
}
