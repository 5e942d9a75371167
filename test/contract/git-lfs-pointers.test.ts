/** Owns: a repository with Git LFS, whose worktrees have pointers in place of the contents. */
import { chmodSync, cpSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { decideFileByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import { createGitScene, putFile, runGit, type GitScene } from "./git-scene.ts";

const CONTENT = "content of many megabytes\n";
/** Does what the program of Git LFS does: a pointer stays one, and any other content becomes one. */
const CLEAN = `text=$(cat; echo x); text=\${text%x}; case "$text" in
"version https://git-lfs"*) printf %s "$text";;
*) printf "version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize 1\\n" "$(printf %s "$text" | git hash-object --stdin)";;
esac`;

function createSceneWithLfs(): GitScene {
  const scene = createGitScene();
  const { home, repository } = scene;
  putFile(home, "clean.sh", CLEAN);
  runGit(repository, "config", "filter.lfs.clean", `sh ${join(home, "clean.sh")}`);
  runGit(repository, "config", "filter.lfs.smudge", "cat");
  runGit(repository, "config", "filter.lfs.required", "true");
  putFile(repository, ".gitattributes", "*.bin filter=lfs\n");
  putFile(repository, "a.bin", CONTENT);
  runGit(repository, "add", ".");
  runGit(repository, "commit", "--quiet", "-m", "lfs");
  return scene;
}

it("has the content still where a file only becomes a program", async () => {
  using scene = createSceneWithLfs();
  const { repository, worktrees } = scene;
  const worktree = await scene.open();
  chmodSync(join(worktree.tree, "a.bin"), 0o755);
  const change = (await scene.changesOf(worktree)).get("a.bin");
  const fate = change && decideFileByVersions(change);
  expect(fate?.kind === "write" && (await worktrees.write(worktree, fate.write))).toBe("written");
  expect(readFileSync(join(repository, "a.bin"), "utf8")).toBe(CONTENT);
  expect(statSync(join(repository, "a.bin")).mode & 0o100).toBe(0o100);
});

it.each([
  ["copied", cpSync],
  ["moved", renameSync],
])("leaves a pointer that was %s to people", async (_, place) => {
  using scene = createSceneWithLfs();
  const worktree = await scene.open();
  place(join(worktree.tree, "a.bin"), join(worktree.tree, "b.bin"));
  const change = (await scene.changesOf(worktree)).get("b.bin");
  expect(change && decideFileByVersions(change)).toEqual({
    kind: "unmerged",
    file: { path: "b.bin", because: "not_a_file" },
  });
});

it("takes a content that an agent wrote in place of a pointer, and a new one", async () => {
  using scene = createSceneWithLfs();
  const { repository, worktrees } = scene;
  const worktree = await scene.open();
  for (const path of ["a.bin", "b.bin"]) {
    putFile(worktree.tree, path, "new content\n");
    const change = (await scene.changesOf(worktree)).get(path);
    const fate = change && decideFileByVersions(change);
    expect(fate?.kind === "write" && (await worktrees.write(worktree, fate.write))).toBe("written");
    expect(readFileSync(join(repository, path), "utf8")).toBe("new content\n");
  }
});
