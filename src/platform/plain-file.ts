/**
 * Owns: whether a path is a file that only its owner can have written: a plain file, behind no link of somebody else, that others
 * may not write. A pipe in its place keeps the reader waiting for ever, and a link leads wherever its owner likes.
 */
import { chmodSync, lstatSync, statSync, type Stats } from "node:fs";

const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Returns why a file is not to be trusted, as the end of a sentence that begins with its path: it is no plain file, or
 * a link of somebody else; `undefined` where nothing is wrong, or it does not exist.
 */
export function findFileFault(path: string): string | undefined {
  const link = lstatSync(path, { throwIfNoEntry: false });
  const file = statSync(path, { throwIfNoEntry: false });
  if (!link || !file) return link ? "is a link to nothing" : undefined;
  if (!file.isFile()) return `is ${nameFileKind(file)}, not a plain file`;
  return isForeignLink(link, file) ? `is a link that belongs to user ${link.uid}` : undefined;
}

/**
 * Takes from other users the right to read and to write a file, where this user may change that, and returns false
 * only where they still may write it.
 */
export function keepOthersOut(path: string): boolean {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file || (file.mode & OPEN_TO_OTHERS) === 0) return true;
  try {
    chmodSync(path, file.mode & 0o777 & ~OPEN_TO_OTHERS);
    return true;
  } catch {
    return (file.mode & WRITABLE_BY_OTHERS) === 0;
  }
}

/** True when somebody other than the file's owner, this user and root could change what the link leads to. */
function isForeignLink(link: Stats, file: Stats): boolean {
  if (!link.isSymbolicLink()) return false;
  return ![process.getuid?.(), 0, file.uid].includes(link.uid);
}

/** Returns what a path's file is in words with an article: a folder, a pipe, a socket, a plain file or a device. */
export function nameFileKind(file: Stats): string {
  if (file.isDirectory()) return "a folder";
  if (file.isFIFO()) return "a pipe";
  if (file.isSocket()) return "a socket";
  return file.isFile() ? "a plain file" : "a device";
}
