/** Owns: files whose line endings git would store in another way than it did (`* text=auto` for files committed with CRLF). */
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decideFileByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import { createGitScene, putFile, runGit, type GitScene, type WorkingTree } from "./git-scene.ts";

const TEXT = "one\r\ntwo\r\n";

/** A repository that has a file with CRLF from before its attributes were set. */
async function openWithCrlf(scene: GitScene): Promise<WorkingTree> {
  const { repository } = scene;
  runGit(repository, "config", "core.autocrlf", "false");
  putFile(repository, "crlf.txt", TEXT);
  runGit(repository, "add", ".");
  runGit(repository, "commit", "--quiet", "-m", "crlf");
  putFile(repository, ".gitattributes", "* text=auto\n");
  runGit(repository, "add", ".gitattributes");
  runGit(repository, "commit", "--quiet", "-m", "attributes");
  return scene.open();
}

/** Writes all that the attempt left; returns the files that are for people. */
async function mergeAll(scene: GitScene, worktree: WorkingTree): Promise<string[]> {
  const unmerged: string[] = [];
  for (const [path, change] of await scene.changesOf(worktree)) {
    const fate = decideFileByVersions(change);
    const isWritten =
      fate?.kind === "write" && (await scene.worktrees.write(worktree, fate.write)) === "written";
    if (!isWritten && fate?.kind !== "nothing") unmerged.push(path);
  }
  return unmerged;
}

describe("a file with line endings that git would change", () => {
  it("is deleted and renamed without people where nobody else changed it", async () => {
    using scene = createGitScene();
    const worktree = await openWithCrlf(scene);
    renameSync(join(worktree.tree, "crlf.txt"), join(worktree.tree, "renamed.txt"));
    expect(await mergeAll(scene, worktree)).toEqual([]);
    expect(existsSync(join(scene.repository, "crlf.txt"))).toBe(false);
    expect(readFileSync(join(scene.repository, "renamed.txt"), "utf8")).toBe(TEXT);
  });

  it("is for people where somebody changed it that the attempt deleted", async () => {
    using scene = createGitScene();
    const worktree = await openWithCrlf(scene);
    rmSync(join(worktree.tree, "crlf.txt"));
    putFile(scene.repository, "crlf.txt", `${TEXT}three\r\n`);
    expect(await mergeAll(scene, worktree)).toEqual(["crlf.txt"]);
  });

  it("is written where only the attempt changed it", async () => {
    using scene = createGitScene();
    const worktree = await openWithCrlf(scene);
    putFile(worktree.tree, "crlf.txt", `${TEXT}three\r\n`);
    expect(await mergeAll(scene, worktree)).toEqual([]);
    expect(readFileSync(join(scene.repository, "crlf.txt"), "utf8")).toBe(`${TEXT}three\r\n`);
  });
});
