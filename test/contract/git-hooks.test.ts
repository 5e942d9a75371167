/** Owns: hooks that settings of git name, as git runs them since 2.54: ours runs none, and people hear of new ones. */
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";
import type { Worktrees } from "../../src/agents/coordination/ports/worktrees.ts";
import { createGitScene, createRepository, NAME, putFile, runGit, type GitScene } from "./git-scene.ts";

const hasRun = ({ home }: GitScene): boolean => existsSync(join(home, "ran"));
const listBranches = ({ repository }: GitScene): string =>
  runGit(repository, "branch", "--list", "coordination/*");

/** Names a hook in the settings that runs when a branch changes. */
function addHook({ home, repository }: GitScene, name: string | Buffer): void {
  const rest = `"]\n\tevent = reference-transaction\n\tcommand = touch ${home}/ran\n`;
  appendFileSync(
    join(repository, ".git/config"),
    Buffer.concat([Buffer.from('[hook "'), Buffer.from(name), Buffer.from(rest)]),
  );
}

/** Returns the worktrees of the scene with a git that runs hooks of the settings, and makes sure that it does. */
function useHooks(scene: GitScene): Worktrees {
  const program = join(scene.home, "git-with-hooks");
  const script = `#!/bin/sh
case " $* " in
*" add "* | *" branch "* | *" commit "* | *" reset "* | *" update-ref "*)
  exec '${process.execPath}' '${join(import.meta.dirname, "git-with-hooks.ts")}' "$@" ;;
esac
exec git "$@"
`;
  writeFileSync(program, script, { mode: 0o755 });
  execFileSync(program, ["branch", "control"], { cwd: scene.repository });
  expect(hasRun(scene)).toBe(true);
  rmSync(join(scene.home, "ran"));
  return createGitWorktrees({ root: join(scene.home, "worktrees"), clock: systemClock, program });
}

describe("a hook that the settings of git name", () => {
  it("is not run where an agent added it, whatever its name, and people hear of it", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    putFile(worktree.tree, "a.txt", "changed\n");
    for (const name of ["x", "a=b", "Lint Staged.x", ""]) addHook(scene, name);
    const worktrees = useHooks(scene);
    const message = expect.stringContaining("hook.*") as string;
    expect(await worktrees.compare(worktree)).toMatchObject({ kind: "too_much", message });
    expect((await worktrees.keep(worktree)).problem).toContain("hook.*");
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(listBranches(scene)).toBe("");
    expect(hasRun(scene)).toBe(false);
  });

  it("is not run either where it was there before, and is no change", async () => {
    using scene = createGitScene();
    addHook(scene, "x");
    const worktrees = useHooks(scene);
    const worktree = await scene.open();
    putFile(worktree.tree, "a.txt", "changed\n");
    expect(await worktrees.compare(worktree)).toMatchObject({ kind: "compared" });
    expect(await worktrees.keep(worktree)).not.toHaveProperty("problem");
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(hasRun(scene)).toBe(false);
  });

  it("is not run where its name is no UTF-8: the branch is left, and said to be", async () => {
    using scene = createGitScene();
    await scene.open();
    addHook(scene, Buffer.from([0x78, 0xff]));
    expect(await scene.worktrees.remove(NAME)).toContain(
      "the name of a hook in the settings of git is no UTF-8",
    );
    expect(listBranches(scene)).not.toBe("");
  });

  it("is for people where it is in those of a repository inside", async () => {
    using scene = createGitScene();
    const worktree = await scene.open();
    const inner = join(worktree.tree, "inner");
    createRepository(inner, { "x.txt": "x\n" });
    runGit(inner, "config", "hook.x.command", "true");
    expect(await scene.worktrees.compare(worktree)).toMatchObject({ kind: "too_much" });
    expect((await scene.worktrees.keep(worktree)).problem).toContain('("hook.x.command")');
  });
});
