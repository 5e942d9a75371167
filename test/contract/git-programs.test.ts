/** Owns: programs that an agent would have git run at the end of its work, and programs of the repository that fail. */
import { hash } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createGitScene, createRepository, NAME, putFile, runGit, type GitScene } from "./git-scene.ts";

const hasRun = ({ home }: GitScene): boolean => existsSync(join(home, "ran"));

describe("a filter that is named in the settings of git while the agent is at work", () => {
  it.each([
    ["the repository", ".git/config"],
    ["a file that they include", "included"],
    ["the worktree alone", `.git/worktrees/${NAME}/config.worktree`],
    ["the folder of the repository alone", ".git/config.worktree"],
    ["a file that they include on the branch of that folder alone", "included-on-main"],
  ])("is not run where it is in those of %s, and people hear of it", async (_, file) => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    runGit(repository, "config", "include.path", "../included");
    runGit(repository, "config", "includeIf.onbranch:main.path", "../included-on-main");
    runGit(repository, "config", "extensions.worktreeConfig", "true");
    const worktree = await scene.open();
    const program = `sh -c 'touch ${home}/ran; cat'`;
    appendFileSync(join(repository, file), `[filter "x"]\n\tclean = ${program}\n\tsmudge = ${program}\n`);
    putFile(repository, ".git/info/attributes", "* filter=x\n");
    putFile(worktree.tree, "a.txt", "changed\n");
    expect(await worktrees.compare(worktree)).toMatchObject({
      kind: "too_much",
      message: expect.stringContaining("filter.*") as string,
    });
    expect((await worktrees.keep(worktree)).problem).toContain("filter.*");
    expect(hasRun(scene)).toBe(false);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(hasRun(scene)).toBe(false);
  });

  it.each([
    "extension.x.clean",
    "customtransfer.x.path",
    "standalonetransferagent",
    "a.b.standalonetransferagent",
  ])("is not run either where it is one of Git LFS: lfs.%s", async (setting) => {
    using scene = createGitScene();
    const worktree = await scene.open();
    runGit(scene.repository, "config", `lfs.${setting}`, "touch ran");
    const message = expect.stringContaining("lfs.*") as string;
    expect(await scene.worktrees.compare(worktree)).toMatchObject({ kind: "too_much", message });
  });

  it("is not run either where the note beside the worktree was deleted", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    rmSync(join(scene.home, "worktrees", `${NAME}.repository`));
    const message = expect.stringContaining("the note of the worktree") as string;
    expect(await scene.worktrees.compare(worktree)).toMatchObject({ kind: "too_much", message });
  });

  it("is no change where the worktree was made by a version that noted no filters", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    const note = {
      repository: scene.repository,
      attempt: { coordinationId: "co-1", stepId: "step", attempt: 1 },
    };
    writeFileSync(join(scene.home, "worktrees", `${NAME}.repository`), JSON.stringify(note));
    expect(await scene.worktrees.compare(worktree)).toEqual({ kind: "compared", changes: [] });
  });

  it("is no change either where a version noted the filters and hooks alone, and git names a program of Git LFS", async () => {
    using scene = createGitScene();
    const { home, repository, worktrees } = scene;
    runGit(repository, "config", "filter.x.clean", "cat");
    runGit(repository, "config", "lfs.extension.x.clean", "cat");
    const worktree = await scene.open();
    const programs = [worktree.tree, repository].map((folder) =>
      runGit(folder, "config", "--list", "-z")
        .split("\0")
        .filter((entry) => /^(?:filter|hook)\./u.test(entry)),
    );
    const note = {
      repository,
      attempt: { coordinationId: "co-1", stepId: "step", attempt: 1 },
      filters: hash("sha256", JSON.stringify(programs)),
    };
    writeFileSync(join(home, "worktrees", `${NAME}.repository`), JSON.stringify(note));
    expect(await worktrees.compare(worktree)).toEqual({ kind: "compared", changes: [] });
    runGit(repository, "config", "filter.y.clean", "cat");
    expect(await worktrees.compare(worktree)).toMatchObject({ kind: "too_much" });
  });
});

describe("a worktree that git cannot work in is not said to have other filters", () => {
  it("where its folder is gone when its work is to be kept", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    rmSync(worktree.tree, { recursive: true });
    expect((await scene.worktrees.keep(worktree)).problem).toContain("the folder is gone");
  });

  it("where what git keeps of it is gone, and a filter of the repository with it", async () => {
    using scene = createGitScene();
    const { repository, worktrees } = scene;
    runGit(repository, "config", "filter.x.clean", "cat");
    const worktree = await scene.open();
    rmSync(join(repository, ".git/worktrees", NAME), { recursive: true });
    const message = expect.stringContaining("git says: not a git repository") as string;
    expect(await worktrees.compare(worktree)).toMatchObject({ kind: "failed", message });
    expect((await worktrees.keep(worktree)).problem).toContain("not a git repository");
  });

  it("where its settings are broken", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    appendFileSync(join(scene.repository, ".git/config"), "[filter\n");
    const message = expect.stringContaining("bad config") as string;
    expect(await scene.worktrees.compare(worktree)).toMatchObject({ kind: "failed", message });
  });
});

it("a submodule whose settings allow a transport that runs a program, for an object that is missing", async () => {
  using scene = createGitScene();
  const { home, repository, worktrees } = scene;
  createRepository(join(home, "library"), { "l.txt": "l\n" });
  runGit(repository, "submodule", "--quiet", "add", join(home, "library"), "lib");
  runGit(repository, "commit", "--quiet", "-m", "lib");
  const worktree = await scene.open();
  // All of it are files that an agent can write.
  const inside = join(worktree.tree, "lib");
  createRepository(inside, { "l.txt": "l\n" });
  rmSync(join(inside, ".git/objects"), { recursive: true });
  putFile(inside, ".git/objects/info/none", "");
  putFile(inside, ".git/HEAD", runGit(repository, "rev-parse", "HEAD:lib"));
  appendFileSync(
    join(inside, ".git/config"),
    `[core]
repositoryformatversion = 1
[extensions]
partialClone = origin
[remote "origin"]
promisor = true
url = ext::sh -c touch% ${home}/ran
[protocol "ext"]
allow = always
`,
  );
  await worktrees.compare(worktree);
  await worktrees.keep(worktree);
  expect(hasRun(scene)).toBe(false);
});

it("a file that a filter of the repository cannot read is for people, with what git says of it", async () => {
  using scene = createGitScene();
  const { repository, worktrees } = scene;
  runGit(repository, "config", "filter.x.clean", "false");
  runGit(repository, "config", "filter.x.required", "true");
  const worktree = await scene.open();
  putFile(worktree.tree, ".gitattributes", "*.x filter=x\n");
  putFile(worktree.tree, "new.x", "new\n");
  expect(await worktrees.compare(worktree)).toMatchObject({
    kind: "failed",
    message: expect.stringContaining("new.x") as string,
  });
  expect((await worktrees.keep(worktree)).problem).toContain("new.x");
  expect(readdirSync(worktree.tree)).toContain("new.x");
});
