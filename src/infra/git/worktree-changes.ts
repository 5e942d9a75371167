/**
 * Owns: which files differ between a worktree and its base, and their versions: in the base, in the worktree, and in the folder
 * of the repository. A version is a mode of git and the id of the content, as git itself would store it.
 */
import { lstat, readFile, readlink } from "node:fs/promises";
import { join, dirname } from "node:path";
import { isUtf8 } from "node:buffer";
import type {
  OpenWorktree,
  WorktreeChange,
  WorktreeCompared,
} from "../../agents/coordination/ports/worktrees.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import { findForeignPrograms, type ForeignPrograms } from "./foreign-programs.ts";
import type { GitEnd, GitPlace, RunGit } from "./run-git.ts";
import type { WorktreeNote } from "./worktree-note.ts";

/** Changed files; what is more is for people. */
const CHANGES_MAX = 250;
const PATH_BYTES_MAX = 1_000;
/** The length of all names together, as JSON: one event holds them, with two versions of each. */
const NAMES_CHARS_MAX = 150_000;
const BYTES_MAX = 256_000_000;
/** Names given to one run of git. */
const NAMES_MAX = 100;
/** By the specification of Git LFS. */
const POINTER_BYTES_MAX = 1_024;
/** Whatever settings say of submodules: what was done in one is for people. */
const DIFF = "diff --raw -z --no-renames --no-ext-diff --abbrev=64 --ignore-submodules=none".split(" ");

export interface WorktreeOnDisk extends OpenWorktree {
  readonly tree: string;
  /** In the repository. The worktree's own `.git` may name another place by now, with programs to run. */
  readonly gitDir: string;
  /** Absent: it is missing or cannot be read. */
  readonly note: WorktreeNote | undefined;
}

/**
 * Returns the files that differ between a worktree and its base, each with its versions in the base, the worktree and
 * the folder of the repository, or the reason why they cannot be compared.
 */
export async function compareWorktree(git: RunGit, worktree: WorktreeOnDisk): Promise<WorktreeCompared> {
  const { tree, gitDir, repository, base } = worktree;
  const inTree: GitPlace = { folder: tree, gitDir };
  if (await isFolderAbsent(tree))
    return { kind: "absent", message: `the worktree ${tree} is not there any more` };
  const foreign = await findForeignPrograms(git, worktree);
  if (foreign) return createNotComparedResult(foreign);
  const tracked = await git({ ...inTree, args: [...DIFF, base, "--"] });
  const untracked = await git({ ...inTree, args: ["ls-files", "-z", "--others", "--exclude-standard"] });
  if (tracked.kind === "failed") return createNotComparedResult(tracked);
  if (untracked.kind === "failed") return createNotComparedResult(untracked);
  const files = readRawDiff(tracked.output);
  for (const name of splitNames(untracked.output))
    if (!files.has(name)) files.set(name, { base: "absent", mode: "" });
  const names = [...files.keys()];
  const excess = await describeExcessiveChange(tree, names);
  if (excess !== undefined) return { kind: "too_much", message: excess };
  const isOnDisk = await isDiskModeTrusted(git, inTree);
  const inBase = [...files].filter(([, { base: version }]) => !isOnDisk && version !== "absent");
  const theirModes = new Map(inBase.map(([name, { mode }]) => [name, mode]));
  const ourModes = new Map(inBase.map(([name, { base: version }]) => [name, readModeOfVersion(version)]));
  const theirs = await readVersions(git, inTree, names, theirModes);
  const ours = await readVersions(git, { folder: repository }, names, ourModes);
  if (theirs.kind === "failed") return createNotComparedResult(theirs);
  if (ours.kind === "failed") return createNotComparedResult(ours);
  const sides = { files, theirs: theirs.versions, ours: ours.versions, isOnDisk };
  return { kind: "compared", changes: await listChanges(git, worktree, sides) };
}

/** The files that differ, and their versions in the worktree and in the repository. */
interface WorktreeSides {
  readonly files: ReadonlyMap<string, DifferingFile>;
  readonly theirs: ReadonlyMap<string, string>;
  readonly ours: ReadonlyMap<string, string>;
  /** Git goes by what the disk says of a file being a program. */
  readonly isOnDisk: boolean;
}

/** Lists the changes with their versions in the base, the worktree (`theirs`) and the repository (`ours`). */
async function listChanges(
  git: RunGit,
  worktree: WorktreeOnDisk,
  { files, theirs, ours, isOnDisk }: WorktreeSides,
): Promise<WorktreeChange[]> {
  const changes: WorktreeChange[] = [];
  for (const [path, { base: stored }] of files) {
    const our = ours.get(path) ?? "other";
    const their = theirs.get(path) ?? "other";
    const base = await chooseBaseVersion(git, worktree, { path, stored, our });
    // It may have been merged before, and then it has the mode of theirs.
    const isMerged = !isOnDisk && our !== base && isSameFileContent(our, their);
    changes.push(
      await markPointer(worktree.tree, { path, base, theirs: their, ours: isMerged ? their : our }),
    );
  }
  return changes;
}

interface StoredFile {
  readonly path: string;
  /** The version in the base. */
  readonly stored: string;
  readonly our: string;
}

/**
 * Returns a file's version in the base, or ours where git would store the base's content as that. It may store it anew
 * in another way, as with other line endings.
 */
async function chooseBaseVersion(
  git: RunGit,
  { repository: folder, base }: WorktreeOnDisk,
  { path, stored, our }: StoredFile,
): Promise<string> {
  const isPlain = stored.startsWith("100") && our.startsWith("100");
  if (!isPlain || isSameFileContent(stored, our)) return stored;
  const content = await git({ folder, args: ["cat-file", "--filters", `${base}:${path}`] });
  if (content.kind === "failed") return stored;
  const storedAgain = await hashTextVersion(git, folder, {
    path,
    text: content.output,
    mode: readModeOfVersion(stored),
  });
  return storedAgain !== undefined && isSameFileContent(storedAgain, our) ? storedAgain : stored;
}

/**
 * Returns the change, with `other` as `theirs` where Git LFS left a pointer in place of a content. There is nothing
 * that could be taken over.
 */
async function markPointer(tree: string, change: WorktreeChange): Promise<WorktreeChange> {
  const { path, base, theirs, ours } = change;
  if (!theirs.startsWith("100") || isSameFileContent(theirs, base) || isSameFileContent(theirs, ours))
    return change;
  return (await isLfsPointer(join(tree, path))) ? { path, base, theirs: "other", ours } : change;
}

/** True for a pointer of Git LFS, and for a file that cannot be read. */
async function isLfsPointer(path: string): Promise<boolean> {
  try {
    const { size } = await lstat(path);
    if (size > POINTER_BYTES_MAX) return false;
    return (await readFile(path, "latin1")).startsWith("version https://git-lfs.github.com/spec/");
  } catch {
    return true;
  }
}

/** True where no folder is at a path; false where one may be there and cannot be seen. */
export async function isFolderAbsent(folder: string): Promise<boolean> {
  try {
    return !(await lstat(folder)).isDirectory();
  } catch (error) {
    return ["ENOENT", "ENOTDIR"].includes(readSystemErrorCode(error) ?? "");
  }
}

function createNotComparedResult(obstacle: ForeignPrograms): WorktreeCompared {
  if (obstacle.kind === "too_much") return obstacle;
  return { kind: "failed", message: `the worktree cannot be compared with its base: ${obstacle.message}` };
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

/** Returns a sentence where too much was changed for a merge without people, or a name cannot be kept. */
async function describeExcessiveChange(tree: string, names: readonly string[]): Promise<string | undefined> {
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

/** Returns the mode of a file in its version, such as `100644`; an empty text for the version of what is no file. */
export function readModeOfVersion(version: string): string {
  return version.slice(0, Math.max(version.indexOf(" "), 0));
}

/** True for the versions of two plain files that have the same content, whether or not they are programs. */
export function isSameFileContent(version: string, other: string): boolean {
  const [one, two] = [version, other].map((each) => /^100\d+ (?<id>.+)$/u.exec(each)?.groups?.["id"]);
  return one !== undefined && one === two;
}

/**
 * Returns whether git believes the disk about a file being a program (`core.fileMode`); true where that is not set.
 * Where git does not, the disk may say that of every file.
 */
export async function isDiskModeTrusted(git: RunGit, place: GitPlace): Promise<boolean> {
  const setting = await git({ ...place, args: ["config", "--type=bool", "--get", "core.fileMode"] });
  return setting.kind === "failed" || setting.output.toString("utf8").trim() !== "false";
}

type ReadVersions =
  | { readonly kind: "read"; readonly versions: ReadonlyMap<string, string> }
  | (GitEnd & { readonly kind: "failed" });

/**
 * Returns the versions of named files of a folder as they are on the disk now, or git's failure. A plain file has its
 * mode of `modes`, or else that on the disk.
 */
export async function readVersions(
  git: RunGit,
  place: GitPlace,
  names: readonly string[],
  modes: ReadonlyMap<string, string>,
): Promise<ReadVersions> {
  const versions = new Map<string, string>();
  const plain: { readonly name: string; readonly mode: string }[] = [];
  for (const name of names) {
    const facts = await lookAtTrackable(place.folder, name);
    if (facts.kind === "file") plain.push({ name, mode: filterPlainMode(modes.get(name)) ?? facts.mode });
    else if (facts.kind === "link") {
      const hashed = await git({ ...place, args: ["hash-object", "--stdin"], input: facts.target });
      if (hashed.kind === "failed") return hashed;
      versions.set(name, `120000 ${hashed.output.toString("utf8").trim()}`);
    } else versions.set(name, facts.kind);
  }
  for (let from = 0; from < plain.length; from += NAMES_MAX) {
    const some = plain.slice(from, from + NAMES_MAX);
    const hashed = await git({ ...place, args: ["hash-object", "--", ...some.map(({ name }) => name)] });
    if (hashed.kind === "failed") return hashed;
    const ids = hashed.output.toString("utf8").split("\n");
    for (const [index, { name, mode }] of some.entries()) versions.set(name, `${mode} ${ids[index] ?? ""}`);
  }
  return { kind: "read", versions };
}

/** Returns the mode where it is that of a plain file. */
function filterPlainMode(mode = ""): string | undefined {
  return mode.startsWith("100") ? mode : undefined;
}

type FileFacts =
  | { readonly kind: "absent" | "folder" | "other" }
  | { readonly kind: "file"; readonly mode: "100644" | "100755" }
  | { readonly kind: "link"; readonly target: Buffer };

/**
 * Returns what is at a path below a folder as git could track it: a file, link or folder, or that it is absent;
 * `other` where a link or a file is on the way to it, or it cannot be read.
 */
export async function lookAtTrackable(folder: string, name: string): Promise<FileFacts> {
  if (await hasForeignParent(folder, name)) return { kind: "other" };
  const path = join(folder, name);
  try {
    const facts = await lstat(path);
    if (facts.isSymbolicLink()) return { kind: "link", target: await readlink(path, { encoding: "buffer" }) };
    if (facts.isDirectory()) return { kind: "folder" };
    if (!facts.isFile()) return { kind: "other" };
    return { kind: "file", mode: (facts.mode & 0o100) === 0 ? "100644" : "100755" };
  } catch (error) {
    return { kind: readSystemErrorCode(error) === "ENOENT" ? "absent" : "other" };
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

/**
 * Returns the version that git would give to a text at a path, with the given mode; `undefined` where git fails.
 * Stores nothing.
 */
export async function hashTextVersion(
  git: RunGit,
  folder: string,
  { path, text, mode }: { readonly path: string; readonly text: string | Buffer; readonly mode: string },
): Promise<string | undefined> {
  const hashed = await git({ folder, args: ["hash-object", "--stdin", `--path=${path}`], input: text });
  return hashed.kind === "done" ? `${mode} ${hashed.output.toString("utf8").trim()}` : undefined;
}
