/** Runs of git that others interfere with: programs of the repository, and a process that has no files left. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, expect, it, vi } from "vitest";
import { createGitScene, createRepository, NAME, putFile, runGit, type GitScene } from "./git-scene.ts";

/** Has git run a program of the operator over every text. */
const addFilter = ({ repository }: GitScene, clean: string): void => {
  putFile(repository, ".gitattributes", "*.txt filter=x\n");
  runGit(repository, "add", ".");
  runGit(repository, "commit", "--quiet", "-m", "filter");
  runGit(repository, "config", "filter.x.clean", clean);
};

afterEach(() => {
  vi.unstubAllEnvs();
});

it("ends though a process that left its group keeps what git says of its errors open", async () => {
  using scene = createGitScene();
  const pids = join(scene.home, "pids");
  addFilter(scene, `setsid sh -c 'echo $$ >>${pids}; exec sleep 45' </dev/null >/dev/null & cat`);
  try {
    const worktree = await scene.open();
    putFile(worktree.tree, "a.txt", "theirs\n");
    const compared = await Promise.race([scene.worktrees.compare(worktree), wait(30_000, "no answer")]);
    expect(compared).toMatchObject({ kind: "compared", changes: [{ path: "a.txt" }] });
  } finally {
    for (const pid of readFileSync(pids, "utf8").trim().split("\n")) killIfThere(Number(pid));
  }
});

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

it("hands programs of the repository no secret of the gateway", async () => {
  using scene = createGitScene();
  const seen = join(scene.home, "seen");
  vi.stubEnv("PROVIDER_API_KEY", "secret");
  vi.stubEnv("GIT_TRACE", "2");
  vi.stubEnv("XDG_CONFIG_HOME", join(scene.home, "config"));
  addFilter(scene, `env >>${seen}; cat`);
  const worktree = await scene.open();
  putFile(worktree.tree, "a.txt", "theirs\n");
  await scene.changesOf(worktree);
  const names = readFileSync(seen, "utf8").split("\n");
  expect(names).toContain(`XDG_CONFIG_HOME=${join(scene.home, "config")}`);
  expect(names.filter((name) => /^(?:PROVIDER_API_KEY|GIT_TRACE)=/u.test(name))).toEqual([]);
});

it("says that git could not be started where the process has no files left, and lives", async () => {
  using scene = createGitScene();
  const program = join(import.meta.dirname, "starved-git.ts");
  const args = ["-c", 'ulimit -n 64 && exec "$0" "$1"', process.execPath, program];
  const { stdout } = await promisify(execFile)("sh", args, { cwd: scene.repository });
  const answers = JSON.parse(stdout) as string[];
  expect(answers).toHaveLength(9);
  expect(answers[0]).toContain("git could not be started: spawn git EMFILE");
  expect(answers.at(-1)).toBe("none");
});

it.each(["named by a commit", "new"])(
  "runs no program of a repository inside of a worktree that is %s",
  async (how) => {
    using scene = createGitScene();
    const worktree = await scene.open();
    const inner = join(worktree.tree, "inner");
    createRepository(inner, { "x.txt": "x\n", ".gitattributes": "*.txt filter=x\n" });
    if (how === "named by a commit") {
      runGit(worktree.tree, "add", "inner");
      runGit(worktree.tree, "commit", "--quiet", "-m", "inner");
    }
    runGit(inner, "config", "filter.x.clean", `touch ${join(scene.home, "PWNED")}; cat`);
    putFile(inner, "x.txt", "changed\n");
    expect(await scene.worktrees.compare(worktree)).toMatchObject({ kind: "too_much" });
    expect((await scene.worktrees.keep(worktree)).problem).toContain(
      '"inner" names programs of its own ("filter.x.clean")',
    );
    expect(await scene.worktrees.remove(NAME)).toBeUndefined();
    expect(existsSync(join(scene.home, "PWNED"))).toBe(false);
  },
);

it("does not look into a repository inside whose name is no UTF-8", async () => {
  using scene = createGitScene();
  const worktree = await scene.open();
  const inner = join(worktree.tree, "inner");
  createRepository(inner, { "x.txt": "x\n", ".gitattributes": "*.txt filter=x\n" });
  runGit(inner, "config", "filter.x.clean", `touch ${join(scene.home, "PWNED")}; cat`);
  putFile(inner, "x.txt", "changed\n");
  renameSync(inner, Buffer.concat([Buffer.from(`${inner}-`), Buffer.from([0xff])]));
  expect(await scene.worktrees.compare(worktree)).toMatchObject({ kind: "too_much" });
  expect((await scene.worktrees.keep(worktree)).problem).toContain("is no UTF-8");
  expect(existsSync(join(scene.home, "PWNED"))).toBe(false);
});
