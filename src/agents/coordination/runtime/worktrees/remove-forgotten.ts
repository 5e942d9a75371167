/**
 * Owns: looking at a start for worktrees that the log calls gone and that are on the disk all the same. Their process lost its plan
 * while git was at work and died before it could remove them, or they could not be removed.
 */
import { describeError } from "../../std/describe-error.ts";
import { quoteShellWord } from "../../std/shell-arguments.ts";
import type { WorktreeOnMachine } from "../../ports/worktrees.ts";
import { removeForgottenWorktree } from "../attempts/open-worktree.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/**
 * Removes the worktrees on this machine that the log calls gone, and warns of those that the ledger does not know. It
 * does not throw: whatever it cannot find out or remove stays until the next start.
 */
export async function removeForgottenWorktrees(
  dependencies: Pick<RuntimeDependencies, "runs" | "worktrees" | "worktreeTurns" | "logger">,
  stopping: AbortSignal,
): Promise<void> {
  const { worktrees, worktreeTurns, logger } = dependencies;
  try {
    for (const worktree of await worktrees.list()) {
      if (stopping.aborted) return;
      const { name } = worktree;
      await worktreeTurns.run(name, () => removeForgottenWorktree(dependencies, worktree, name));
      await warnOfUnknownWorktree(dependencies, worktree);
    }
  } catch (error) {
    logger.warn({}, `could not look for worktrees that are left over: ${describeError(error)}`);
  }
}

/**
 * Logs how to remove a worktree whose coordination is not in the ledger, which may be another one or have pruned it;
 * forgets one whose folder is not there.
 */
async function warnOfUnknownWorktree(
  { runs, worktrees, logger }: Pick<RuntimeDependencies, "runs" | "worktrees" | "logger">,
  { coordinationId, stepId, name, repository, folder, hasFolder, branch }: WorktreeOnMachine,
): Promise<void> {
  const isUnknown = await runs.findOnDisk(coordinationId, ({ kind }) => kind === "unopened" || undefined);
  if (!isUnknown) return;
  // Somebody has removed it, or another process has not made it yet.
  if (!hasFolder) return worktrees.forget(name);
  const git = `git -C ${quoteShellWord(repository)}`;
  logger.warn(
    { runId: coordinationId, stepId },
    `the coordination of a worktree is not in the ledger, so nothing removes it: if nobody needs it, run \`${git} worktree remove --force ${quoteShellWord(folder)}\` and then \`${git} branch -D ${quoteShellWord(branch)}\``,
  );
}
