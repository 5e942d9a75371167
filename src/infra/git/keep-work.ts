/** Owns: committing what an agent left in its worktree to a branch, as far as git can, and saying what is not on it. */
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { KeptWork } from "../../agents/coordination/ports/worktrees.ts";
import { findForeignPrograms, readSubmodules } from "./foreign-programs.ts";
import type { GitEnd, RunGit } from "./run-git.ts";
import type { WorktreeOnDisk } from "./worktree-changes.ts";

/** The author of commits of ours. */
export const AUTHOR = ["-c", "user.name=openclaw-coordination", "-c", "user.email=coordination@localhost"];
/** Submodules by their commit only: to look into them, git would run what their own settings say. */
const STATUS = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty"];
/** Names in one sentence. */
const NAMES_MAX = 5;

/**
 * Commits the files of a worktree and points its branch there, unless git would run foreign programs; the folder
 * stays. Returns branch and folder, with the problem where not all of the work is on the branch.
 */
export async function keepWork(git: RunGit, worktree: WorktreeOnDisk, branch: string): Promise<KeptWork> {
  const { tree: folder, gitDir } = worktree;
  const run = (...args: string[]): Promise<GitEnd> => git({ folder, gitDir, args });
  const foreign = await findForeignPrograms(git, worktree);
  if (foreign) return { branch, folder, problem: foreign.message };
  const added = await run("add", "--all", "--ignore-errors");
  // It also fails where there is nothing to commit.
  const committed = await run(...AUTHOR, "commit", "--quiet", "--no-verify", "--message", "Work of a step");
  // The agent may have left its branch. Unlike `git branch`, this works during a rebase.
  const set = await run("update-ref", `refs/heads/${branch}`, "HEAD");
  const problem =
    findFirstFailureMessage(added, set) ??
    describeUncommittedFiles(await run(...STATUS), committed) ??
    (await describeRebase(gitDir)) ??
    (await describeRepositoriesInside(run, folder));
  return { branch, folder, ...(problem !== undefined && { problem }) };
}

/** Returns the message of the first of these git commands that failed; `undefined` where none did. */
function findFirstFailureMessage(...ends: readonly GitEnd[]): string | undefined {
  return ends.flatMap((end) => (end.kind === "failed" ? [end.message] : []))[0];
}

/** Returns why some files are not committed; `undefined` where all are. */
function describeUncommittedFiles(status: GitEnd, committed: GitEnd): string | undefined {
  if (status.kind === "failed") return status.message;
  if (status.output.length === 0) return undefined;
  return findFirstFailureMessage(committed) ?? "some files could not be committed as they are";
}

/**
 * Returns a sentence where a rebase is under way, because the commits that it has not taken over yet are in no folder;
 * `undefined` otherwise.
 */
async function describeRebase(gitDir: string): Promise<string | undefined> {
  for (const name of ["rebase-merge", "rebase-apply"])
    if (await lstat(join(gitDir, name)).catch(() => undefined)) return "a rebase is under way there";
  return undefined;
}

/**
 * Returns a sentence that names up to five of the repositories inside that have files, or says why git failed. A
 * commit has only the ids of their commits, and a new worktree none of their files.
 */
async function describeRepositoriesInside(
  run: (...args: string[]) => Promise<GitEnd>,
  folder: string,
): Promise<string | undefined> {
  const listed = await run("ls-tree", "-r", "-z", "--full-tree", "HEAD");
  if (listed.kind === "failed") return listed.message;
  const names: string[] = [];
  for (const path of readSubmodules(listed.output)) {
    const files = await readdir(join(folder, path)).catch(() => []);
    if (files.length > 0) names.push(JSON.stringify(path));
  }
  if (names.length === 0) return undefined;
  const others = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return `a repository of its own is in ${names.slice(0, NAMES_MAX).join(", ")}${others}`;
}
