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
 * Returns a hash of the programs that settings of git name in the worktree and in the folder of its repository: each may have
 * settings that the other one does not have.
 *
 * @throws Error with what git says
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

/** Returns the first such program; `undefined` where there is none. */
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
      (await findOtherPrograms(git, places)) ??
      (await findInside(git, place.folder, [...folders, ...staged.names]));
    return message === undefined ? undefined : { kind: "too_much", message };
  } catch (error) {
    return { kind: "failed", message: describeError(error) };
  }
}

/** Returns a sentence where there are other filters or hooks than were noted. @throws Error with what git says */
async function findOtherPrograms(git: RunGit, { note, ...places }: NotedPlaces): Promise<string | undefined> {
  if (!note)
    return "the note of the worktree, which says what filters and hooks there were when it was made, is missing or cannot be read";
  const hashBefore = note.programs ?? note.filters;
  const naming = note.programs === undefined ? FILTER_OR_HOOK : PROGRAM;
  if (hashBefore === undefined || hashBefore === (await hashPrograms(git, places, naming))) return undefined;
  return "the filters and hooks that the settings of git name now (`filter.*`, `hook.*`, `lfs.*`) are not those noted when the worktree was made, and are not run";
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
  const setting = splitFields(listed.output).find((key) => PROGRAM.test(key) || INCLUDING.test(key));
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
