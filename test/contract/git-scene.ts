/** Owns: a repository of the real git in a folder of the test, and worktrees of it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { worktreeAttemptSchema } from "../../src/agents/coordination/contracts/worktree-fields.ts";
import type {
  OpenWorktree,
  WorktreeChange,
  Worktrees,
} from "../../src/agents/coordination/ports/worktrees.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";

/** The worktree that `open` makes. */
export const NAME = "step-1-abcdef";

/** A worktree that was opened, with the folder of its files. */
export interface WorkingTree extends OpenWorktree {
  /** Where the agent works. */
  readonly tree: string;
}

export interface GitScene extends Disposable {
  /** The folder of everything. */
  readonly home: string;
  readonly repository: string;
  readonly worktrees: Worktrees;
  /** Opens a worktree that begins with these files as they are in the folder of the repository. */
  open(...merged: string[]): Promise<WorkingTree>;
  changesOf(worktree: OpenWorktree): Promise<Map<string, WorktreeChange>>;
}

export function createGitScene(): GitScene {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")));
  const repository = join(home, "repository");
  const root = join(home, "worktrees");
  createRepository(repository, { "a.txt": "one\ntwo\nthree\n" });
  const worktrees = createGitWorktrees({ root, clock: systemClock });
  const attempt = worktreeAttemptSchema.parse({ coordinationId: "co-1", stepId: "step", attempt: 1 });
  return {
    home,
    repository,
    worktrees,
    open: async (...paths) => {
      const opened = await worktrees.open(NAME, repository, attempt, [{ repository, paths }]);
      if (opened.kind === "refused") throw new Error(opened.message);
      return { name: NAME, repository: opened.repository, base: opened.base, tree: opened.folder };
    },
    changesOf: async (worktree) => {
      const compared = await worktrees.compare(worktree);
      if (compared.kind !== "compared") throw new Error(compared.message);
      return new Map(compared.changes.map((change) => [change.path, change]));
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** Makes a repository with one commit. */
export function createRepository(folder: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(folder, { recursive: true });
  runGit(folder, "init", "--quiet");
  for (const [name, text] of Object.entries(files)) putFile(folder, name, text);
  runGit(folder, "add", ".");
  runGit(folder, "commit", "--quiet", "-m", "base");
}

export function runGit(folder: string, ...args: string[]): string {
  const settings = ["user.name=t", "user.email=t@t", "init.defaultBranch=main", "protocol.file.allow=always"];
  const options = settings.flatMap((setting) => ["-c", setting]);
  return execFileSync("git", [...options, ...args], { cwd: folder, encoding: "utf8", stdio: "pipe" });
}

export function putFile(folder: string, name: string, text: string): void {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
