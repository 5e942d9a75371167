/** Owns: removing the worktree of an attempt that is over. May be cut off at any line and done again. */
import type { RemoveWorktree } from "../../dispatch/worktree-effects.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { RuntimeParts } from "../environment/runtime-parts.ts";
import { nameWorktree } from "../attempts/worktree-name.ts";

export async function removeWorktree(
  parts: RuntimeParts,
  { coordinationId }: OpenCoordination,
  { stepId, attempt }: RemoveWorktree,
): Promise<void> {
  // D1: nothing is removed for an end that may still fail to reach the disk.
  await parts.runs.settled(coordinationId);
  const left = await parts.worktrees.remove(nameWorktree(parts, { coordinationId, stepId, attempt }));
  if (left !== undefined) parts.logger.warn({ runId: coordinationId, stepId }, left);
  await parts.runs.submit(coordinationId, [
    { type: "removeWorktree", stepId, attempt, outcome: left === undefined ? "removed" : "left" },
  ]);
}
