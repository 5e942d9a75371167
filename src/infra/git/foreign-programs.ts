/**
 * Owns: whether a repository inside of a worktree names programs of its own. Git would look into it, and run what its settings say:
 * an agent that may only write files could have anything run that way.
 */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { GitPlace, RunGit } from "./run-git.ts";

/** Settings that name programs, or other files with settings. The rest is overruled wherever git is run. */
const NAMING_PROGRAMS = /^(?:filter\.|include\.|includeif\.|extensions\.worktreeconfig$)/iu;
/** Stands for bytes that are no UTF-8: the folder of that name is another one. */
const REPLACEMENT = "\ufffd";
/** Repositories within one another. */
const DEPTH_MAX = 10;

/**
 * Returns a sentence without its full stop about the first such repository; `undefined` where there is none, or where git fails in the
 * worktree itself, which says more than this.
 */
export async function findForeignPrograms(git: RunGit, place: GitPlace): Promise<string | undefined> {
  const untracked = await git({ ...place, args: ["ls-files", "-z", "--others", "--exclude-standard"] });
  const staged = await listSubmodules(git, place);
  if (untracked.kind === "failed" || staged.kind === "failed") return undefined;
  // A repository that is no submodule yet is listed as a folder.
  const folders = splitFields(untracked.output).filter((name) => name.endsWith("/"));
  return findInside(git, place.folder, [...folders, ...staged.names]);
}

type Submodules =
  | { readonly kind: "listed"; readonly names: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

async function listSubmodules(git: RunGit, place: GitPlace): Promise<Submodules> {
  const staged = await git({ ...place, args: ["ls-files", "--stage", "-z"] });
  return staged.kind === "failed" ? staged : { kind: "listed", names: readSubmodules(staged.output) };
}

/** Reads the names of the repositories inside of a listing by `ls-files --stage -z` or `ls-tree -z`. */
export function readSubmodules(listing: Buffer): string[] {
  return splitFields(listing).flatMap((entry) => /^160000 [^\t]*\t(.*)$/su.exec(entry)?.[1] ?? []);
}

async function findInside(
  git: RunGit,
  folder: string,
  names: readonly string[],
  depth = DEPTH_MAX,
): Promise<string | undefined> {
  for (const name of names) {
    if (name.includes(REPLACEMENT)) return `the name of the repository in ${show(name)} is no UTF-8`;
    const inside = join(folder, name);
    const place = { folder: inside, gitDir: join(inside, ".git") };
    if (!(await lstat(place.gitDir).catch(() => undefined))) continue;
    if (depth === 0) return `repositories are more than ${DEPTH_MAX} deep within one another`;
    const named = await findNamed(git, place, name);
    if (named !== undefined) return named;
    const submodules = await listSubmodules(git, place);
    if (submodules.kind === "failed") return describeUnreadable(name, submodules.message);
    const deeper = await findInside(git, inside, submodules.names, depth - 1);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}

async function findNamed(git: RunGit, place: GitPlace, name: string): Promise<string | undefined> {
  const listed = await git({ ...place, args: ["config", "--local", "--list", "--name-only", "-z"] });
  if (listed.kind === "failed") return describeUnreadable(name, listed.message);
  const setting = splitFields(listed.output).find((key) => NAMING_PROGRAMS.test(key));
  if (setting === undefined) return undefined;
  return `the repository in ${show(name)} names programs of its own (${show(setting)}), which are not run`;
}

function describeUnreadable(name: string, message: string): string {
  return `the repository in ${show(name)} cannot be read: ${message}`;
}

function show(name: string): string {
  return JSON.stringify(name.replace(/\/$/u, ""));
}

function splitFields(output: Buffer): string[] {
  return output.toString("utf8").split("\0").filter(Boolean);
}
