/** Work that must not be lost: other people's worktrees, repositories inside, and what git could not commit. */
import {
  existsSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { worktreeAttemptSchema } from "../../src/agents/coordination/contracts/worktree-fields.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";
import { decideFileByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import {
  createGitScene,
  createRepository,
  NAME,
  putFile,
  runGit,
  type GitScene,
  type WorkingTree,
} from "./git-scene.ts";

const listWorktrees = ({ repository }: GitScene): string[] =>
  runGit(repository, "worktree", "list", "--porcelain")
    .split("\n")
    .filter((line) => line.startsWith("worktree "));
const fateOf = async (scene: GitScene, worktree: WorkingTree, path: string): Promise<unknown> => {
  const change = (await scene.changesOf(worktree)).get(path);
  return change && decideFileByVersions(change);
};
const showOnBranch = ({ repository }: GitScene, path: string): string =>
  runGit(repository, "show", `coordination/${NAME}:${path}`);

const ATTEMPT = worktreeAttemptSchema.parse({ coordinationId: "co-1", stepId: "step", attempt: 1 });

/** Makes a linked checkout of the repository, and the worktree for an agent whose folder that is. */
async function openLinked({ home, repository, worktrees }: GitScene): Promise<string> {
  const linked = join(home, "linked");
  runGit(repository, "worktree", "add", "--quiet", linked);
  expect(await worktrees.open(NAME, linked, ATTEMPT, [])).toMatchObject({ kind: "opened" });
  return linked;
}

it("no worktree is made where git does not say which folder has its own files", async () => {
  using scene = createGitScene();
  const { home, repository } = scene;
  const [linked, program] = [join(home, "linked"), join(home, "silent-git")];
  runGit(repository, "worktree", "add", "--quiet", linked);
  const script = `#!/bin/sh\ncase "$*" in *--git-common-dir*) exit 1 ;; esac\nexec git "$@"\n`;
  writeFileSync(program, script, { mode: 0o755 });
  const worktrees = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
  expect(await worktrees.open(NAME, linked, ATTEMPT, [])).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("does not say where the repository") as string,
  });
  expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
});

it("a worktree whose branch is locked is refused with what git says, leaves nothing, and is made once it is free", async () => {
  using scene = createGitScene();
  const { repository, worktrees } = scene;
  const lock = `.git/refs/heads/coordination/${NAME}.lock`;
  putFile(repository, lock, "");
  expect(await worktrees.open(NAME, repository, ATTEMPT, [])).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("lock") as string,
  });
  expect(listWorktrees(scene)).toHaveLength(1);
  rmSync(join(repository, lock));
  const { tree } = await scene.open();
  expect(readFileSync(join(tree, "a.txt"), "utf8")).toBe("one\ntwo\nthree\n");
});

it.each(["repository", "repository/below", "linked"])(
  "takes branch and entry of a worktree, too, where a git before 2.31 made it for the folder %s",
  async (folder) => {
    using scene = createGitScene();
    const { home, repository } = scene;
    putFile(repository, "below/b.txt", "b\n");
    runGit(repository, "worktree", "add", "--quiet", join(home, "linked"));
    const program = join(home, "old-git");
    // An old git repeats an option that it does not know, and answers the rest.
    const script = `#!/bin/sh
case "$*" in *--path-format=*) echo --path-format=absolute; exec git rev-parse --git-common-dir ;; esac
exec git "$@"
`;
    writeFileSync(program, script, { mode: 0o755 });
    const worktrees = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
    expect(await worktrees.open(NAME, join(home, folder), ATTEMPT, [])).toMatchObject({ kind: "opened" });
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
    expect(existsSync(join(repository, ".git/worktrees", NAME))).toBe(false);
  },
);

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
    runGit(moved, "checkout", "--quiet", "-b", "elsewhere");
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(moved, "status", "--porcelain")).toBe("A  staged.txt\n");
  });

  it.each(["locked", "checked out by somebody"])("says so while its branch is %s", async (obstacle) => {
    using scene = createGitScene();
    const { repository, worktrees } = scene;
    await scene.open();
    const branch = `coordination/${NAME}`;
    const lock = join(repository, `.git/refs/heads/${branch}.lock`);
    const checkOut = (name: string): string =>
      runGit(repository, "checkout", "--quiet", "--ignore-other-worktrees", name);
    if (obstacle === "locked") writeFileSync(lock, "");
    else checkOut(branch);
    expect(await worktrees.remove(NAME)).toContain(branch);
    expect(await worktrees.list()).toMatchObject([{ name: NAME }]);
    if (obstacle === "locked") rmSync(lock);
    else checkOut("main");
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(await worktrees.list()).toEqual([]);
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
  });

  it.each([
    ["the branches", "packed-refs"],
    ["the settings", "config"],
  ])("says so while git cannot read %s of the repository", async (_, file) => {
    using scene = createGitScene();
    const { repository, worktrees } = scene;
    await scene.open();
    const path = join(repository, ".git", file);
    runGit(repository, "pack-refs", "--all");
    const before = readFileSync(path);
    writeFileSync(path, "[damaged\n");
    expect(await worktrees.remove(NAME)).toContain(`coordination/${NAME}`);
    expect(await worktrees.list()).toMatchObject([{ name: NAME }]);
    writeFileSync(path, before);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
  });

  it("is done where the folder of the repository is no repository any more", async () => {
    using scene = createGitScene();
    await scene.open();
    rmSync(join(scene.repository, ".git"), { recursive: true });
    expect(await scene.worktrees.remove(NAME)).toBeUndefined();
    expect(await scene.worktrees.list()).toEqual([]);
  });

  it("is done where the repository is gone whose linked checkout the folder was", async () => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    await scene.open();
    rmSync(join(repository, ".git"), { recursive: true });
    writeFileSync(join(repository, ".git"), `gitdir: ${join(home, "gone", ".git", "worktrees", "linked")}\n`);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(await worktrees.list()).toEqual([]);
  });

  it("takes the branch, too, where the folder was a linked checkout that somebody removed", async () => {
    using scene = createGitScene();
    const { repository, worktrees } = scene;
    const linked = await openLinked(scene);
    runGit(repository, "worktree", "remove", linked);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
    expect(runGit(repository, "worktree", "list", "--porcelain")).not.toContain(NAME);
  });

  it("says so while git cannot be started and an earlier version noted only that the folder was a linked checkout", async () => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    const linked = await openLinked(scene);
    writeFileSync(
      join(home, "worktrees", `${NAME}.repository`),
      JSON.stringify({ repository: linked, attempt: ATTEMPT }),
    );
    const program = join(home, "missing-git");
    const withoutGit = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
    expect(await withoutGit.remove(NAME)).toContain(`coordination/${NAME}`);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
    expect(runGit(repository, "worktree", "list", "--porcelain")).not.toContain(NAME);
  });

  it("is tried again where git could not be started, unless the repository is gone, too", async () => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    await scene.open();
    const program = join(home, "missing-git");
    const withoutGit = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
    expect(await withoutGit.remove(NAME)).toContain(`coordination/${NAME}`);
    expect(await worktrees.list()).toMatchObject([{ name: NAME }]);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
    await scene.open();
    rmSync(repository, { recursive: true });
    expect(await withoutGit.remove(NAME)).toBeUndefined();
  });
});

describe("a repository inside of a worktree", () => {
  it.each(["untracked", "changed", "committed"])(
    "is for people where it is a submodule with %s files, whatever `ignore` says of it",
    async (work) => {
      for (const ignore of [undefined, "untracked", "dirty", "all"]) {
        using scene = createGitScene();
        addSubmodule(scene, ignore);
        const worktree = await scene.open();
        const inside = join(worktree.tree, "lib");
        runGit(worktree.tree, "submodule", "--quiet", "update", "--init");
        putFile(inside, work === "changed" ? "l.txt" : "new.txt", "work\n");
        if (work === "committed") {
          runGit(inside, "add", ".");
          runGit(inside, "commit", "--quiet", "-m", "work");
        }
        expect([ignore, await fateOf(scene, worktree, "lib")]).toEqual([
          ignore,
          { kind: "unmerged", file: { path: "lib", because: "not_a_file" } },
        ]);
        expect((await scene.worktrees.keep(worktree)).problem).toContain('"lib"');
      }
    },
  );

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

function addSubmodule({ home, repository }: GitScene, ignore?: string): void {
  const library = join(home, "library");
  createRepository(library, { "l.txt": "l\n" });
  runGit(repository, "submodule", "--quiet", "add", library, "lib");
  if (ignore !== undefined)
    runGit(repository, "config", "--file", ".gitmodules", "submodule.lib.ignore", ignore);
  runGit(repository, "add", ".gitmodules");
  runGit(repository, "commit", "--quiet", "-m", "lib");
}

/** The agent made a commit in the submodule `lib`. */
async function openWithSubmodule(scene: GitScene): Promise<WorkingTree> {
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
