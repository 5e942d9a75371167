/**
 * Owns: looking at a start for worktrees that the log calls gone and that are on the disk all the same. Their process lost its plan
 * while git was at work and died before it could remove them, or they could not be removed.
 */
import { describeError } from "../../std/describe-error.ts";
import { removeIfForgotten } from "../attempts/open-worktree.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/** It does not throw: whatever it cannot find out or remove stays until the next start. */
export async function removeForgottenWorktrees(
  dependencies: Pick<RuntimeDependencies, "runs" | "worktrees" | "worktreeTurns" | "logger">,
  stopping: AbortSignal,
): Promise<void> {
  const { worktrees, worktreeTurns, logger } = dependencies;
  try {
    for (const { name, ...attempt } of await worktrees.list()) {
      if (stopping.aborted) return;
      await worktreeTurns.run(name, () => removeIfForgotten(dependencies, attempt, name));
    }
  } catch (error) {
    logger.warn({}, `could not look for worktrees that are left over: ${describeError(error)}`);
  }
}
