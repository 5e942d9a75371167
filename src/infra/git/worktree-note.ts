/** Owns: the note beside a worktree, which says of what repository it is and what attempt it was made for. */
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  worktreeNoteSchema,
  type WorktreeAttempt,
} from "../../agents/coordination/contracts/worktree-fields.ts";
import type { WorktreeOnMachine } from "../../agents/coordination/ports/worktrees.ts";

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

/** Replaces it as a whole. @throws Error where the folder cannot be written to */
export async function writeNote(root: string, name: string, note: WorktreeNote): Promise<void> {
  const path = notePathOf(root, name);
  await writeFile(`${path}.new`, JSON.stringify(note), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Returns `undefined` where there is no note. @throws Error where it cannot be read */
export async function readNote(root: string, name: string): Promise<WorktreeNote | undefined> {
  const text = await readIfThere(readFile(notePathOf(root, name), "utf8"));
  return text === undefined ? undefined : (parseNote(text) ?? { repository: text });
}

/** Returns when the note was written. @throws Error where there is none */
export async function readNoteTime(root: string, name: string): Promise<number> {
  return (await stat(notePathOf(root, name))).mtimeMs;
}

/** Deletes the note if there is one. @throws Error where it cannot be deleted */
export async function deleteNote(root: string, name: string): Promise<void> {
  const path = notePathOf(root, name);
  await rm(`${path}.new`, { force: true });
  await rm(path, { force: true });
}

/** Lists the worktrees whose notes say what attempt they were made for. @throws Error where the folder cannot be read */
export async function listNotedWorktrees(
  root: string,
): Promise<Pick<WorktreeOnMachine, "name" | "repository" | keyof WorktreeAttempt>[]> {
  const files = (await readIfThere(readdir(root))) ?? [];
  const names = files.filter((file) => file.endsWith(ENDING)).map((file) => file.slice(0, -ENDING.length));
  const noted = await Promise.all(names.map(async (name) => ({ name, note: await readNote(root, name) })));
  return noted.flatMap(({ name, note }) =>
    note?.attempt ? [{ name, repository: note.repository, ...note.attempt }] : [],
  );
}

function notePathOf(root: string, name: string): string {
  return join(root, `${name}${ENDING}`);
}

/** A crash may have cut it off. */
function parseNote(text: string): WorktreeNote | undefined {
  try {
    return worktreeNoteSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

async function readIfThere<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
