/** Owns: the name of the worktree of an attempt. It follows from the attempt alone, and is safe as a folder and as a branch. */
import { createIdempotencyKey } from "../../contracts/ids.ts";
import type { WorktreeAttempt } from "../../contracts/worktree-fields.ts";
import type { PlanDependencies } from "../environment/runtime-dependencies.ts";

const READABLE_CHARS_MAX = 32;
const HASH_CHARS = 16;

/** Returns the step and the attempt for people, and a part of the hash of the attempt's key, which nothing else has. */
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
