/**
 * Owns: the name of the worktree of an attempt, and finding its folder by it. The name follows from the attempt alone, and is safe
 * as a folder and as a branch.
 */
import { createIdempotencyKey } from "../../contracts/ids.ts";
import type { WorktreeAttempt } from "../../contracts/worktree-fields.ts";
import { formatWorktreeKey } from "../../ledger/evolve-worktrees.ts";
import type { KnownCoordination, Step } from "../../ledger/state.ts";
import type { PlanDependencies } from "../environment/runtime-dependencies.ts";

const READABLE_CHARS_MAX = 32;
const HASH_CHARS = 16;

/**
 * Returns the folder name of an attempt's worktree: the step and attempt, for people, and a hash that makes it unique.
 */
export function nameWorktree(
  { refOf }: Pick<PlanDependencies, "refOf">,
  { coordinationId, stepId, attempt }: WorktreeAttempt,
): string {
  const readable = stepId
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, "-")
    .slice(0, READABLE_CHARS_MAX);
  const { sha256 } = refOf(createIdempotencyKey(coordinationId, stepId, attempt));
  return `${readable.replaceAll(/^-+|-+$/gu, "") || "step"}-${attempt}-${sha256.slice(0, HASH_CHARS)}`;
}

/**
 * Returns the folder of the worktree that a step's newest attempt works in, and the repository that it will be merged
 * into; `undefined` where none is open.
 */
export function findWorktreeOfStep(
  dependencies: Pick<PlanDependencies, "refOf">,
  state: KnownCoordination,
  { spec: { stepId }, phase: { attempt } }: Step,
): { readonly tree: string; readonly repository: string } | undefined {
  if (state.kind !== "open") return undefined;
  const opened = state.worktrees.get(formatWorktreeKey(stepId, attempt))?.opened;
  if (!opened) return undefined;
  const { folder, repository } = opened;
  const name = nameWorktree(dependencies, { coordinationId: state.coordinationId, stepId, attempt });
  // The agent's own folder may be below the top of the worktree.
  const at = folder.indexOf(name);
  return at < 0 ? undefined : { tree: folder.slice(0, at + name.length), repository };
}
