/** Owns: removing the worktree of an attempt that is over. May be cut off at any line and done again. */
import { isWorktreeOver, type RemoveWorktree } from "../../dispatch/worktree-effects.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { nameWorktree } from "../attempts/worktree-name.ts";

export async function removeWorktree(
  dependencies: RuntimeDependencies,
  { coordinationId }: OpenCoordination,
  { stepId, attempt }: RemoveWorktree,
): Promise<void> {
  const { state, basis } = await dependencies.runs.stateOnBasis(coordinationId);
  if (state.kind !== "open" || !isWorktreeOver(state, { stepId, attempt })) return;
  // D1: nothing is removed for an end that fails to reach the disk: the work may still be to be merged.
  await dependencies.runs.settled(coordinationId);
  if (basis.isVoid) return;
  const left = await dependencies.worktrees.remove(
    nameWorktree(dependencies, { coordinationId, stepId, attempt }),
  );
  if (left !== undefined) dependencies.logger.warn({ runId: coordinationId, stepId }, left);
  await dependencies.runs.submit(coordinationId, [
    { type: "removeWorktree", stepId, attempt, outcome: left === undefined ? "removed" : "left" },
  ]);
}
