/** Owns: small private files that are there whole or not at all, whoever else writes them and whenever the machine stops. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

const PRIVATE = 0o600;

/** Creates the file (mode 0600). @throws an error of the system, `EEXIST` where there is one already */
export function createWholeFile(path: string, content: string | Uint8Array): void {
  publishDraft(path, content, (draft) => {
    try {
      linkSync(draft, path);
    } catch (error) {
      if (isTaken(error)) throw error;
      // File systems without links: others may see a part of it, and a stop of the machine may leave one.
      copyFileSync(draft, path, constants.COPYFILE_EXCL);
    }
  });
}

/** True for the error of a name that is taken. */
export function isTaken(error: unknown): boolean {
  return hasCode(error, "EEXIST");
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** Writes the file (mode 0600) in place of what has its name. @throws an error of the system */
export function replaceWholeFile(path: string, text: string): void {
  publishDraft(path, text, (draft) => {
    renameSync(draft, path);
  });
}

function publishDraft(path: string, content: string | Uint8Array, publish: (draft: string) => void): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}.partial`;
  try {
    writeDraft(draft, content);
    publish(draft);
  } finally {
    rmSync(draft, { force: true });
  }
  if (process.platform !== "win32") flushFolder(dirname(path));
}

function writeDraft(draft: string, content: string | Uint8Array): void {
  const file = openSync(draft, "wx", PRIVATE);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Keeps the name of a file over a stop of the machine, where this user may list the folder: others cannot flush it. */
function flushFolder(path: string): void {
  let folder: number | undefined;
  try {
    folder = openSync(path, "r");
    fsyncSync(folder);
  } catch (error) {
    if (!hasCode(error, "EACCES")) throw error;
  } finally {
    if (folder !== undefined) closeSync(folder);
  }
}
