/** Owns: whether a folder is in a repository that a worktree can be made of, and from which commit. */
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { RunGit } from "./run-git.ts";

/** Files of one checkout; and their bytes, as far as git knows them. */
const FILES_MAX = 200_000;
const BYTES_MAX = 4_000_000_000;

interface PlaceInRepository {
  /** Where the repository is checked out. */
  readonly top: string;
  /** Where the folder is below it; empty at the top. */
  readonly below: string;
  /** The folder of git's own files, which all checkouts of the repository share. */
  readonly gitDir: string;
}

export interface UsableRepository extends PlaceInRepository {
  readonly kind: "usable";
  /** The commit that is checked out. */
  readonly head: string;
}

export type RepositoryLook = UsableRepository | { readonly kind: "unusable"; readonly message: string };

/**
 * Returns the repository that a folder is in and the commit to begin a worktree from, or the reason why no worktree
 * can be made there. Changes nothing.
 */
export async function lookAtRepository(git: RunGit, folder: string): Promise<RepositoryLook> {
  if (!(await isFolder(folder))) return createUnusable(`the folder ${folder} is not there`);
  const inside = await git({ folder, args: ["rev-parse", "--is-inside-work-tree"] });
  if (inside.kind === "failed")
    return createUnusable(
      /not a git repository/u.test(inside.message)
        ? `the folder ${folder} is in no git repository; run git init and commit there`
        : `the folder ${folder} cannot be used: ${inside.message}`,
    );
  if (inside.output.toString("utf8").trim() !== "true")
    return createUnusable(`the repository of ${folder} is bare, or the folder is inside of .git`);
  const place = await readPlaceInRepository(git, folder);
  if (!place) return createUnusable(`git does not say where the repository of ${folder} is`);
  const head = await git({ folder, args: ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"] });
  if (head.kind === "failed")
    return createUnusable(`the repository of ${folder} has no commit yet; commit something there first`);
  const excess = await describeExcess(git, folder);
  if (excess !== undefined) return createUnusable(excess);
  const commit = head.output.toString("utf8").trim();
  return { kind: "usable", ...place, head: commit };
}

/**
 * Asks git for the top of the checkout, the folder's path below it and git's own folder; `undefined` where one is not
 * told. Asks one by one, because the name of a folder may have a newline.
 */
async function readPlaceInRepository(git: RunGit, folder: string): Promise<PlaceInRepository | undefined> {
  const top = await readGitAnswer(git, folder, ["rev-parse", "--show-toplevel"]);
  const below = await readGitAnswer(git, folder, ["rev-parse", "--show-prefix"]);
  const gitDir = top === undefined ? undefined : await readGitDir(git, top);
  if (top === undefined || below === undefined || gitDir === undefined) return undefined;
  return { top: await realpath(top), below: below.replace(/\/$/u, ""), gitDir };
}

/**
 * Returns the path of git's own folder, which all checkouts of the repository share; `undefined` where git does not
 * name one. Without an option for an absolute path: git before 2.31 repeats that option in its answer, and does not
 * fail.
 */
export async function readGitDir(git: RunGit, top: string): Promise<string | undefined> {
  const named = await readGitAnswer(git, top, ["rev-parse", "--git-common-dir"]);
  return named === undefined ? undefined : realpath(resolve(top, named)).catch(() => undefined);
}

/** Returns what git answers, without the last newline; `undefined` where it fails. */
async function readGitAnswer(
  git: RunGit,
  folder: string,
  args: readonly string[],
): Promise<string | undefined> {
  const answer = await git({ folder, args });
  return answer.kind === "done" ? answer.output.toString("utf8").replace(/\n$/u, "") : undefined;
}

/**
 * Returns a sentence where a checkout is too large, because one for every attempt would fill the disk, or where git
 * does not tell; `undefined` otherwise.
 */
async function describeExcess(git: RunGit, folder: string): Promise<string | undefined> {
  const tree = await git({ folder, args: ["ls-tree", "-r", "-l", "-z", "--full-tree", "HEAD"] });
  if (tree.kind === "failed") return tree.message;
  // Each entry ends with a NUL.
  const entries = tree.output.toString("latin1").split("\0").slice(0, -1);
  const bytes = entries.reduce(
    (sum, entry) => sum + (Number(/^\S+ \S+ \S+ +(\d+)\t/u.exec(entry)?.[1]) || 0),
    0,
  );
  return entries.length > FILES_MAX || bytes > BYTES_MAX
    ? `the repository of ${folder} has ${entries.length} files with ${bytes} bytes, too many to check out for every attempt (at most ${FILES_MAX} files and ${BYTES_MAX} bytes)`
    : undefined;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function createUnusable(message: string): RepositoryLook {
  return { kind: "unusable", message };
}
