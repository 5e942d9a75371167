/**
 * Owns: whether a path is a file that only its owner can have written: a plain file, behind no link of somebody else, that others
 * may not write. A pipe in its place keeps the reader waiting for ever, and a link leads wherever its owner likes.
 */
import { chmodSync, lstatSync, statSync, type Stats } from "node:fs";

const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Returns what is wrong with the file, as the end of a sentence that begins with its path; `undefined` when it does
 * not exist.
 */
export function findFileFault(path: string): string | undefined {
  const link = lstatSync(path, { throwIfNoEntry: false });
  const file = statSync(path, { throwIfNoEntry: false });
  if (!link || !file) return link ? "is a link to nothing" : undefined;
  if (!file.isFile()) return `is ${kindOf(file)}, not a plain file`;
  return isForeignLink(link, file) ? `is a link that belongs to user ${link.uid}` : undefined;
}

/**
 * Takes from others the right to read and to write the file, where that is for this user to do. False where others still may write
 * it.
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

export function kindOf(file: Stats): string {
  if (file.isDirectory()) return "a folder";
  if (file.isFIFO()) return "a pipe";
  if (file.isSocket()) return "a socket";
  return file.isFile() ? "a plain file" : "a device";
}
