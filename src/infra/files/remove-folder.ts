/** Owns: removing a folder with everything in it, also where folders in it are read-only. */
import { chmod, lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes the file or folder at a path, if anything is there; makes folders writable where that is needed. @throws
 * Error where it cannot be removed
 */
export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await unlockFolders(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Makes a folder and all folders below it writable for their owner; follows no link. Caches of build tools are folders that nothing
 * may be removed from.
 *
 * @throws Error where a folder belongs to somebody else
 */
export async function unlockFolders(folder: string): Promise<void> {
  if (!(await lstat(folder)).isDirectory()) return;
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await unlockFolders(join(folder, entry.name));
}
