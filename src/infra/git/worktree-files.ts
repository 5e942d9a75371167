/**
 * Owns: reading the texts of a file in the base, the worktree and the folder of the repository, and writing one file there as a
 * whole: under a name of its own first, which only the same write uses.
 */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import {
  copyFile,
  chmod,
  lstat,
  mkdir,
  readFile,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import type {
  WorktreeTexts,
  WorktreeWrite,
  WorktreeWritten,
} from "../../agents/coordination/ports/worktrees.ts";
import type { RunGit } from "./run-git.ts";
import {
  isDiskModeTrusted,
  isSameFileContent,
  readModeOfVersion,
  readVersions,
  type WorktreeOnDisk,
} from "./worktree-changes.ts";

/** Returns a file's texts in the base, the worktree and the repository; `undefined` unless all three are texts. */
export async function readTextsOfSides(
  git: RunGit,
  { tree, gitDir, repository, base }: WorktreeOnDisk,
  path: string,
): Promise<WorktreeTexts | undefined> {
  const stored = await git({ folder: tree, gitDir, args: ["cat-file", "--filters", `${base}:${path}`] });
  const texts = {
    base: stored.kind === "done" ? decodeText(stored.output) : undefined,
    theirs: await readText(join(tree, path)),
    ours: await readText(join(repository, path)),
  };
  if (texts.base === undefined || texts.theirs === undefined || texts.ours === undefined) return undefined;
  return { base: texts.base, theirs: texts.theirs, ours: texts.ours };
}

/** Returns the text of a plain file; `undefined` where it is none, is too large or cannot be read. */
async function readText(path: string): Promise<string | undefined> {
  try {
    const facts = await lstat(path);
    if (!facts.isFile() || facts.size > BOUNDS.mergeBytesMax) return undefined;
    return decodeText(await readFile(path));
  } catch {
    return undefined;
  }
}

/** Returns bytes as text; `undefined` where they are no UTF-8, have a NUL or are too many. */
function decodeText(bytes: Buffer): string | undefined {
  const isText = bytes.length <= BOUNDS.mergeBytesMax && isUtf8(bytes) && !bytes.includes(0);
  return isText ? bytes.toString("utf8") : undefined;
}

type WrittenPlaces = Pick<WorktreeOnDisk, "tree" | "repository">;

/**
 * Writes or deletes one file of the repository's folder where its version still is `before`, and returns what came of
 * it: `written` also where the version is `after` already, else why it was not written.
 */
export async function writeFileWhole(
  git: RunGit,
  worktree: WrittenPlaces,
  write: WorktreeWrite,
): Promise<WorktreeWritten> {
  const found = await findOutcomeWithoutWrite(git, worktree.repository, write);
  if (found !== undefined) return found;
  try {
    if (write.after === "absent") await deleteFile(worktree.repository, write.path);
    else await replaceFile(worktree, write);
    return "written";
  } catch {
    return "not_writable";
  }
}

/**
 * Returns the outcome where nothing is to be written: the file is already so, or was changed meanwhile. `undefined`
 * where it is to be written.
 */
async function findOutcomeWithoutWrite(
  git: RunGit,
  folder: string,
  { path, before, after }: WorktreeWrite,
): Promise<WorktreeWritten | undefined> {
  const read = await readVersions(git, { folder }, [path], new Map());
  const current = read.kind === "read" ? (read.versions.get(path) ?? "other") : "other";
  if (current === after) return "written";
  if (current === before) return undefined;
  const isSame = isSameFileContent(current, before);
  // Only a mode that differs is worth another run of git: no call is ruled on meanwhile.
  const isOther = !isSame && !isSameFileContent(current, after);
  if (isOther || (await isDiskModeTrusted(git, { folder }))) return "changed_meanwhile";
  return isSame ? undefined : "written";
}

/** Stages the new content or link beside the file, and renames it over the file. */
async function replaceFile({ tree, repository }: WrittenPlaces, write: WorktreeWrite): Promise<void> {
  const { path, before, after, text } = write;
  const target = join(repository, path);
  await mkdir(dirname(target), { recursive: true });
  const name = hash("sha256", `${path}\0${after}`).slice(0, 16);
  const staged = join(dirname(target), `.coordination-${name}.tmp`);
  await rm(staged, { force: true });
  try {
    // A worktree may have a pointer of Git LFS in place of the content.
    const source = isSameFileContent(before, after) ? target : join(tree, path);
    if (after.startsWith("120000 ")) await symlink(await readlink(source, { encoding: "buffer" }), staged);
    else {
      const isKept = readModeOfVersion(before) === readModeOfVersion(after);
      await writeStagedFile(staged, {
        source,
        target,
        text,
        mode: isKept ? undefined : readModeOfVersion(after),
      });
    }
    await rename(staged, target);
  } finally {
    await rm(staged, { force: true });
  }
}

/** A file that is to be staged, with its source and target. */
interface FileStaging {
  readonly source: string;
  readonly target: string;
  readonly text: string | undefined;
  /** Absent: the file is a program if it was one. */
  readonly mode: string | undefined;
}

/** Writes the new content beside the file, with the rights to read and write of the file that it replaces. */
async function writeStagedFile(staged: string, { source, target, text, mode }: FileStaging): Promise<void> {
  if (text === undefined) await copyFile(source, staged);
  else await writeFile(staged, text);
  const before = await lstat(target).catch(() => undefined);
  const { mode: allBits } = before?.isFile() ? before : await lstat(staged);
  const bits = allBits & 0o777;
  const programBits = bits | ((bits & 0o444) >> 2);
  if (mode === undefined) await chmod(staged, bits);
  else await chmod(staged, mode === "100755" ? programBits : bits & ~0o111);
}

/** Deletes a file and, like git, each folder above it that has nothing in it any more. */
async function deleteFile(repository: string, path: string): Promise<void> {
  await rm(join(repository, path));
  for (let parent = dirname(path); parent !== "."; parent = dirname(parent)) {
    try {
      await rmdir(join(repository, parent));
    } catch {
      return;
    }
  }
}
