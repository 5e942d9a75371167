/** Worktrees with the real git, in folders of the test. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { worktreeAttemptSchema } from "../../src/agents/coordination/contracts/worktree-fields.ts";
import type { OpenWorktree, Worktrees } from "../../src/agents/coordination/ports/worktrees.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";

const NAME = "step-1-abcdef";
const ATTEMPT = worktreeAttemptSchema.parse({ coordinationId: "co-1", stepId: "step", attempt: 1 });

let home: string;
let repository: string;
let root: string;
let worktrees: Worktrees;

function runGit(folder: string, ...args: string[]): string {
  const options = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...options, ...args], { cwd: folder, encoding: "utf8", stdio: "pipe" });
}

const put = (folder: string, name: string, text: string): void => {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), text);
};
const textOf = (folder: string, name: string): string => readFileSync(join(folder, name), "utf8");

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")));
  repository = join(home, "repository");
  root = join(home, "worktrees");
  mkdirSync(repository);
  runGit(repository, "init", "--quiet");
  put(repository, "a.txt", "one\ntwo\nthree\n");
  put(repository, "below/b.txt", "b\n");
  put(repository, ".gitignore", "ignored\n");
  runGit(repository, "add", ".");
  runGit(repository, "commit", "--quiet", "-m", "base");
  worktrees = createGitWorktrees({ root, clock: systemClock });
});

afterEach(() => {
  rmSync(home, { recursive: true, force: true });
});

interface WorkingTree extends OpenWorktree {
  readonly tree: string;
}

async function open(folder = repository): Promise<WorkingTree> {
  const opened = await worktrees.open(NAME, folder, ATTEMPT, []);
  if (opened.kind === "refused") throw new Error(opened.message);
  return { name: NAME, repository: opened.repository, base: opened.base, tree: opened.folder };
}

async function changesOf(worktree: OpenWorktree) {
  const compared = await worktrees.compare(worktree);
  if (compared.kind !== "compared") throw new Error(compared.message);
  return new Map(compared.changes.map((change) => [change.path, change]));
}

const listBranches = (): string => runGit(repository, "branch", "--list", "coordination/*");
const expectNothingLeft = (): void => {
  expect(existsSync(root) ? readdirSync(root) : []).toEqual([]);
  expect(listBranches()).toBe("");
  expect(runGit(repository, "worktree", "list").trim().split("\n")).toHaveLength(1);
};

describe("a worktree", () => {
  it("is made from HEAD, in a folder that only its owner may enter", async () => {
    const { tree, base } = await open();
    expect(textOf(tree, "a.txt")).toBe("one\ntwo\nthree\n");
    expect(base).toBe(runGit(repository, "rev-parse", "HEAD").trim());
    expect(statSync(root).mode & 0o777).toBe(0o700);
    expect(listBranches()).toContain(`coordination/${NAME}`);
  });

  it("has the agent work below it where its own folder is below the repository", async () => {
    const { tree } = await open(join(repository, "below"));
    expect(tree).toBe(join(root, NAME, "below"));
    expect(textOf(tree, "b.txt")).toBe("b\n");
  });

  it("does not have what is not committed, and leaves it where it is", async () => {
    put(repository, "a.txt", "mine\n");
    put(repository, "new.txt", "mine\n");
    const { tree } = await open();
    expect(textOf(tree, "a.txt")).toBe("one\ntwo\nthree\n");
    expect(existsSync(join(tree, "new.txt"))).toBe(false);
    expect(textOf(repository, "a.txt")).toBe("mine\n");
  });

  it("runs no hook of the repository", async () => {
    const hook = join(repository, ".git/hooks/post-checkout");
    writeFileSync(hook, `#!/bin/sh\ntouch ${home}/hooked\n`);
    chmodSync(hook, 0o755);
    await open();
    expect(existsSync(join(home, "hooked"))).toBe(false);
  });

  it("is made while the index of the repository is locked", async () => {
    writeFileSync(join(repository, ".git/index.lock"), "");
    expect(textOf((await open()).tree, "a.txt")).toBe("one\ntwo\nthree\n");
  });

  it("takes the place of what a crash left under its name", async () => {
    const { tree } = await open();
    put(tree, "a.txt", "half done\n");
    runGit(tree, "worktree", "lock", tree);
    const again = await open();
    expect(textOf(again.tree, "a.txt")).toBe("one\ntwo\nthree\n");
  });
});

describe("the worktrees of a machine", () => {
  const noteOf = (name: string): string => join(root, `${name}.repository`);

  it("are listed with their attempts, also by the next process, until they are removed", async () => {
    expect(await worktrees.list()).toEqual([]);
    await open();
    const next = createGitWorktrees({ root, clock: systemClock });
    const [folder, branch] = [join(root, NAME), `coordination/${NAME}`];
    const place = { repository, folder, hasFolder: true, branch };
    expect(await next.list()).toEqual([{ name: NAME, ...ATTEMPT, ...place }]);
    expect(statSync(noteOf(NAME)).mode & 0o777).toBe(0o600);
    await next.remove(NAME);
    expect(await worktrees.list()).toEqual([]);
  });

  it("are listed where a crash left only the note", async () => {
    await open();
    rmSync(join(root, NAME), { recursive: true });
    expect(await worktrees.list()).toHaveLength(1);
  });

  it("are not listed where the note does not say for what attempt, and are removed by their names", async () => {
    await open();
    writeFileSync(noteOf(NAME), repository);
    writeFileSync(noteOf("cut-off"), '{"repository":"/so');
    expect(await worktrees.list()).toEqual([]);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(await worktrees.remove("cut-off")).toBeUndefined();
    expectNothingLeft();
  });

  it("cannot be listed where their folder is none", async () => {
    writeFileSync(root, "");
    await expect(worktrees.list()).rejects.toThrow("ENOTDIR");
  });
});

describe("a folder without a worktree", () => {
  it.each([
    ["is in no git repository", () => home],
    ["is not there", () => join(home, "missing")],
  ])("%s, and says so", async (sentence, folder) => {
    expect(await worktrees.findObstacle(folder())).toContain(sentence);
    expect(await worktrees.open(NAME, folder(), ATTEMPT, [])).toMatchObject({ kind: "refused" });
  });

  it("is bare, and says so", async () => {
    runGit(home, "init", "--quiet", "--bare", "bare");
    expect(await worktrees.findObstacle(join(home, "bare"))).toContain("is bare");
  });

  it("has no commit, and says so", async () => {
    runGit(home, "init", "--quiet", "empty");
    expect(await worktrees.findObstacle(join(home, "empty"))).toContain("has no commit yet");
  });

  it("has no git, and says so", async () => {
    const without = createGitWorktrees({ root, clock: systemClock, program: "no-such-git" });
    expect(await without.findObstacle(repository)).toContain("git is not installed");
  });

  it("has an unusable folder for worktrees, and says so", async () => {
    writeFileSync(root, "");
    expect(await worktrees.open(NAME, repository, ATTEMPT, [])).toMatchObject({ kind: "refused" });
  });
});

describe("comparing", () => {
  it("finds commits, uncommitted and untracked files, and leaves out ignored ones", async () => {
    const worktree = await open();
    put(worktree.tree, "committed.txt", "c\n");
    runGit(worktree.tree, "add", "committed.txt");
    runGit(worktree.tree, "commit", "--quiet", "-m", "work");
    put(worktree.tree, "a.txt", "changed\n");
    put(worktree.tree, "deep/new.txt", "n\n");
    put(worktree.tree, "ignored", "i\n");
    rmSync(join(worktree.tree, "below/b.txt"));
    const changes = await changesOf(worktree);
    expect([...changes.keys()].toSorted()).toEqual(["a.txt", "below/b.txt", "committed.txt", "deep/new.txt"]);
    expect(changes.get("below/b.txt")).toMatchObject({ theirs: "absent" });
    expect(changes.get("deep/new.txt")).toMatchObject({ base: "absent", ours: "absent" });
    expect(changes.get("a.txt")?.ours).toBe(changes.get("a.txt")?.base);
  });

  it("finds nothing where the agent left the branch and changed nothing", async () => {
    const worktree = await open();
    runGit(worktree.tree, "checkout", "--quiet", "-b", "elsewhere");
    expect([...(await changesOf(worktree)).keys()]).toEqual([]);
  });

  it("knows names with newlines, quotes and blanks", async () => {
    const worktree = await open();
    const name = 'od\nd "name" ü.txt';
    put(worktree.tree, name, "x\n");
    expect([...(await changesOf(worktree)).keys()]).toEqual([name]);
  });

  it("tells what is no file: a repository inside, and a link on the way", async () => {
    const worktree = await open();
    runGit(worktree.tree, "init", "--quiet", "inner");
    put(worktree.tree, "inner/x", "x");
    symlinkSync("/", join(repository, "out"));
    put(worktree.tree, "out/etc.txt", "x\n");
    const changes = await changesOf(worktree);
    expect(changes.get("inner/")).toMatchObject({ theirs: "folder" });
    expect(changes.get("out/etc.txt")).toMatchObject({ ours: "other" });
  });

  it("works while the agent left a lock and the middle of a merge behind", async () => {
    const worktree = await open();
    put(worktree.tree, "a.txt", "theirs\n");
    runGit(worktree.tree, "commit", "--quiet", "-am", "theirs");
    runGit(worktree.tree, "checkout", "--quiet", "-b", "other", "HEAD~1");
    put(worktree.tree, "a.txt", "other\n");
    runGit(worktree.tree, "commit", "--quiet", "-am", "other");
    expect(() => runGit(worktree.tree, "merge", `coordination/${NAME}`)).toThrow();
    writeFileSync(join(repository, ".git/worktrees", NAME, "index.lock"), "");
    const changes = await changesOf(worktree);
    expect([...changes.keys()]).toEqual(["a.txt"]);
    expect(changes.get("a.txt")?.base).toBe(changes.get("a.txt")?.ours);
  });

  it("runs no program that the agent wrote down in its worktree", async () => {
    const worktree = await open();
    const { tree } = worktree;
    const ran = join(home, "ran");
    const evil = join(tree, "evil");
    put(evil, "HEAD", `${worktree.base}\n`);
    put(evil, "objects/info/alternates", `${join(repository, ".git/objects")}\n`);
    put(evil, "refs/heads/x", `${worktree.base}\n`);
    const settings = [`[core]`, `repositoryformatversion = 0`, `[filter "x"]`];
    put(
      evil,
      "config",
      [...settings, `clean = touch ${ran}; cat`, `smudge = touch ${ran}; cat`, ""].join("\n"),
    );
    put(tree, ".gitattributes", "* filter=x\n");
    put(tree, ".git", `gitdir: ${evil}\n`);
    put(tree, "a.txt", "theirs\n");
    expect((await changesOf(worktree)).get("a.txt")?.base).toMatch(/^100644 /u);
    await worktrees.texts(worktree, "a.txt");
    await worktrees.keep(worktree);
    expect(existsSync(ran)).toBe(false);
    expect(runGit(repository, "show", `coordination/${NAME}:a.txt`)).toBe("theirs\n");
  });

  it("gives up on more files than are merged without people", async () => {
    const worktree = await open();
    for (let number = 0; number < 251; number += 1) put(worktree.tree, `many/${number}`, "x\n");
    expect(await worktrees.compare(worktree)).toMatchObject({ kind: "too_much" });
  });

  it("gives up on names that are longer together than one event may be", async () => {
    const worktree = await open();
    const folder = Array.from({ length: 4 }, () => "n".repeat(200)).join("/");
    for (let number = 0; number < 200; number += 1) put(worktree.tree, `${folder}/${number}`, "x\n");
    expect(await worktrees.compare(worktree)).toMatchObject({ kind: "too_much" });
  });

  it.each([
    ["absent", "its folder"],
    ["failed", "what git keeps of it"],
  ])("is %s where %s is not there any more", async (kind, missing) => {
    const worktree = await open();
    const kept = join(repository, ".git/worktrees", NAME);
    rmSync(missing === "its folder" ? worktree.tree : kept, { recursive: true });
    expect(await worktrees.compare(worktree)).toMatchObject({ kind });
  });
});

describe("writing a file", () => {
  it("takes it from the worktree, with its mode, and is done when done again", async () => {
    const worktree = await open();
    put(worktree.tree, "deep/run.sh", "echo\n");
    chmodSync(join(worktree.tree, "deep/run.sh"), 0o755);
    const change = (await changesOf(worktree)).get("deep/run.sh");
    const write = { path: "deep/run.sh", before: "absent", after: change?.theirs ?? "" };
    expect(await worktrees.write(worktree, write)).toBe("written");
    expect(await worktrees.write(worktree, write)).toBe("written");
    expect(textOf(repository, "deep/run.sh")).toBe("echo\n");
    expect(statSync(join(repository, "deep/run.sh")).mode & 0o100).toBe(0o100);
    expect(readdirSync(join(repository, "deep"))).toEqual(["run.sh"]);
  });

  it("writes a merged text under the version that it was told", async () => {
    const worktree = await open();
    const { ours } = await changeAfter(worktree, "a.txt", "changed\n");
    const merged = { path: "a.txt", text: "merged\n", mode: "100644" };
    const after = (await worktrees.versionOf(worktree, merged)) ?? "";
    expect(await worktrees.write(worktree, { path: "a.txt", before: ours, after, text: "merged\n" })).toBe(
      "written",
    );
    expect((await changesOf(worktree)).get("a.txt")?.ours).toBe(after);
  });

  it("deletes it, and the folder that has nothing else in it", async () => {
    const worktree = await open();
    rmSync(join(worktree.tree, "below"), { recursive: true });
    const before = (await changesOf(worktree)).get("below/b.txt")?.ours ?? "";
    expect(await worktrees.write(worktree, { path: "below/b.txt", before, after: "absent" })).toBe("written");
    expect(existsSync(join(repository, "below"))).toBe(false);
  });

  it("leaves what was changed meanwhile", async () => {
    const worktree = await open();
    const { ours, theirs } = await changeAfter(worktree, "a.txt", "changed\n");
    put(repository, "a.txt", "somebody\n");
    const write = { path: "a.txt", before: ours, after: theirs };
    expect(await worktrees.write(worktree, write)).toBe("changed_meanwhile");
    expect(textOf(repository, "a.txt")).toBe("somebody\n");
  });

  it("makes a link where the worktree has one", async () => {
    const worktree = await open();
    symlinkSync("a.txt", join(worktree.tree, "link"));
    const after = (await changesOf(worktree)).get("link")?.theirs ?? "";
    expect(await worktrees.write(worktree, { path: "link", before: "absent", after })).toBe("written");
    expect(textOf(repository, "link")).toBe("one\ntwo\nthree\n");
  });
});

async function changeAfter(worktree: WorkingTree, path: string, text: string) {
  put(worktree.tree, path, text);
  return (await changesOf(worktree)).get(path) ?? { ours: "", theirs: "" };
}

describe("removing", () => {
  it("leaves nothing behind, whatever the agent did there", async () => {
    const { tree } = await open();
    put(tree, "a.txt", "changed\n");
    runGit(tree, "commit", "--quiet", "-am", "work");
    put(tree, "new.txt", "new\n");
    runGit(tree, "worktree", "lock", tree);
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expectNothingLeft();
  });

  it("is done when done again, and for what was never made", async () => {
    await open();
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expectNothingLeft();
  });

  it.each(["the folder", "the administration"])("removes the rest where %s is gone", async (missing) => {
    const { tree } = await open();
    rmSync(missing === "the folder" ? tree : join(repository, ".git/worktrees", NAME), { recursive: true });
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expectNothingLeft();
  });

  it("removes its folder where the repository is gone", async () => {
    await open();
    rmSync(repository, { recursive: true });
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(readdirSync(root)).toEqual([]);
  });
});

it("keeps all work of an agent on the branch, for people to merge", async () => {
  const worktree = await open();
  put(worktree.tree, "new.txt", "new\n");
  const { branch } = await worktrees.keep(worktree);
  expect(runGit(repository, "show", `${branch}:new.txt`)).toBe("new\n");
});
