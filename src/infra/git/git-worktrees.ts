/**
 * Owns: `Worktrees` with the git program. Every worktree has a folder, a branch and a note of its repository under one name,
 * below a folder of ours that only its owner may enter.
 *
 * 1. The note is written before the worktree is made and deleted after it is gone: whatever a crash leaves can be removed.
 * 2. Git works on one worktree of a repository at a time here: two at once could get the same place there.
 */
import { chmod, lstat, mkdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import type { MergedPaths, WorktreeAttempt } from "../../agents/coordination/contracts/worktree-fields.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  OpenWorktree,
  WorktreeOnMachine,
  WorktreeOpened,
  Worktrees,
} from "../../agents/coordination/ports/worktrees.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { createTurnsByName, type TurnsByName } from "../../agents/coordination/std/turns-by-name.ts";
import { removeFolder } from "../files/remove-folder.ts";
import { checkOutBase } from "./check-out-base.ts";
import { hashPrograms } from "./foreign-programs.ts";
import { forgetTree } from "./forget-tree.ts";
import { keepWork } from "./keep-work.ts";
import { lookAtRepository, readGitDir, type UsableRepository } from "./look-at-repository.ts";
import { createRunGit, type RunGit } from "./run-git.ts";
import {
  deleteNote,
  listNotedWorktrees,
  readNote,
  readNoteTime,
  writeNote,
  type WorktreeNote,
} from "./worktree-note.ts";
import { readTexts, writeFileWhole } from "./worktree-files.ts";
import { compareWorktree, hashText, isAbsent, lookAt, type WorktreeOnDisk } from "./worktree-changes.ts";

const BRANCH_PREFIX = "coordination/";
/** A note is written before its worktree is made, and that waits for git at most some minutes. */
const MAKING_MS_MAX = 24 * 3_600_000;

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
  /** By the folder of git's own files, which all checkouts of a repository share. */
  readonly turns: TurnsByName;
}

export function createGitWorktrees({ root, clock, program }: GitWorktreesOptions): Worktrees {
  const git = createRunGit(clock, program);
  const turns = createTurnsByName();
  const dependencies: Dependencies = { root, git, turns };
  return {
    findObstacle: async (folder) => {
      const look = await lookAtRepository(git, folder);
      return look.kind === "unusable" ? look.message : undefined;
    },
    open: (name, folder, attempt, merged) => openWorktree(dependencies, { name, folder, attempt, merged }),
    list: () => listWorktrees(root),
    compare: async (worktree) => compareWorktree(git, await locate(dependencies, worktree)),
    texts: async (worktree, path) => readTexts(git, await locate(dependencies, worktree), path),
    versionOf: (worktree, file) => hashText(git, worktree.repository, file),
    write: ({ name, repository }, write) =>
      writeFileWhole(git, { tree: join(root, name), repository }, write),
    keep: async (worktree) =>
      turns.run(await locateGitDir(dependencies, worktree.repository), async () =>
        keepWork(git, await locate(dependencies, worktree), BRANCH_PREFIX + worktree.name),
      ),
    remove: (name) => removeWorktree(dependencies, name),
    forget: (name) => forgetRemoved(dependencies, name, addMs(clock.now(), -MAKING_MS_MAX)),
  };
}

async function listWorktrees(root: string): Promise<WorktreeOnMachine[]> {
  const noted = await listNotedWorktrees(root);
  return Promise.all(
    noted.map(async (worktree) => {
      const folder = join(root, worktree.name);
      return {
        ...worktree,
        folder,
        hasFolder: !(await isAbsent(folder)),
        branch: BRANCH_PREFIX + worktree.name,
      };
    }),
  );
}

async function locate(dependencies: Dependencies, worktree: OpenWorktree): Promise<WorktreeOnDisk> {
  const { name, repository } = worktree;
  const gitDir = nameTreeDir(await locateGitDir(dependencies, repository), name);
  const note = await readNote(dependencies.root, name).catch(() => undefined);
  return { ...worktree, tree: join(dependencies.root, name), gitDir, note };
}

/** Git names what it keeps of a worktree like its folder, whose name is ours alone. */
function nameTreeDir(gitDir: string, name: string): string {
  return join(gitDir, "worktrees", name);
}

/** Finds the folder of git's own files. Where git does not say it, a linked checkout has a file in the place that is returned. */
async function locateGitDir({ git }: Dependencies, repository: string): Promise<string> {
  return (await readGitDir(git, repository)) ?? join(repository, ".git");
}

interface ToOpen {
  readonly name: string;
  /** The folder of the agent. */
  readonly folder: string;
  readonly attempt: WorktreeAttempt;
  /** Files that the base is to have as they are in the folder of their repository. */
  readonly merged: readonly MergedPaths[];
}

async function openWorktree(dependencies: Dependencies, toOpen: ToOpen): Promise<WorktreeOpened> {
  const { name, folder, attempt } = toOpen;
  const look = await lookAtRepository(dependencies.git, folder);
  if (look.kind === "unusable") return { kind: "refused", message: look.message };
  const { top, gitDir } = look;
  const note: WorktreeNote = { repository: top, attempt, gitDir };
  try {
    await makeRoot(dependencies.root);
    const left = await removeWorktree(dependencies, name);
    if (left !== undefined) return { kind: "refused", message: left };
    await writeNote(dependencies.root, name, note);
  } catch (error) {
    return { kind: "refused", message: `the folder for worktrees cannot be used: ${describeError(error)}` };
  }
  try {
    return await dependencies.turns.run(gitDir, () => makeWorktree(dependencies, toOpen, { ...look, note }));
  } catch (error) {
    await removeWorktree(dependencies, name);
    return { kind: "refused", message: `no worktree could be made of ${top}: ${describeError(error)}` };
  }
}

interface LookedAt extends UsableRepository {
  readonly note: WorktreeNote;
}

async function makeWorktree(
  { root, git }: Dependencies,
  { name, merged }: ToOpen,
  { top, below, head, gitDir, note }: LookedAt,
): Promise<WorktreeOpened> {
  const tree = join(root, name);
  const branch = BRANCH_PREFIX + name;
  const paths = merged.filter(({ repository }) => repository === top).flatMap((files) => files.paths);
  const base = await checkOutBase(git, { repository: top, tree, branch, head, paths });
  const programs = await hashPrograms(git, { tree, gitDir: nameTreeDir(gitDir, name), repository: top });
  await writeNote(root, name, { ...note, programs });
  const folder = join(tree, below);
  await mkdir(folder, { recursive: true });
  return { kind: "opened", repository: top, base, folder, branch };
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
    const note = await readNote(dependencies.root, name);
    const gitDir = note && (note.gitDir ?? (await locateGitDir(dependencies, note.repository)));
    // It may be large, and others need git meanwhile.
    await removeFolder(tree);
    if (gitDir !== undefined)
      await dependencies.turns.run(gitDir, () => forgetWorktree(dependencies, gitDir, name));
    await deleteNote(dependencies.root, name);
    return undefined;
  } catch (error) {
    return `the worktree ${tree} could not be removed: ${describeError(error)}`;
  }
}

/** The repository itself may be gone. @throws Error where what git keeps of the worktree, or its branch, cannot be removed */
async function forgetWorktree({ root, git }: Dependencies, gitDir: string, name: string): Promise<void> {
  const place = { folder: gitDir, gitDir };
  await git({ ...place, args: ["worktree", "remove", "--force", "--force", join(root, name)] });
  // Never `git worktree prune`: it forgets those of others whose folders cannot be seen at the moment.
  await forgetTree(root, name, nameTreeDir(gitDir, name));
  const branch = BRANCH_PREFIX + name;
  const deleted = await git({ ...place, args: ["branch", "--quiet", "-D", branch] });
  if (deleted.kind === "done" || (await isRepositoryGone(gitDir))) return;
  if (await isBranchGone(git, gitDir, branch)) return;
  throw new Error(`its branch ${branch} may still be there: ${deleted.message}`);
}

async function isBranchGone(git: RunGit, gitDir: string, branch: string): Promise<boolean> {
  const args = ["show-ref", "--verify", "--quiet", `refs/heads/${branch}`];
  const found = await git({ folder: gitDir, gitDir, args });
  // So git says that there is no such branch. Where it fails it has another exit code.
  return found.kind === "failed" && found.exitCode === 1;
}

/** Deletes a note from before that time where neither folder nor branch nor what git keeps of the worktree is there. */
async function forgetRemoved(dependencies: Dependencies, name: string, before: number): Promise<void> {
  const { root, git } = dependencies;
  const note = await readNote(root, name);
  if (!note || (await readNoteTime(root, name)) >= before || !(await isAbsent(join(root, name)))) return;
  const gitDir = note.gitDir ?? (await locateGitDir(dependencies, note.repository));
  const isForgotten =
    (await isRepositoryGone(gitDir)) ||
    ((await isAbsent(nameTreeDir(gitDir, name))) && (await isBranchGone(git, gitDir, BRANCH_PREFIX + name)));
  if (isForgotten) await deleteNote(root, name);
}

/** True only where the folder of git's own files is missing. Whatever cannot be seen may be there. */
async function isRepositoryGone(gitDir: string): Promise<boolean> {
  const kind = await findKind(gitDir);
  if (kind !== "file") return kind === "absent";
  // A linked checkout, or a submodule: the file names where the repository is.
  const text = await readFile(gitDir, "utf8").catch(() => "");
  const [, named] = /^gitdir: (.+)$/mu.exec(text) ?? [];
  return named !== undefined && (await findKind(resolve(dirname(gitDir), named))) === "absent";
}

async function findKind(path: string): Promise<Awaited<ReturnType<typeof lookAt>>["kind"]> {
  return (await lookAt(dirname(path), basename(path))).kind;
}
