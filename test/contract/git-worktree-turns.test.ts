/** Owns: what waits for git: worktrees of one repository not for another one, and a merged file for one run. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { worktreeAttemptSchema } from "../../src/agents/coordination/contracts/worktree-fields.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";
import { createGitScene, createRepository, NAME, putFile, runGit } from "./git-scene.ts";

const attempt = worktreeAttemptSchema.parse({ coordinationId: "co-1", stepId: "step", attempt: 1 });

it("a worktree is made and removed while git checks out a large one of another repository", async () => {
  using scene = createGitScene();
  const { home, repository } = scene;
  const [large, gate, program] = [join(home, "large"), join(home, "gate"), join(home, "slow-git")];
  createRepository(large, { "b.txt": "b\n" });
  execFileSync("mkfifo", [gate]);
  const script = `#!/bin/sh
case "$PWD $*" in
"${large} "*" worktree add "*) read -r line < '${gate}' ;;
esac
exec git "$@"
`;
  writeFileSync(program, script, { mode: 0o755 });
  const worktrees = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
  const slow = worktrees.open("large-1", large, attempt, []);
  try {
    expect(await worktrees.open(NAME, repository, attempt, [])).toMatchObject({ kind: "opened" });
    expect(await worktrees.remove(NAME)).toBeUndefined();
    expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
  } finally {
    await writeFile(gate, "go\n");
    expect(await slow).toMatchObject({ kind: "opened" });
  }
}, 20_000);

it("a worktree is not made whose attempt is over when git has time for it", async () => {
  using scene = createGitScene();
  const { home, repository } = scene;
  const [gate, begun, program] = [join(home, "gate"), join(home, "begun"), join(home, "slow-git")];
  execFileSync("mkfifo", [gate, begun]);
  const script = `#!/bin/sh
case "$*" in
*" worktree add "*) echo "$*" > '${begun}'; read -r line < '${gate}' ;;
esac
exec git "$@"
`;
  writeFileSync(program, script, { mode: 0o755 });
  const worktrees = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
  const over = new AbortController();
  const slow = worktrees.open("slow-1", repository, attempt, []);
  await readFile(begun);
  const late = worktrees.open(NAME, repository, { ...attempt, signal: over.signal }, []);
  over.abort();
  await writeFile(gate, "go\n");
  expect(await slow).toMatchObject({ kind: "opened" });
  // It would wait for this test if it ran git.
  expect(await late).toMatchObject({ kind: "refused" });
  expect((await worktrees.list()).map(({ name }) => name)).toEqual(["slow-1"]);
}, 20_000);

it("a file is written with one run of git, because no call is ruled on meanwhile", async () => {
  using scene = createGitScene();
  const { home } = scene;
  const [runs, program] = [join(home, "runs"), join(home, "counted-git")];
  writeFileSync(program, `#!/bin/sh\necho run >> '${runs}'\nexec git "$@"\n`, { mode: 0o755 });
  const worktrees = createGitWorktrees({ root: join(home, "worktrees"), clock: systemClock, program });
  const worktree = await scene.open();
  putFile(worktree.tree, "a.txt", "changed\n");
  const { theirs, ours } = (await scene.changesOf(worktree)).get("a.txt") ?? {};
  const write = { path: "a.txt", before: ours ?? "", after: theirs ?? "" };
  expect(await worktrees.write(worktree, write)).toBe("written");
  expect(readFileSync(runs, "utf8")).toBe("run\n");
});
