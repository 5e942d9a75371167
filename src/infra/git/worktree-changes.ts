/**
 * Owns: which files differ between a worktree and its base, and their versions: in the base, in the worktree, and in the folder
 * of the repository. A version is a mode of git and the id of the content, as git itself would store it.
 */
import { lstat, readlink } from "node:fs/promises";
import { join, dirname } from "node:path";
import { isUtf8 } from "node:buffer";
import type {
  OpenWorktree,
  WorktreeChange,
  WorktreeCompared,
} from "../../agents/coordination/ports/worktrees.ts";
import { findForeignPrograms } from "./foreign-programs.ts";
import type { GitEnd, GitPlace, RunGit } from "./run-git.ts";

/** Changed files; what is more is for people. */
const CHANGES_MAX = 250;
const PATH_BYTES_MAX = 1_000;
/** The length of all names together, as JSON: one event holds them, with two versions of each. */
const NAMES_CHARS_MAX = 150_000;
const BYTES_MAX = 256_000_000;
/** Names given to one run of git. */
const NAMES_MAX = 100;

export interface WorktreeOnDisk extends OpenWorktree {
  readonly tree: string;
  /** In the repository. The worktree's own `.git` may name another place by now, with programs to run. */
  readonly gitDir: string;
}

export async function compareWorktree(git: RunGit, worktree: WorktreeOnDisk): Promise<WorktreeCompared> {
  const { tree, gitDir, repository, base } = worktree;
  const inTree: GitPlace = { folder: tree, gitDir };
  const foreign = await findForeignPrograms(git, inTree);
  if (foreign !== undefined) return { kind: "too_much", message: foreign };
  const tracked = await git({
    ...inTree,
    args: ["diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "--abbrev=64", base, "--"],
  });
  const untracked = await git({ ...inTree, args: ["ls-files", "-z", "--others", "--exclude-standard"] });
  if (tracked.kind === "failed") return describeFailure(tracked);
  if (untracked.kind === "failed") return describeFailure(untracked);
  const files = readRawDiff(tracked.output);
  for (const name of splitNames(untracked.output))
    if (!files.has(name)) files.set(name, { base: "absent", mode: "" });
  const names = [...files.keys()];
  const excess = await findExcess(tree, names);
  if (excess !== undefined) return { kind: "too_much", message: excess };
  const isOnDisk = await hasFileModes(git, inTree);
  const inBase = [...files].filter(([, { base: version }]) => !isOnDisk && version !== "absent");
  const theirModes = new Map(inBase.map(([name, { mode }]) => [name, mode]));
  const ourModes = new Map(inBase.map(([name, { base: version }]) => [name, modeOf(version)]));
  const theirs = await readVersions(git, inTree, names, theirModes);
  const ours = await readVersions(git, { folder: repository }, names, ourModes);
  if (!theirs || !ours) return { kind: "failed", message: "a file of the worktree cannot be read" };
  const changes = names.map((path): WorktreeChange => {
    const base = files.get(path)?.base ?? "absent";
    const their = theirs.get(path) ?? "other";
    const our = ours.get(path) ?? "other";
    // It may have been merged before, and then it has the mode of theirs.
    const isMerged = !isOnDisk && our !== base && hasSameContent(our, their);
    return { path, base, theirs: their, ours: isMerged ? their : our };
  });
  return { kind: "compared", changes };
}

function describeFailure({ message }: GitEnd & { kind: "failed" }): WorktreeCompared {
  return { kind: "failed", message: `the worktree cannot be compared with its base: ${message}` };
}

function splitNames(output: Buffer): string[] {
  return output.toString("latin1").split("\0").filter(Boolean).map(decodeName);
}

/** Names are bytes. One that is no UTF-8 keeps its bytes, marked by a NUL that no name can have. */
function decodeName(name: string): string {
  const bytes = Buffer.from(name, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : `\0${bytes.toString("latin1")}`;
}

interface DifferingFile {
  /** The version in the base. */
  readonly base: string;
  /** The mode of the file in the worktree, as git has it; empty for a file that git does not have. */
  readonly mode: string;
}

/** Returns every file that differs, by name. */
function readRawDiff(output: Buffer): Map<string, DifferingFile> {
  const files = new Map<string, DifferingFile>();
  const fields = output.toString("latin1").split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    // A file that is left in the middle of a merge (U) is told a second time as what it is.
    const [, before, mode, id] = /^:(\d+) (\d+) ([0-9a-f]+) [0-9a-f]+ [^U]/u.exec(fields[at] ?? "") ?? [];
    const name = fields[at + 1];
    if (before === undefined || mode === undefined || id === undefined || name === undefined) continue;
    files.set(decodeName(name), { base: before === "000000" ? "absent" : `${before} ${id}`, mode });
  }
  return files;
}

async function findExcess(tree: string, names: readonly string[]): Promise<string | undefined> {
  if (names.length > CHANGES_MAX)
    return `it changed ${names.length} files, and at most ${CHANGES_MAX} are merged without people`;
  const odd = names.find((name) => name.startsWith("\0") || Buffer.byteLength(name) > PATH_BYTES_MAX);
  if (odd !== undefined) return `the name of a file is no UTF-8 or longer than ${PATH_BYTES_MAX} bytes`;
  if (JSON.stringify(names).length > NAMES_CHARS_MAX)
    return `the names of its files are longer than ${NAMES_CHARS_MAX} characters together`;
  let bytes = 0;
  for (const name of names) {
    const facts = await lstat(join(tree, name)).catch(() => undefined);
    bytes += facts?.isFile() ? facts.size : 0;
  }
  return bytes > BYTES_MAX
    ? `its files have ${bytes} bytes, and at most ${BYTES_MAX} are merged without people`
    : undefined;
}

/** Returns the mode of a version, which is empty for what is no file. */
export function modeOf(version: string): string {
  return version.slice(0, Math.max(version.indexOf(" "), 0));
}

/** True for two plain files that have the same content, whether or not they are programs. */
export function hasSameContent(version: string, other: string): boolean {
  const [one, two] = [version, other].map((each) => /^100\d+ (?<id>.+)$/u.exec(each)?.groups?.["id"]);
  return one !== undefined && one === two;
}

/** False where git does not go by what the disk says of a file being a program: there it may say that of every file. */
export async function hasFileModes(git: RunGit, place: GitPlace): Promise<boolean> {
  const setting = await git({ ...place, args: ["config", "--type=bool", "--get", "core.fileMode"] });
  return setting.kind === "failed" || setting.output.toString("utf8").trim() !== "false";
}

/**
 * Returns the versions of files as they are now; `undefined` where git cannot tell them. A plain file has its mode of `modes`, or
 * else that on the disk.
 */
export async function readVersions(
  git: RunGit,
  place: GitPlace,
  names: readonly string[],
  modes: ReadonlyMap<string, string>,
): Promise<Map<string, string> | undefined> {
  const versions = new Map<string, string>();
  const plain: { readonly name: string; readonly mode: string }[] = [];
  for (const name of names) {
    const facts = await lookAt(place.folder, name);
    if (facts.kind === "file") plain.push({ name, mode: findPlainMode(modes.get(name)) ?? facts.mode });
    else if (facts.kind === "link") {
      const id = await hashLink(git, place, facts.target);
      if (id === undefined) return undefined;
      versions.set(name, `120000 ${id}`);
    } else versions.set(name, facts.kind);
  }
  for (let from = 0; from < plain.length; from += NAMES_MAX) {
    const some = plain.slice(from, from + NAMES_MAX);
    const hashed = await git({ ...place, args: ["hash-object", "--", ...some.map(({ name }) => name)] });
    if (hashed.kind === "failed") return undefined;
    const ids = hashed.output.toString("utf8").split("\n");
    for (const [index, { name, mode }] of some.entries()) versions.set(name, `${mode} ${ids[index] ?? ""}`);
  }
  return versions;
}

function findPlainMode(mode = ""): string | undefined {
  return mode.startsWith("100") ? mode : undefined;
}

type FileFacts =
  | { readonly kind: "absent" | "folder" | "other" }
  | { readonly kind: "file"; readonly mode: "100644" | "100755" }
  | { readonly kind: "link"; readonly target: Buffer };

/** Looks at a file that git could have: no folder on the way to it is a link. */
export async function lookAt(folder: string, name: string): Promise<FileFacts> {
  if (await hasForeignParent(folder, name)) return { kind: "other" };
  const path = join(folder, name);
  try {
    const facts = await lstat(path);
    if (facts.isSymbolicLink()) return { kind: "link", target: await readlink(path, { encoding: "buffer" }) };
    if (facts.isDirectory()) return { kind: "folder" };
    if (!facts.isFile()) return { kind: "other" };
    return { kind: "file", mode: (facts.mode & 0o100) === 0 ? "100644" : "100755" };
  } catch (error) {
    return { kind: (error as NodeJS.ErrnoException).code === "ENOENT" ? "absent" : "other" };
  }
}

/** True when something on the way to the file is no folder: a link would lead out of the repository. */
async function hasForeignParent(folder: string, name: string): Promise<boolean> {
  for (let parent = dirname(name); parent !== "."; parent = dirname(parent)) {
    const facts = await lstat(join(folder, parent)).catch(() => undefined);
    if (facts && !facts.isDirectory()) return true;
  }
  return false;
}

async function hashLink(git: RunGit, place: GitPlace, target: Buffer): Promise<string | undefined> {
  const hashed = await git({ ...place, args: ["hash-object", "--stdin"], input: target });
  return hashed.kind === "done" ? hashed.output.toString("utf8").trim() : undefined;
}

export async function hashText(
  git: RunGit,
  folder: string,
  { path, text, mode }: { readonly path: string; readonly text: string; readonly mode: string },
): Promise<string | undefined> {
  const hashed = await git({ folder, args: ["hash-object", "--stdin", `--path=${path}`], input: text });
  return hashed.kind === "done" ? `${mode} ${hashed.output.toString("utf8").trim()}` : undefined;
}
