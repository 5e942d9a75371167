/** Owns: the fields of what is recorded about the worktrees of attempts. */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { coordinationIdSchema, stepIdSchema } from "./ids.ts";

/** How the attempts at a step are kept apart from other work. */
export const isolateSchema = z.enum(["worktree"]);
/** `worktree`: each attempt works in a git worktree of its own. */
export type StepIsolation = z.infer<typeof isolateSchema>;

/** The schema of the attempt that a worktree is made for. */
export const worktreeAttemptSchema = z.object({
  coordinationId: coordinationIdSchema,
  stepId: stepIdSchema,
  attempt: z.int().min(1),
});
/** The attempt that a worktree is made for. */
export type WorktreeAttempt = z.infer<typeof worktreeAttemptSchema>;

/** The schema of the note beside a worktree, by which it is found and removed after a crash. */
export const worktreeNoteSchema = z.object({
  repository: z.string().min(1),
  attempt: worktreeAttemptSchema,
  gitDir: z.string().min(1).optional(),
  programs: z.string().optional(),
  filters: z.string().optional(),
});

/** The schema of an absolute path. */
export const absolutePath = z.string().min(1).max(BOUNDS.resourceCharsMax);
/** The schema of a git object id. */
export const commitId = z
  .string()
  .max(BOUNDS.commitIdCharsMax)
  .regex(/^[0-9a-f]{40,64}$/u);

const version = z.string().min(1).max(BOUNDS.versionCharsMax);

/** One file that is merged back: what it was in the folder and what it becomes. */
export const mergedFileSchema = z.object({
  path: absolutePath,
  before: version,
  after: version,
});
/** One file that is merged back. */
export type MergedBack = z.infer<typeof mergedFileSchema>;

/** Files that the attempts of one plan merged into the folder of a repository. */
export interface MergedPaths {
  /** The folder that the repository is checked out in. */
  readonly repository: string;
  /** From the top of the repository, with `/`. */
  readonly paths: readonly string[];
}

/** Why a file of a worktree was not merged back. */
export const mergeObstacleSchema = z.enum([
  /** Both changed the same lines, or one deleted what the other changed. */
  "both_changed",
  /** Another step holds it. */
  "held",
  /** It is no plain file or only a pointer of Git LFS, or its place is taken by something else. */
  "not_a_file",
  /** Somebody changed it while it was being merged. */
  "changed_meanwhile",
  "not_writable",
]);
/** Why a file of a worktree was not merged back. */
export type MergeBackObstacle = z.infer<typeof mergeObstacleSchema>;

/** A file of a worktree that people have to look after. */
export const unmergedFileSchema = z.object({ path: absolutePath, because: mergeObstacleSchema });
/** A file of a worktree that people have to look after. */
export type UnmergedFile = z.infer<typeof unmergedFileSchema>;
