/** Work that must not be lost: other people's worktrees, repositories inside, and what git could not commit. */
import { readlinkSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decideByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import {
  createGitScene,
  createRepository,
  NAME,
  putFile,
  runGit,
  type GitScene,
  type Opened,
} from "./git-scene.ts";

const listWorktrees = ({ repository }: GitScene): string[] =>
  runGit(repository, "worktree", "list", "--porcelain")
    .split("\n")
    .filter((line) => line.startsWith("worktree "));
const fateOf = async (scene: GitScene, worktree: Opened, path: string): Promise<unknown> => {
  const change = (await scene.changesOf(worktree)).get(path);
  return change && decideByVersions(change);
};
const showOnBranch = ({ repository }: GitScene, path: string): string =>
  runGit(repository, "show", `coordination/${NAME}:${path}`);

describe("removing a worktree", () => {
  it("leaves another worktree of the repository, whose folder cannot be seen at the moment", async () => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    const other = join(home, "other");
    runGit(repository, "worktree", "add", "--quiet", "-b", "other", other);
    putFile(other, "staged.txt", "work\n");
    runGit(other, "add", "staged.txt");
    await scene.open();
    renameSync(other, join(home, "away"));
    expect(await worktrees.remove(NAME)).toBeUndefined();
    renameSync(join(home, "away"), other);
    expect(runGit(other, "status", "--porcelain")).toBe("A  staged.txt\n");
    expect(listWorktrees(scene)).toHaveLength(2);
  });

  it.each(["gitdir", ".git"])("leaves no trace of it where its %s was destroyed", async (file) => {
    using scene = createGitScene();
    const { repository, worktrees } = scene;
    const { tree } = await scene.open();
    runGit(repository, "worktree", "lock", tree);
    const administration = join(repository, ".git/worktrees", NAME);
    writeFileSync(file === "gitdir" ? join(administration, file) : join(tree, file), "");
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(listWorktrees(scene)).toHaveLength(1);
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
    expect((await scene.open()).tree).toBe(tree);
  });

  it("leaves what git keeps under its name of a worktree somewhere else", async () => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    const { tree } = await scene.open();
    const moved = join(home, "moved");
    runGit(repository, "worktree", "move", tree, moved);
    putFile(moved, "staged.txt", "work\n");
    runGit(moved, "add", "staged.txt");
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(moved, "status", "--porcelain")).toBe("A  staged.txt\n");
  });
});

describe("a repository inside of a worktree", () => {
  it("is for people where it is a submodule with new commits", async () => {
    using scene = createGitScene();
    const worktree = await openWithSubmodule(scene);
    expect(await fateOf(scene, worktree, "lib")).toMatchObject({ kind: "unmerged" });
  });

  it("is no change where it is a submodule that the agent did not change", async () => {
    using scene = createGitScene();
    addSubmodule(scene);
    const worktree = await scene.open();
    expect([...(await scene.changesOf(worktree)).keys()]).toEqual([]);
    runGit(worktree.tree, "submodule", "--quiet", "update", "--init");
    expect([...(await scene.changesOf(worktree)).keys()]).toEqual([]);
  });

  it("is for people where the folder has another one in the same place", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    for (const folder of [scene.repository, worktree.tree]) {
      runGit(folder, "init", "--quiet", "inner");
      putFile(folder, "inner/x", folder);
    }
    expect(await fateOf(scene, worktree, "inner/")).toMatchObject({ kind: "unmerged" });
  });
});

function addSubmodule({ home, repository }: GitScene): void {
  const library = join(home, "library");
  createRepository(library, { "l.txt": "l\n" });
  runGit(repository, "submodule", "--quiet", "add", library, "lib");
  runGit(repository, "commit", "--quiet", "-m", "lib");
}

/** The agent made a commit in the submodule `lib`. */
async function openWithSubmodule(scene: GitScene): Promise<Opened> {
  addSubmodule(scene);
  const worktree = await scene.open();
  runGit(worktree.tree, "submodule", "--quiet", "update", "--init");
  putFile(worktree.tree, "lib/new.txt", "work\n");
  runGit(join(worktree.tree, "lib"), "add", ".");
  runGit(join(worktree.tree, "lib"), "commit", "--quiet", "-m", "work");
  return worktree;
}

describe("keeping the work of an agent", () => {
  it("says nothing more where all of it is on the branch", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    const place = { branch: `coordination/${NAME}`, folder: worktree.tree };
    expect(await scene.worktrees.keep(worktree)).toEqual(place);
    putFile(worktree.tree, "new.txt", "new\n");
    expect(await scene.worktrees.keep(worktree)).toEqual(place);
    expect(showOnBranch(scene, "new.txt")).toBe("new\n");
  });

  it("commits the rest where a repository without a commit is inside, and says so", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    runGit(worktree.tree, "init", "--quiet", "inner");
    putFile(worktree.tree, "inner/x", "x\n");
    putFile(worktree.tree, "new.txt", "new\n");
    expect((await scene.worktrees.keep(worktree)).problem).toContain("inner");
    expect(showOnBranch(scene, "new.txt")).toBe("new\n");
  });

  it.each(["lib", "inner"])("says that commits in the repository %s are on no branch", async (name) => {
    using scene = createGitScene();
    const worktree = name === "lib" ? await openWithSubmodule(scene) : await scene.open();
    if (name === "inner") createRepository(join(worktree.tree, name), { "x.txt": "x\n" });
    expect((await scene.worktrees.keep(worktree)).problem).toContain(`"${name}"`);
  });

  it("says so where the agent left a lock behind", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    putFile(worktree.tree, "new.txt", "new\n");
    writeFileSync(join(scene.repository, ".git/worktrees", NAME, "index.lock"), "");
    expect((await scene.worktrees.keep(worktree)).problem).toContain("index.lock");
  });

  it("has the branch where the work is in the middle of a rebase, and says so", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    const { tree } = worktree;
    const commit = (text: string): void => {
      putFile(tree, "a.txt", text);
      runGit(tree, "commit", "--quiet", "-am", text);
    };
    commit("theirs\n");
    runGit(tree, "checkout", "--quiet", "-b", "elsewhere", "HEAD~1");
    commit("elsewhere\n");
    runGit(tree, "checkout", "--quiet", `coordination/${NAME}`);
    expect(() => runGit(tree, "rebase", "elsewhere")).toThrow();
    putFile(tree, "new.txt", "new\n");
    expect((await scene.worktrees.keep(worktree)).problem).toContain("rebase");
    expect(showOnBranch(scene, "new.txt")).toBe("new\n");
  });
});

it("makes a link whose target is no UTF-8 as it is", async () => {
  using scene = createGitScene();
  const worktree = await scene.open();
  const target = Buffer.from([0x66, 0xff, 0x66]);
  symlinkSync(target, join(worktree.tree, "link"));
  const after = (await scene.changesOf(worktree)).get("link")?.theirs ?? "";
  expect(await scene.worktrees.write(worktree, { path: "link", before: "absent", after })).toBe("written");
  expect(readlinkSync(join(scene.repository, "link"), { encoding: "buffer" })).toEqual(target);
});
