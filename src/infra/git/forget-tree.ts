/** Owns: removing the folder that git keeps of one worktree in its repository, and no other's. */
import { readFile, realpath, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readSystemErrorCode } from "../../platform/system-error.ts";

/**
 * Removes git's own folder of a worktree from the repository, so that git forgets the worktree; does nothing where
 * that is another one than `name` below `root`. One that is half made, and names no worktree, is removed too. May be
 * done again. @throws Error where it cannot be read or removed
 */
export async function removeTreeDir(root: string, name: string, gitDir: string): Promise<void> {
  const named = await readTextIfThere(join(gitDir, "gitdir"));
  if (named === undefined) return;
  const isHalfMade = named.trim() === "";
  // Git may name it from there, and with the links on the way to it resolved.
  const roots = [root, await realpath(root).catch(() => root)];
  const trees = roots.map((folder) => join(folder, name, ".git"));
  if (isHalfMade || trees.includes(resolve(gitDir, named.replace(/\n$/u, ""))))
    await rm(gitDir, { recursive: true, force: true });
}

/** Returns a file's text: empty where the file is missing, `undefined` where its folder is no folder. */
async function readTextIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = readSystemErrorCode(error);
    if (code === "ENOENT") return "";
    if (code === "ENOTDIR") return undefined;
    throw error;
  }
}
