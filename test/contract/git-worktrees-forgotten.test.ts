/** Worktrees that the next start finds, and whose coordination the ledger does not have. */
import { execFileSync } from "node:child_process";
import { rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { worktreeAttemptSchema } from "../../src/agents/coordination/contracts/worktree-fields.ts";
import { removeForgottenWorktrees } from "../../src/agents/coordination/runtime/worktrees/remove-forgotten.ts";
import { createTurnsByName } from "../../src/agents/coordination/std/turns-by-name.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";
import { createGitScene, createRepository, NAME, runGit, type GitScene } from "./git-scene.ts";

const ATTEMPT = worktreeAttemptSchema.parse({ coordinationId: "co-1", stepId: "step", attempt: 1 });
const BRANCH = `coordination/${NAME}`;

/** Starts with a ledger that has no coordination. Returns the warnings. */
async function startWithout({ worktrees }: Pick<GitScene, "worktrees">): Promise<string[]> {
  const warnings: string[] = [];
  const unopened = { kind: "unopened", coordinationId: "co-1", nextSequence: 0 };
  const dependencies = {
    runs: { findOnDisk: (_: string, find: (state: object) => unknown) => Promise.resolve(find(unopened)) },
    worktrees,
    worktreeTurns: createTurnsByName(),
    logger: { warn: (_: object, message: string) => warnings.push(message) },
  };
  await removeForgottenWorktrees(dependencies as never, new AbortController().signal);
  return warnings;
}

it("a worktree is warned of at each start until somebody has done what the warning says, in whatever folder", async () => {
  using scene = createGitScene();
  const [repository, root] = [join(scene.home, "My Files"), join(scene.home, "It's all")];
  createRepository(repository, { "a.txt": "one\n" });
  const worktrees = createGitWorktrees({ root, clock: systemClock });
  expect(await worktrees.open(NAME, repository, ATTEMPT, [])).toMatchObject({ kind: "opened" });
  const [warning = "", ...others] = await startWithout({ worktrees });
  expect(others).toEqual([]);
  expect(await startWithout({ worktrees })).toEqual([warning]);
  for (const [, command = ""] of warning.matchAll(/`([^`]+)`/gu))
    execFileSync("sh", ["-c", command], { cwd: scene.home, stdio: "pipe" });
  expect(runGit(repository, "worktree", "list", "--porcelain")).not.toContain(NAME);
  expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
  expect(await startWithout({ worktrees })).toEqual([]);
});

describe("the note of a worktree that somebody removed", () => {
  /** Opens a worktree, lets somebody remove some of it, and starts that many days later. Returns the names that are noted then. */
  async function listAfter(days: number, remove: (scene: GitScene, tree: string) => void): Promise<string[]> {
    using scene = createGitScene();
    const { tree } = await scene.open();
    remove(scene, tree);
    const seconds = Date.now() / 1_000 - days * 86_400;
    utimesSync(join(scene.home, "worktrees", `${NAME}.repository`), seconds, seconds);
    expect(await startWithout(scene)).toEqual([]);
    return (await scene.worktrees.list()).map(({ name }) => name);
  }
  const removeEntry = ({ repository }: GitScene, tree: string): unknown =>
    runGit(repository, "worktree", "remove", "--force", tree);
  const removeAll = (scene: GitScene, tree: string): void => {
    removeEntry(scene, tree);
    runGit(scene.repository, "branch", "-D", BRANCH);
  };

  it("is removed where nothing of it is left", async () => {
    expect(await listAfter(1.1, removeAll)).toEqual([]);
  });

  it("is removed where the repository is gone, too", async () => {
    const removeBoth = ({ repository }: GitScene, tree: string): void => {
      for (const folder of [tree, repository]) rmSync(folder, { recursive: true });
    };
    expect(await listAfter(1.1, removeBoth)).toEqual([]);
  });

  it("stays where the branch is still there, or what git keeps of it", async () => {
    expect(await listAfter(1.1, removeEntry)).toEqual([NAME]);
    const removeBranch = ({ repository }: GitScene, tree: string): void => {
      rmSync(tree, { recursive: true });
      runGit(repository, "update-ref", "-d", `refs/heads/${BRANCH}`);
    };
    expect(await listAfter(1.1, removeBranch)).toEqual([NAME]);
  });

  it("stays for a day, because another process may be about to make the worktree", async () => {
    expect(await listAfter(0.9, removeAll)).toEqual([NAME]);
  });
});
