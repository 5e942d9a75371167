/** Worktrees that follow merges which nobody committed, with the real git: what they begin with. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decideFileByVersions } from "../../src/agents/coordination/runtime/worktrees/merge-files.ts";
import { createGitScene, createRepository, NAME, putFile, runGit, type GitScene } from "./git-scene.ts";

const headOf = ({ repository }: GitScene): string => runGit(repository, "rev-parse", "HEAD").trim();
const readFile = (folder: string, name: string): string => readFileSync(join(folder, name), "utf8");

/** A repository with changes that are not committed, of a plan and of its user. */
function createMergedScene(): GitScene {
  const scene = createGitScene();
  const { repository } = scene;
  putFile(repository, "old.txt", "old\n");
  putFile(repository, "mine.txt", "committed\n");
  runGit(repository, "add", ".");
  runGit(repository, "commit", "--quiet", "-m", "more");
  putFile(repository, "a.txt", "merged\n");
  rmSync(join(repository, "old.txt"));
  putFile(repository, "deep/run.sh", "echo\n");
  chmodSync(join(repository, "deep/run.sh"), 0o755);
  symlinkSync("a.txt", join(repository, "link"));
  putFile(repository, "mine.txt", "not committed\n");
  putFile(repository, "untracked.txt", "mine\n");
  return scene;
}
const MERGED = ["a.txt", "old.txt", "deep/run.sh", "link"];

describe("a worktree after merges that nobody committed", () => {
  it("begins with them, and with nothing else that is not committed", async () => {
    using scene = createMergedScene();
    const { tree, base } = await scene.open(...MERGED);
    expect(readFile(tree, "a.txt")).toBe("merged\n");
    expect(existsSync(join(tree, "old.txt"))).toBe(false);
    expect(readFile(tree, "deep/run.sh")).toBe("echo\n");
    expect(statSync(join(tree, "deep/run.sh")).mode & 0o100).toBe(0o100);
    expect(readlinkSync(join(tree, "link"))).toBe("a.txt");
    expect(readFile(tree, "mine.txt")).toBe("committed\n");
    expect(existsSync(join(tree, "untracked.txt"))).toBe(false);
    expect(runGit(tree, "status", "--porcelain")).toBe("");
    expect(runGit(tree, "rev-parse", "HEAD", "HEAD~1").split("\n").slice(0, 2)).toEqual([
      base,
      headOf(scene),
    ]);
  });

  it("has no change of its own, and what is changed there is merged into the folder", async () => {
    using scene = createMergedScene();
    const worktree = await scene.open(...MERGED);
    expect([...(await scene.changesOf(worktree)).keys()]).toEqual([]);
    putFile(worktree.tree, "a.txt", "changed\n");
    const change = (await scene.changesOf(worktree)).get("a.txt")!;
    const fate = decideFileByVersions(change);
    if (fate?.kind !== "write") throw new Error(`a.txt is not to be written: ${String(fate?.kind)}`);
    expect(await scene.worktrees.texts(worktree, "a.txt")).toMatchObject({
      base: "merged\n",
      ours: "merged\n",
    });
    expect(await scene.worktrees.write(worktree, fate.write)).toBe("written");
    expect(readFile(scene.repository, "a.txt")).toBe("changed\n");
  });

  it("leaves the user's HEAD, index and branches as they are, also where the index is locked", async () => {
    using scene = createMergedScene();
    const { repository } = scene;
    runGit(repository, "add", "mine.txt");
    const index = join(repository, ".git/index");
    const before = [headOf(scene), readFileSync(index, "hex"), runGit(repository, "branch")];
    putFile(repository, ".git/index.lock", "");
    await scene.open(...MERGED);
    rmSync(`${index}.lock`);
    const branches = runGit(repository, "branch").replace(/^.*coordination.*\n/mu, "");
    expect([headOf(scene), readFileSync(index, "hex"), branches]).toEqual(before);
  });

  it("begins with HEAD alone once they are committed", async () => {
    using scene = createMergedScene();
    runGit(scene.repository, "add", ".");
    runGit(scene.repository, "commit", "--quiet", "-m", "merged");
    expect((await scene.open(...MERGED)).base).toBe(headOf(scene));
  });

  it("takes the place of what a crash left under its name, and leaves no branch when it is removed", async () => {
    using scene = createMergedScene();
    const { tree } = await scene.open(...MERGED);
    putFile(tree, "a.txt", "half done\n");
    const again = await scene.open(...MERGED);
    expect(readFile(again.tree, "a.txt")).toBe("merged\n");
    expect(await scene.worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(scene.repository, "branch", "--list", "coordination/*")).toBe("");
  });

  it("leaves another worktree as it is that git keeps under its name", async () => {
    using scene = createMergedScene();
    const { home, repository } = scene;
    const { tree } = await scene.open();
    const moved = join(home, "moved");
    runGit(repository, "worktree", "move", tree, moved);
    runGit(moved, "checkout", "--quiet", "-b", "elsewhere");
    putFile(moved, "staged.txt", "work\n");
    runGit(moved, "add", "staged.txt");
    expect(readFile((await scene.open(...MERGED)).tree, "a.txt")).toBe("merged\n");
    expect(runGit(moved, "status", "--porcelain")).toBe("A  staged.txt\n");
    expect(runGit(moved, "branch", "--show-current")).toBe("elsewhere\n");
  });

  it("takes no folder and no repository that is in the place of a merged file now", async () => {
    using scene = createMergedScene();
    const { repository } = scene;
    rmSync(join(repository, "a.txt"));
    mkdirSync(join(repository, "a.txt"));
    rmSync(join(repository, "link"));
    createRepository(join(repository, "link"), { "x.txt": "x\n" });
    const { tree } = await scene.open(...MERGED);
    expect(readFile(tree, "a.txt")).toBe("one\ntwo\nthree\n");
    expect(existsSync(join(tree, "link"))).toBe(false);
    expect(readFile(tree, "deep/run.sh")).toBe("echo\n");
  });

  it("has its work on the branch as a commit of its own, behind one with what was merged before", async () => {
    using scene = createMergedScene();
    const worktree = await scene.open(...MERGED);
    putFile(worktree.tree, "a.txt", "changed\n");
    const { branch, problem } = await scene.worktrees.keep(worktree);
    expect(problem).toBeUndefined();
    expect(runGit(scene.repository, "log", "--format=%s", `HEAD..${branch}`)).toBe(
      "Work of a step\nWork that steps of the plan merged before\n",
    );
    expect(runGit(scene.repository, "diff", "--name-only", `${branch}~1`, branch)).toBe("a.txt\n");
  });
});

it("takes no file of another repository", async () => {
  using scene = createGitScene();
  putFile(scene.repository, "a.txt", "changed\n");
  const attempt = { coordinationId: "co-1", stepId: "step", attempt: 1 } as never;
  const elsewhere = { repository: scene.home, paths: ["a.txt"] };
  const opened = await scene.worktrees.open(NAME, scene.repository, attempt, [elsewhere]);
  expect(opened).toMatchObject({ kind: "opened", base: headOf(scene) });
});

it("a worktree that cannot begin with the merged files is refused with what git says, and leaves nothing", async () => {
  using scene = createMergedScene();
  runGit(scene.repository, "config", "filter.x.clean", "false");
  runGit(scene.repository, "config", "filter.x.required", "true");
  putFile(scene.repository, ".gitattributes", "*.txt filter=x\n");
  await expect(scene.open(...MERGED)).rejects.toThrow("no worktree could be made of");
  expect(runGit(scene.repository, "branch", "--list", "coordination/*")).toBe("");
});
