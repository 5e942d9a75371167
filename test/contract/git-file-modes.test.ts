/** Owns: which files are programs, where git does not go by what the disk says of that (`core.fileMode=false`). */
import { chmodSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decideFileByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import type { WorktreeWritten } from "../../src/agents/coordination/ports/worktrees.ts";
import { createGitScene, putFile, runGit, type GitScene, type WorkingTree } from "./git-scene.ts";

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
  worktree: WorkingTree,
  path: string,
): Promise<WorktreeWritten | undefined> {
  const change = (await scene.changesOf(worktree)).get(path);
  const fate = change && decideFileByVersions(change);
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

  it("has what was merged and is merged again after a crash", async () => {
    using scene = createSceneWithoutModes();
    const worktree = await scene.open();
    putFile(worktree.tree, "a.txt", "changed\n");
    runGit(worktree.tree, "add", "--chmod=+x", "a.txt");
    putFile(worktree.tree, "new.txt", "new\n");
    const changes = [...(await scene.changesOf(worktree)).values()];
    const writes = changes
      .map(decideFileByVersions)
      .flatMap((fate) => (fate?.kind === "write" ? [fate.write] : []));
    expect(writes).toHaveLength(2);
    const writeAll = () => Promise.all(writes.map((write) => scene.worktrees.write(worktree, write)));
    expect(await writeAll()).toEqual(["written", "written"]);
    // On such a file system each file may look like a program.
    chmodSync(join(scene.repository, "new.txt"), 0o755);
    expect(await writeAll()).toEqual(["written", "written"]);
    const again = [...(await scene.changesOf(worktree)).values()];
    expect(again.map(decideFileByVersions)).toEqual([{ kind: "nothing" }, { kind: "nothing" }]);
  });

  it("keeps a file that the user has changed since", async () => {
    using scene = createSceneWithoutModes();
    const worktree = await scene.open();
    putFile(worktree.tree, "a.txt", "changed\n");
    const change = (await scene.changesOf(worktree)).get("a.txt");
    const fate = change && decideFileByVersions(change);
    putFile(scene.repository, "a.txt", "of the user\n");
    expect(fate?.kind === "write" && (await scene.worktrees.write(worktree, fate.write))).toBe(
      "changed_meanwhile",
    );
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
