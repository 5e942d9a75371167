/**
 * Owns: `Worktrees` with the git program. Every worktree has a folder, a branch and a note of its repository under one name,
 * below a folder of ours that only its owner may enter.
 *
 * 1. The note is written before the worktree is made and deleted after it is gone: whatever a crash leaves can be removed.
 * 2. Git works on one worktree at a time here: two at once could get the same place in the repository.
 */
import { chmod, lstat, mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { MergedPaths, WorktreeAttempt } from "../../agents/coordination/contracts/worktree-fields.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { OpenWorktree, WorktreeOpened, Worktrees } from "../../agents/coordination/ports/worktrees.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { createTurnsByName } from "../../agents/coordination/std/turns-by-name.ts";
import { removeFolder } from "../files/remove-folder.ts";
import { checkOutBase } from "./check-out-base.ts";
import { hashPrograms } from "./foreign-programs.ts";
import { forgetTree } from "./forget-tree.ts";
import { keepWork } from "./keep-work.ts";
import { lookAtRepository } from "./look-at-repository.ts";
import { createRunGit, type RunGit } from "./run-git.ts";
import { deleteNote, listNotedWorktrees, readNote, writeNote } from "./worktree-note.ts";
import { readTexts, writeFileWhole } from "./worktree-files.ts";
import { compareWorktree, hashText, isAbsent, lookAt, type WorktreeOnDisk } from "./worktree-changes.ts";

const BRANCH_PREFIX = "coordination/";

export interface GitWorktreesOptions {
  /** Where the worktrees are; made with the first one. */
  readonly root: string;
  readonly clock: Clock;
  /** The git program. */
  readonly program?: string;
}

interface Dependencies {
  readonly root: string;
  readonly git: RunGit;
}

export function createGitWorktrees({ root, clock, program }: GitWorktreesOptions): Worktrees {
  const dependencies: Dependencies = { root, git: createRunGit(clock, program) };
  const turns = createTurnsByName();
  return {
    findObstacle: async (folder) => {
      const look = await lookAtRepository(dependencies.git, folder);
      return look.kind === "unusable" ? look.message : undefined;
    },
    open: (name, folder, attempt, merged) =>
      turns.run(root, () => openWorktree(dependencies, { name, folder, attempt, merged })),
    list: () => turns.run(root, () => listNotedWorktrees(root)),
    compare: async (worktree) => compareWorktree(dependencies.git, await locate(dependencies, worktree)),
    texts: async (worktree, path) => readTexts(dependencies.git, await locate(dependencies, worktree), path),
    versionOf: (worktree, file) => hashText(dependencies.git, worktree.repository, file),
    write: async (worktree, write) =>
      writeFileWhole(dependencies.git, await locate(dependencies, worktree), write),
    keep: (worktree) =>
      turns.run(root, async () => {
        const onDisk = await locate(dependencies, worktree);
        return keepWork(dependencies.git, onDisk, BRANCH_PREFIX + worktree.name);
      }),
    remove: (name) => turns.run(root, () => removeWorktree(dependencies, name)),
  };
}

async function locate(dependencies: Dependencies, worktree: OpenWorktree): Promise<WorktreeOnDisk> {
  const { name, repository } = worktree;
  const gitDir = await locateGitDir(dependencies, repository, name);
  const note = await readNote(dependencies.root, name).catch(() => undefined);
  return { ...worktree, tree: join(dependencies.root, name), gitDir, note };
}

/** Git names what it keeps of a worktree like its folder, whose name is ours alone. */
async function locateGitDir({ git }: Dependencies, repository: string, name: string): Promise<string> {
  const args = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
  const answer = await git({ folder: repository, args });
  const shared =
    answer.kind === "done" ? answer.output.toString("utf8").replace(/\n$/u, "") : join(repository, ".git");
  return join(shared, "worktrees", name);
}

interface ToOpen {
  readonly name: string;
  /** The folder of the agent. */
  readonly folder: string;
  readonly attempt: WorktreeAttempt;
  /** Files that the base is to have as they are in the folder of their repository. */
  readonly merged: readonly MergedPaths[];
}

async function openWorktree(
  dependencies: Dependencies,
  { name, folder, attempt, merged }: ToOpen,
): Promise<WorktreeOpened> {
  const look = await lookAtRepository(dependencies.git, folder);
  if (look.kind === "unusable") return { kind: "refused", message: look.message };
  const { top, below, head } = look;
  const tree = join(dependencies.root, name);
  try {
    await makeRoot(dependencies.root);
    const left = await removeWorktree(dependencies, name);
    if (left !== undefined) return { kind: "refused", message: left };
    await writeNote(dependencies.root, name, { repository: top, attempt });
  } catch (error) {
    return { kind: "refused", message: `the folder for worktrees cannot be used: ${describeError(error)}` };
  }
  try {
    const paths = merged.filter(({ repository }) => repository === top).flatMap((files) => files.paths);
    const branch = BRANCH_PREFIX + name;
    const base = await checkOutBase(dependencies.git, { repository: top, tree, branch, head, paths });
    const gitDir = await locateGitDir(dependencies, top, name);
    const filters = await hashPrograms(dependencies.git, { tree, gitDir, repository: top });
    await writeNote(dependencies.root, name, { repository: top, attempt, filters });
    await mkdir(join(tree, below), { recursive: true });
    return { kind: "opened", repository: top, base, folder: join(tree, below), branch };
  } catch (error) {
    await removeWorktree(dependencies, name);
    return { kind: "refused", message: `no worktree could be made of ${top}: ${describeError(error)}` };
  }
}

async function makeRoot(root: string): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  const facts = await lstat(root);
  if (!facts.isDirectory()) throw new Error(`${root} is not a folder`);
  await chmod(root, 0o700);
}

/** Removes what there is under the name. Returns what could not be removed. */
async function removeWorktree(dependencies: Dependencies, name: string): Promise<string | undefined> {
  const tree = join(dependencies.root, name);
  try {
    const repository = (await readNote(dependencies.root, name))?.repository;
    if (repository !== undefined)
      await dependencies.git({
        folder: repository,
        args: ["worktree", "remove", "--force", "--force", tree],
      });
    await removeFolder(tree);
    if (repository !== undefined) await forgetWorktree(dependencies, repository, name);
    await deleteNote(dependencies.root, name);
    return undefined;
  } catch (error) {
    return `the worktree ${tree} could not be removed: ${describeError(error)}`;
  }
}

/** The repository itself may be gone. @throws Error where what git keeps of the worktree, or its branch, cannot be removed */
async function forgetWorktree(dependencies: Dependencies, repository: string, name: string): Promise<void> {
  const { root, git } = dependencies;
  // Never `git worktree prune`: it forgets those of others whose folders cannot be seen at the moment.
  await forgetTree(root, name, await locateGitDir(dependencies, repository, name));
  const branch = BRANCH_PREFIX + name;
  const deleted = await git({ folder: repository, args: ["branch", "--quiet", "-D", branch] });
  if (deleted.kind === "done" || (await isRepositoryGone(repository))) return;
  const args = ["show-ref", "--verify", "--quiet", `refs/heads/${branch}`];
  const found = await git({ folder: repository, args });
  // So git says that there is no such branch. Where it fails it has another exit code.
  if (found.kind === "failed" && found.exitCode === 1) return;
  throw new Error(`its branch ${branch} may still be there: ${deleted.message}`);
}

async function isRepositoryGone(repository: string): Promise<boolean> {
  if (await isAbsent(repository)) return true;
  const { kind } = await lookAt(repository, ".git");
  if (kind !== "file") return kind === "absent";
  // The folder is a linked checkout, or a submodule: the file names where the repository is.
  const text = await readFile(join(repository, ".git"), "utf8").catch(() => "");
  const [, gitDir] = /^gitdir: (.+)$/mu.exec(text) ?? [];
  return gitDir !== undefined && (await isAbsent(resolve(repository, gitDir)));
}
