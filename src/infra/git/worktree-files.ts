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
  hasFileModes,
  hasSameContent,
  modeOf,
  readVersions,
  type WorktreeOnDisk,
} from "./worktree-changes.ts";

export async function readTexts(
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

async function readText(path: string): Promise<string | undefined> {
  try {
    const facts = await lstat(path);
    if (!facts.isFile() || facts.size > BOUNDS.mergeBytesMax) return undefined;
    return decodeText(await readFile(path));
  } catch {
    return undefined;
  }
}

function decodeText(bytes: Buffer): string | undefined {
  const isText = bytes.length <= BOUNDS.mergeBytesMax && isUtf8(bytes) && !bytes.includes(0);
  return isText ? bytes.toString("utf8") : undefined;
}

type WrittenPlaces = Pick<WorktreeOnDisk, "tree" | "repository">;

/** Writes where the file is what it is taken for, and nothing where it is written already. */
export async function writeFileWhole(
  git: RunGit,
  worktree: WrittenPlaces,
  write: WorktreeWrite,
): Promise<WorktreeWritten> {
  const found = await findWritten(git, worktree.repository, write);
  if (found !== undefined) return found;
  try {
    if (write.after === "absent") await deleteFile(worktree.repository, write.path);
    else await replaceFile(worktree, write);
    return "written";
  } catch {
    return "not_writable";
  }
}

/** Returns what the file in the repository says without a write; `undefined` where it is what it is taken for, and to be written. */
async function findWritten(
  git: RunGit,
  folder: string,
  { path, before, after }: WorktreeWrite,
): Promise<WorktreeWritten | undefined> {
  const read = await readVersions(git, { folder }, [path], new Map());
  const current = read.kind === "read" ? (read.versions.get(path) ?? "other") : "other";
  if (current === after) return "written";
  if (current === before) return undefined;
  const isSame = hasSameContent(current, before);
  // Only a mode that differs is worth another run of git: no call is ruled on meanwhile.
  const isOther = !isSame && !hasSameContent(current, after);
  if (isOther || (await hasFileModes(git, { folder }))) return "changed_meanwhile";
  return isSame ? undefined : "written";
}

async function replaceFile({ tree, repository }: WrittenPlaces, write: WorktreeWrite): Promise<void> {
  const { path, before, after, text } = write;
  const target = join(repository, path);
  await mkdir(dirname(target), { recursive: true });
  const name = hash("sha256", `${path}\0${after}`).slice(0, 16);
  const staged = join(dirname(target), `.coordination-${name}.tmp`);
  await rm(staged, { force: true });
  try {
    // A worktree may have a pointer of Git LFS in place of the content.
    const source = hasSameContent(before, after) ? target : join(tree, path);
    if (after.startsWith("120000 ")) await symlink(await readlink(source, { encoding: "buffer" }), staged);
    else {
      const isKept = modeOf(before) === modeOf(after);
      await writeStaged(staged, { source, target, text, mode: isKept ? undefined : modeOf(after) });
    }
    await rename(staged, target);
  } finally {
    await rm(staged, { force: true });
  }
}

interface Staging {
  readonly source: string;
  readonly target: string;
  readonly text: string | undefined;
  /** Absent: the file is a program if it was one. */
  readonly mode: string | undefined;
}

/** The file keeps who may read and write it. */
async function writeStaged(staged: string, { source, target, text, mode }: Staging): Promise<void> {
  if (text === undefined) await copyFile(source, staged);
  else await writeFile(staged, text);
  const before = await lstat(target).catch(() => undefined);
  const { mode: allBits } = before?.isFile() ? before : await lstat(staged);
  const bits = allBits & 0o777;
  const programBits = bits | ((bits & 0o444) >> 2);
  if (mode === undefined) await chmod(staged, bits);
  else await chmod(staged, mode === "100755" ? programBits : bits & ~0o111);
}

/** Like git, it leaves no folder behind that has nothing in it. */
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
