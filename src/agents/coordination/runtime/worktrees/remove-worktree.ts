/** Owns: removing the worktree of an attempt that is over. May be cut off at any line and done again. */
import type { WorktreeAttempt } from "../../contracts/worktree-fields.ts";
import { isWorktreeOver, type RemoveWorktree } from "../../dispatch/worktree-effects.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { nameWorktree } from "../attempts/worktree-name.ts";

/**
 * Removes the worktree of an attempt once earlier work on that worktree has ended; does nothing unless the attempt is
 * over on disk.
 */
export function removeWorktree(
  dependencies: RuntimeDependencies,
  { coordinationId }: OpenCoordination,
  { stepId, attempt }: RemoveWorktree,
): Promise<void> {
  const about = { coordinationId, stepId, attempt };
  const name = nameWorktree(dependencies, about);
  return dependencies.worktreeTurns.run(name, () => removeWorktreeIfOver(dependencies, about, name));
}

/** Removes the worktree of an attempt that is over, and records whether it is removed or left. */
async function removeWorktreeIfOver(
  dependencies: RuntimeDependencies,
  { coordinationId, stepId, attempt }: WorktreeAttempt,
  name: string,
): Promise<void> {
  // For an end that fails to reach the disk nothing is removed: the work may still be to be merged.
  const isOver = await dependencies.runs.findOnDisk(coordinationId, (state) =>
    state.kind === "open" && isWorktreeOver(state, { stepId, attempt }) ? true : undefined,
  );
  if (!isOver) return;
  const left = await dependencies.worktrees.remove(name);
  if (left !== undefined) dependencies.logger.warn({ runId: coordinationId, stepId }, left);
  await dependencies.runs.submit(coordinationId, [
    { type: "removeWorktree", stepId, attempt, outcome: left === undefined ? "removed" : "left" },
  ]);
}
