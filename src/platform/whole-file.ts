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
export function createWholeFile(path: string, text: string): void {
  publishDraft(path, text, (draft) => {
    try {
      linkSync(draft, path);
    } catch (error) {
      if (isTaken(error)) throw error;
      // File systems without links.
      copyFileSync(draft, path, constants.COPYFILE_EXCL);
    }
  });
}

/** True for the error of a name that is taken. */
export function isTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

/** Writes the file (mode 0600) in place of what has its name. @throws an error of the system */
export function replaceWholeFile(path: string, text: string): void {
  publishDraft(path, text, (draft) => {
    renameSync(draft, path);
  });
}

function publishDraft(path: string, text: string, publish: (draft: string) => void): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}.partial`;
  try {
    writeDraft(draft, text);
    publish(draft);
  } finally {
    rmSync(draft, { force: true });
  }
  if (process.platform !== "win32") flushFolder(dirname(path));
}

function writeDraft(draft: string, text: string): void {
  const file = openSync(draft, "wx", PRIVATE);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function flushFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
