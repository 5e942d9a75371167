/** Owns: removing the folder that git keeps of one worktree in its repository, and no other's. */
import { readFile, realpath, rm } from "node:fs/promises";
import { join, resolve } from "node:path";

/**
 * Removes it where it is of the worktree `name` below `root`, or half made: then it names none. May be done again.
 *
 * @throws Error where it cannot be read or removed
 */
export async function forgetTree(root: string, name: string, gitDir: string): Promise<void> {
  const named = await readIfThere(join(gitDir, "gitdir"));
  if (named === undefined) return;
  const isHalfMade = named.trim() === "";
  // Git may name it from there, and with the links on the way to it resolved.
  const roots = [root, await realpath(root).catch(() => root)];
  const trees = roots.map((folder) => join(folder, name, ".git"));
  if (isHalfMade || trees.includes(resolve(gitDir, named.replace(/\n$/u, ""))))
    await rm(gitDir, { recursive: true, force: true });
}

/** Returns nothing of a file that is missing in its folder; `undefined` where the folder is none. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return "";
    if (code === "ENOTDIR") return undefined;
    throw error;
  }
}
