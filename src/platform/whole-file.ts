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
import { readSystemErrorCode } from "./system-error.ts";

const PRIVATE = 0o600;

/**
 * Creates a file (mode 0600) with its content in one step; only on a file system without links may others see a part
 * of it. @throws an error of the system, `EEXIST` where there is one already
 */
export function createWholeFile(path: string, content: string | Uint8Array): void {
  publishDraft(path, content, (draft) => {
    linkDraft(draft, path);
  });
}

/** Gives a draft the name of a new file, too. @throws an error of the system, `EEXIST` where the name is taken */
export function linkDraft(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if (isNameTaken(error)) throw error;
    // File systems without links: others may see a part of it, and a stop of the machine may leave one.
    copyFileSync(draft, path, constants.COPYFILE_EXCL);
  }
}

/** Returns whether an error of the system says that a file of that name exists already (`EEXIST`). */
export function isNameTaken(error: unknown): boolean {
  return readSystemErrorCode(error) === "EEXIST";
}

/**
 * Writes a file (mode 0600) in one step in place of what has its name, so that readers see either the old text or the
 * new. @throws an error of the system
 */
export function replaceWholeFile(path: string, text: string): void {
  publishDraft(path, text, (draft) => {
    renameSync(draft, path);
  });
}

/**
 * Writes a draft beside the file, has `publish` give it the file's name, removes the draft's own name and flushes the
 * folder.
 */
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

/**
 * Flushes a folder, so that the name of a file in it outlasts a stop of the machine; does nothing where this user may
 * not read the folder.
 */
function flushFolder(path: string): void {
  let folder: number | undefined;
  try {
    folder = openSync(path, "r");
    fsyncSync(folder);
  } catch (error) {
    if (readSystemErrorCode(error) !== "EACCES") throw error;
  } finally {
    if (folder !== undefined) closeSync(folder);
  }
}
