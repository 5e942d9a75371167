/** Owns: the note beside a worktree, which says of what repository it is and what attempt it was made for. */
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  worktreeNoteSchema,
  type WorktreeAttempt,
} from "../../agents/coordination/contracts/worktree-fields.ts";
import type { WorktreeOnMachine } from "../../agents/coordination/ports/worktrees.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";

const ENDING = ".repository";

/** A note without an attempt is of an earlier version. */
export interface WorktreeNote {
  /** The path of the repository. */
  readonly repository: string;
  readonly attempt?: WorktreeAttempt;
  /** The folder of git's own files of the repository. It stays where the repository's folder is a linked checkout and is removed. */
  readonly gitDir?: string | undefined;
  /** The hash of the programs that settings of git named when the worktree was made. */
  readonly programs?: string | undefined;
  /** The same of filters and hooks alone, in place of `programs`: an earlier version made the worktree. */
  readonly filters?: string | undefined;
}

/**
 * Writes the note on a worktree to its file below `root`, whole or not at all. @throws Error where the folder cannot
 * be written to
 */
export async function writeWorktreeNote(root: string, name: string, note: WorktreeNote): Promise<void> {
  const path = joinNotePath(root, name);
  await writeFile(`${path}.new`, JSON.stringify(note), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/**
 * Reads the note on a worktree; `undefined` where there is none. A note of an earlier version has the repository's
 * path alone. @throws Error where it cannot be read
 */
export async function readWorktreeNote(root: string, name: string): Promise<WorktreeNote | undefined> {
  const text = await awaitUnlessMissing(readFile(joinNotePath(root, name), "utf8"));
  return text === undefined ? undefined : (parseNote(text) ?? { repository: text });
}

/** Returns when the note on a worktree was written, in milliseconds. @throws Error where there is none */
export async function readWorktreeNoteTime(root: string, name: string): Promise<number> {
  return (await stat(joinNotePath(root, name))).mtimeMs;
}

/** Deletes the note on a worktree, and a half-written one, if there is any. @throws Error where it cannot be deleted */
export async function deleteWorktreeNote(root: string, name: string): Promise<void> {
  const path = joinNotePath(root, name);
  await rm(`${path}.new`, { force: true });
  await rm(path, { force: true });
}

/**
 * Lists the worktrees below `root` whose notes say for which attempt they were made. @throws Error where the folder or
 * a note cannot be read
 */
export async function listNotedWorktrees(
  root: string,
): Promise<Pick<WorktreeOnMachine, "name" | "repository" | keyof WorktreeAttempt>[]> {
  const files = (await awaitUnlessMissing(readdir(root))) ?? [];
  const names = files.filter((file) => file.endsWith(ENDING)).map((file) => file.slice(0, -ENDING.length));
  const noted = await Promise.all(
    names.map(async (name) => ({ name, note: await readWorktreeNote(root, name) })),
  );
  return noted.flatMap(({ name, note }) =>
    note?.attempt ? [{ name, repository: note.repository, ...note.attempt }] : [],
  );
}

function joinNotePath(root: string, name: string): string {
  return join(root, `${name}${ENDING}`);
}

/** Parses a note; `undefined` for any other text: that of an earlier version, or one that a crash cut off. */
function parseNote(text: string): WorktreeNote | undefined {
  try {
    return worktreeNoteSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Awaits the reading; `undefined` where there is no such file or folder. */
async function awaitUnlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (readSystemErrorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
