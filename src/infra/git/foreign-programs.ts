/**
 * Owns: whether git would run a program for a worktree that was not named when it was made: one of a repository inside of it, or of
 * settings that were changed since. An agent that may only write files could have anything run that way.
 */
import { hash } from "node:crypto";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import type { GitEnd, GitPlace, RunGit } from "./run-git.ts";
import type { WorktreeNote } from "./worktree-note.ts";

/** Settings that name programs: of git itself, and of Git LFS, which is a filter. The rest is overruled wherever git is run. */
const PROGRAM =
  /^(?:filter\.|hook\.|lfs\.(?:extension|customtransfer)\.|lfs\.(?:.*\.)?standalonetransferagent$)/isu;
/** Settings that earlier versions noted. */
const FILTER_OR_HOOK = /^(?:filter|hook)\./iu;
/** Settings that name other files with settings. */
const INCLUDING = /^(?:include\.|includeif\.|extensions\.worktreeconfig$)/iu;
/** Stands for bytes that are no UTF-8: the folder of that name is another one. */
const REPLACEMENT = "\ufffd";
/** Repositories within one another. */
const DEPTH_MAX = 10;

/** A worktree, and the folder that its work is merged into. */
export interface MergedPlaces {
  readonly tree: string;
  /** Where the repository keeps what git knows of the worktree. */
  readonly gitDir: string;
  /** The folder that the repository is checked out in. */
  readonly repository: string;
}

interface NotedPlaces extends MergedPlaces {
  /** Absent: it is missing or cannot be read. A version that noted no programs may have made the worktree. */
  readonly note: Pick<WorktreeNote, "programs" | "filters"> | undefined;
}

/**
 * Returns a hash of the programs that git's settings name in a worktree and in the folder of its repository: each may
 * have settings that the other one does not have. @throws Error with what git says
 */
export async function hashPrograms(
  git: RunGit,
  { tree, gitDir, repository }: MergedPlaces,
  naming = PROGRAM,
): Promise<string> {
  const programs: string[][] = [];
  for (const place of [{ folder: tree, gitDir }, { folder: repository }]) {
    const listed = await git({ ...place, args: ["config", "--list", "-z"] });
    if (listed.kind === "failed") throw new Error(`the settings of git cannot be read: ${listed.message}`);
    const entries = listed.output.toString("latin1").split("\0");
    // Included files are in it, those of a worktree alone, too. A name is before the first newline.
    programs.push(entries.filter((entry) => naming.test(entry.replace(/\n.*/su, ""))));
  }
  return hash("sha256", JSON.stringify(programs));
}

/** Why git is not to be run for a worktree, as a sentence without its full stop. `failed`: it does not work there anyway. */
export type ForeignPrograms =
  { readonly kind: "too_much"; readonly message: string } | (GitEnd & { readonly kind: "failed" });

/**
 * Returns why git is not to be run for a worktree: a program that was not noted, or git failing; `undefined` where it
 * would run no program that was not noted.
 */
export async function findForeignPrograms(
  git: RunGit,
  places: NotedPlaces,
): Promise<ForeignPrograms | undefined> {
  const place = { folder: places.tree, gitDir: places.gitDir };
  // First of all: where git does not work, it says best why. Neither listing runs a filter.
  const untracked = await git({ ...place, args: ["ls-files", "-z", "--others", "--exclude-standard"] });
  if (untracked.kind === "failed") return untracked;
  const staged = await listSubmodules(git, place);
  if (staged.kind === "failed") return staged;
  // A repository that is no submodule yet is listed as a folder.
  const folders = splitFields(untracked.output).filter((name) => name.endsWith("/"));
  try {
    const message =
      (await describeChangedPrograms(git, places)) ??
      (await describeProgramsInside(git, place.folder, [...folders, ...staged.names]));
    return message === undefined ? undefined : { kind: "too_much", message };
  } catch (error) {
    return { kind: "failed", message: describeError(error) };
  }
}

/**
 * Returns a sentence where the settings of git name other filters or hooks than were noted, or there is no note;
 * `undefined` otherwise. @throws Error with what git says
 */
async function describeChangedPrograms(
  git: RunGit,
  { note, ...places }: NotedPlaces,
): Promise<string | undefined> {
  if (!note)
    return "the note of the worktree, which says what filters and hooks there were when it was made, is missing or cannot be read";
  const hashBefore = note.programs ?? note.filters;
  const naming = note.programs === undefined ? FILTER_OR_HOOK : PROGRAM;
  if (hashBefore === undefined || hashBefore === (await hashPrograms(git, places, naming))) return undefined;
  return "the filters and hooks that the settings of git name now (`filter.*`, `hook.*`, `lfs.*`) are not those noted when the worktree was made, and are not run";
}

/** The names of a repository's submodules, or why they cannot be listed. */
type SubmoduleList =
  | { readonly kind: "listed"; readonly names: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

/** Lists the names of the submodules in the index of a checkout, or returns git's failure. */
async function listSubmodules(git: RunGit, place: GitPlace): Promise<SubmoduleList> {
  const staged = await git({ ...place, args: ["ls-files", "--stage", "-z"] });
  return staged.kind === "failed" ? staged : { kind: "listed", names: readSubmodules(staged.output) };
}

/** Returns the names of the submodules in a listing by `ls-files --stage -z` or `ls-tree -z`. */
export function readSubmodules(listing: Buffer): string[] {
  return splitFields(listing).flatMap((entry) => /^160000 [^\t]*\t(.*)$/su.exec(entry)?.[1] ?? []);
}

/**
 * Returns a sentence about the first repository inside that names programs, cannot be read or is more than ten deep
 * within others; `undefined` where there is none.
 */
async function describeProgramsInside(
  git: RunGit,
  folder: string,
  names: readonly string[],
  depth = DEPTH_MAX,
): Promise<string | undefined> {
  for (const name of names) {
    if (name.includes(REPLACEMENT)) return `the name of the repository in ${quoteFolder(name)} is no UTF-8`;
    const inside = join(folder, name);
    const place = { folder: inside, gitDir: join(inside, ".git") };
    if (!(await lstat(place.gitDir).catch(() => undefined))) continue;
    if (depth === 0) return `repositories are more than ${DEPTH_MAX} deep within one another`;
    const named = await describeOwnPrograms(git, place, name);
    if (named !== undefined) return named;
    const submodules = await listSubmodules(git, place);
    if (submodules.kind === "failed") return describeUnreadableRepository(name, submodules.message);
    const deeper = await describeProgramsInside(git, inside, submodules.names, depth - 1);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}

/** Returns a sentence where a repository's own settings name programs or other settings, or cannot be read. */
async function describeOwnPrograms(git: RunGit, place: GitPlace, name: string): Promise<string | undefined> {
  const listed = await git({ ...place, args: ["config", "--local", "--list", "--name-only", "-z"] });
  if (listed.kind === "failed") return describeUnreadableRepository(name, listed.message);
  const setting = splitFields(listed.output).find((key) => PROGRAM.test(key) || INCLUDING.test(key));
  if (setting === undefined) return undefined;
  return `the repository in ${quoteFolder(name)} names programs of its own (${quoteFolder(setting)}), which are not run`;
}

function describeUnreadableRepository(name: string, message: string): string {
  return `the repository in ${quoteFolder(name)} cannot be read: ${message}`;
}

/** Quotes the name of a folder, without its last slash. */
function quoteFolder(name: string): string {
  return JSON.stringify(name.replace(/\/$/u, ""));
}

function splitFields(output: Buffer): string[] {
  return output.toString("utf8").split("\0").filter(Boolean);
}
