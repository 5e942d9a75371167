/**
 * Owns: making a worktree, and the commit that it begins from: `HEAD`, or one on top of it that has the files which a plan merged
 * and nobody committed. The rest of what is not committed is not in it.
 */
import { AUTHOR } from "./keep-work.ts";
import type { GitCall, RunGit } from "./run-git.ts";
import { lookAtTrackable } from "./worktree-changes.ts";

export interface BaseToCheckOut {
  /** The folder that the repository is checked out in. */
  readonly repository: string;
  /** Where the worktree is to be. */
  readonly tree: string;
  /** The branch that is made for it. */
  readonly branch: string;
  readonly head: string;
  /** Files that were merged, from the top of the repository. */
  readonly paths: readonly string[];
}

/**
 * Makes a worktree with a branch of its own, checks out there its base: the head, with the files that other steps
 * merged committed on top. Returns the base's commit. @throws Error with what git says
 */
export async function checkOutBase(git: RunGit, toCheckOut: BaseToCheckOut): Promise<string> {
  const { repository, tree, branch, head } = toCheckOut;
  const add = ["worktree", "add", "--quiet", "--no-track", "--no-checkout", "-b", branch, tree, head];
  await readGitOutput(git, { folder: repository, args: add });
  // No agent has been there yet, so its `.git` can be trusted.
  const gitDir = await readGitOutput(git, { folder: tree, args: ["rev-parse", "--absolute-git-dir"] });
  const base = await commitBase(git, toCheckOut, gitDir);
  await readGitOutput(git, { folder: tree, gitDir, args: ["reset", "--hard", "--quiet", base] });
  return base;
}

/**
 * Commits merged files on top of `head` and returns the commit; `head` itself where nothing differs. Takes the files
 * as they are in the folder of the repository now, and only the index of the worktree for it.
 */
async function commitBase(
  git: RunGit,
  { repository: folder, head, paths }: BaseToCheckOut,
  gitDir: string,
): Promise<string> {
  const run = (args: readonly string[], input = ""): Promise<string> =>
    readGitOutput(git, { folder, gitDir, args, input });
  const files = await listCommittableFiles(folder, paths);
  if (files.length === 0) return head;
  await run(["read-tree", head]);
  const names = files.map((path) => `${path}\0`).join("");
  await run(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], names);
  const tree = await run(["write-tree"]);
  if (tree === (await run(["rev-parse", `${head}^{tree}`]))) return head;
  return run([...AUTHOR, "commit-tree", tree, "-p", head, "-m", "Work that steps of the plan merged before"]);
}

/**
 * Lists the paths that git can have, or where nothing is any more. A folder or a repository in their place is not
 * merged work.
 */
async function listCommittableFiles(folder: string, paths: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const path of new Set(paths)) {
    const { kind } = await lookAtTrackable(folder, path);
    if (kind === "file" || kind === "link" || kind === "absent") files.push(path);
  }
  return files;
}

/** Runs git and returns its output without the last newline. @throws Error with what git says */
async function readGitOutput(git: RunGit, call: GitCall): Promise<string> {
  const end = await git(call);
  if (end.kind === "failed") throw new Error(end.message);
  return end.output.toString("utf8").replace(/\n$/u, "");
}
