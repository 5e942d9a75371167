/** Owns: which files are programs, where git does not go by what the disk says of that (`core.fileMode=false`). */
import { chmodSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decideByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import type { WorktreeWritten } from "../../src/agents/coordination/ports/worktrees.ts";
import { createGitScene, putFile, runGit, type GitScene, type Opened } from "./git-scene.ts";

const isProgram = (folder: string, name: string): boolean =>
  (statSync(join(folder, name)).mode & 0o100) !== 0;

/** A repository on a file system where every file that the user has is a program. */
function createSceneWithoutModes(): GitScene {
  const scene = createGitScene();
  runGit(scene.repository, "config", "core.fileMode", "false");
  chmodSync(join(scene.repository, "a.txt"), 0o755);
  return scene;
}

/** Writes what the attempt left of a file, as its fate says. */
async function mergeFile(
  scene: GitScene,
  worktree: Opened,
  path: string,
): Promise<WorktreeWritten | undefined> {
  const change = (await scene.changesOf(worktree)).get(path);
  const fate = change && decideByVersions(change);
  return fate?.kind === "write" ? scene.worktrees.write(worktree, fate.write) : undefined;
}

describe("a repository without file modes", () => {
  it("has no change of its own where only the disk says that a file is a program", async () => {
    using scene = createSceneWithoutModes();
    const worktree = await scene.open();
    rmSync(join(worktree.tree, "a.txt"));
    expect(await mergeFile(scene, worktree, "a.txt")).toBe("written");
  });

  it("keeps what the disk says of a file whose content is replaced", async () => {
    using scene = createSceneWithoutModes();
    const worktree = await scene.open();
    putFile(worktree.tree, "a.txt", "changed\n");
    expect(await mergeFile(scene, worktree, "a.txt")).toBe("written");
    expect(isProgram(scene.repository, "a.txt")).toBe(true);
  });

  it("gets a program that the agent marked as one for git", async () => {
    using scene = createSceneWithoutModes();
    chmodSync(join(scene.repository, "a.txt"), 0o644);
    const worktree = await scene.open();
    runGit(worktree.tree, "add", "--chmod=+x", "a.txt");
    expect(await mergeFile(scene, worktree, "a.txt")).toBe("written");
    expect(isProgram(scene.repository, "a.txt")).toBe(true);
  });

  it.each([true, false])("gets a new program, also where the agent committed it: %s", async (isCommitted) => {
    using scene = createSceneWithoutModes();
    const worktree = await scene.open();
    putFile(worktree.tree, "run.sh", "echo\n");
    chmodSync(join(worktree.tree, "run.sh"), 0o755);
    if (isCommitted) {
      runGit(worktree.tree, "add", "run.sh");
      runGit(worktree.tree, "commit", "--quiet", "-m", "work");
    }
    expect(await mergeFile(scene, worktree, "run.sh")).toBe("written");
    expect(isProgram(scene.repository, "run.sh")).toBe(true);
  });
});

it("a file that becomes a program, or is none any more, does so in the folder where git goes by the disk", async () => {
  using scene = createGitScene();
  putFile(scene.repository, "run.sh", "echo\n");
  chmodSync(join(scene.repository, "run.sh"), 0o755);
  runGit(scene.repository, "add", ".");
  runGit(scene.repository, "commit", "--quiet", "-m", "program");
  const worktree = await scene.open();
  chmodSync(join(worktree.tree, "a.txt"), 0o755);
  chmodSync(join(worktree.tree, "run.sh"), 0o644);
  expect(await mergeFile(scene, worktree, "a.txt")).toBe("written");
  expect(await mergeFile(scene, worktree, "run.sh")).toBe("written");
  expect(isProgram(scene.repository, "a.txt")).toBe(true);
  expect(isProgram(scene.repository, "run.sh")).toBe(false);
});
