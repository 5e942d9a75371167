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
import type { MergedPaths } from "../../agents/coordination/contracts/worktree-fields.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  OpenWorktree,
  WorktreeOnMachine,
  WorktreeOpened,
  Worktrees,
  WorktreeWanted,
} from "../../agents/coordination/ports/worktrees.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { createTurnsByName, type TurnsByName } from "../../agents/coordination/std/turns-by-name.ts";
import { removeFolder } from "../files/remove-folder.ts";
import { checkOutBase } from "./check-out-base.ts";
import { hashPrograms } from "./foreign-programs.ts";
import { removeTreeDir } from "./forget-tree.ts";
import { keepWork } from "./keep-work.ts";
import { lookAtRepository, readGitDir, type UsableRepository } from "./look-at-repository.ts";
import { createRunGit, type RunGit } from "./run-git.ts";
import {
  deleteWorktreeNote,
  listNotedWorktrees,
  readWorktreeNote,
  readWorktreeNoteTime,
  writeWorktreeNote,
  type WorktreeNote,
} from "./worktree-note.ts";
import { readTextsOfSides, writeFileWhole } from "./worktree-files.ts";
import {
  compareWorktree,
  hashTextVersion,
  isFolderAbsent,
  lookAtTrackable,
  type WorktreeOnDisk,
} from "./worktree-changes.ts";

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

/** The folder of all worktrees, and the means to run git in it. */
interface WorktreeDependencies {
  readonly root: string;
  readonly git: RunGit;
  /** By the folder of git's own files, which all checkouts of a repository share. */
  readonly turns: TurnsByName;
}

/**
 * Creates the access to the worktrees below `root`, which are made, compared, committed and removed with the git
 * program.
 */
export function createGitWorktrees({ root, clock, program }: GitWorktreesOptions): Worktrees {
  const git = createRunGit(clock, program);
  const turns = createTurnsByName();
  const dependencies: WorktreeDependencies = { root, git, turns };
  return {
    findObstacle: async (folder) => {
      const look = await lookAtRepository(git, folder);
      return look.kind === "unusable" ? look.message : undefined;
    },
    open: (name, folder, attempt, merged) => openWorktree(dependencies, { name, folder, attempt, merged }),
    list: () => listWorktrees(root),
    compare: async (worktree) => compareWorktree(git, await locateWorktree(dependencies, worktree)),
    texts: async (worktree, path) =>
      readTextsOfSides(git, await locateWorktree(dependencies, worktree), path),
    versionOf: (worktree, file) => hashTextVersion(git, worktree.repository, file),
    write: ({ name, repository }, write) =>
      writeFileWhole(git, { tree: join(root, name), repository }, write),
    keep: async (worktree) =>
      turns.run(await locateGitDir(dependencies, worktree.repository), async () =>
        keepWork(git, await locateWorktree(dependencies, worktree), BRANCH_PREFIX + worktree.name),
      ),
    remove: (name) => removeWorktree(dependencies, name),
    forget: (name) => deleteStaleNote(dependencies, name, addMs(clock.now(), -MAKING_MS_MAX)),
  };
}

/** Lists the worktrees that have a note, each with its branch and whether its folder is there. */
async function listWorktrees(root: string): Promise<WorktreeOnMachine[]> {
  const noted = await listNotedWorktrees(root);
  return Promise.all(
    noted.map(async (worktree) => {
      const folder = join(root, worktree.name);
      return {
        ...worktree,
        folder,
        hasFolder: !(await isFolderAbsent(folder)),
        branch: BRANCH_PREFIX + worktree.name,
      };
    }),
  );
}

/** Returns a worktree with its folder, the folder that git keeps of it in its repository, and its note. */
async function locateWorktree(
  dependencies: WorktreeDependencies,
  worktree: OpenWorktree,
): Promise<WorktreeOnDisk> {
  const { name, repository } = worktree;
  const gitDir = joinTreeDir(await locateGitDir(dependencies, repository), name);
  const note = await readWorktreeNote(dependencies.root, name).catch(() => undefined);
  return { ...worktree, tree: join(dependencies.root, name), gitDir, note };
}

/**
 * Returns the folder that git keeps of a worktree in its repository. Git names it like the worktree's folder, whose
 * name is ours alone.
 */
function joinTreeDir(gitDir: string, name: string): string {
  return join(gitDir, "worktrees", name);
}

/** Finds the folder of git's own files. Where git does not say it, a linked checkout has a file in the place that is returned. */
async function locateGitDir({ git }: WorktreeDependencies, repository: string): Promise<string> {
  return (await readGitDir(git, repository)) ?? join(repository, ".git");
}

interface ToOpen {
  readonly name: string;
  /** The folder of the agent. */
  readonly folder: string;
  readonly attempt: WorktreeWanted;
  /** Files that the base is to have as they are in the folder of their repository. */
  readonly merged: readonly MergedPaths[];
}

/**
 * Makes the worktree of an attempt, after removing what is left under its name. Refuses where its repository or the
 * folder for worktrees cannot be used, what is left cannot be removed, or git fails.
 */
async function openWorktree(dependencies: WorktreeDependencies, toOpen: ToOpen): Promise<WorktreeOpened> {
  const { name, folder } = toOpen;
  const { signal, ...attempt } = toOpen.attempt;
  const look = await lookAtRepository(dependencies.git, folder);
  if (look.kind === "unusable") return { kind: "refused", message: look.message };
  const { top, gitDir } = look;
  const note: WorktreeNote = { repository: top, attempt, gitDir };
  try {
    await makeRootFolder(dependencies.root);
    const leftover = await removeWorktree(dependencies, name);
    if (leftover !== undefined) return { kind: "refused", message: leftover };
    await writeWorktreeNote(dependencies.root, name, note);
  } catch (error) {
    return { kind: "refused", message: `the folder for worktrees cannot be used: ${describeError(error)}` };
  }
  try {
    return await dependencies.turns.run(gitDir, async () => {
      signal?.throwIfAborted();
      return makeWorktree(dependencies, toOpen, { ...look, note });
    });
  } catch (error) {
    await removeWorktree(dependencies, name);
    return { kind: "refused", message: `no worktree could be made of ${top}: ${describeError(error)}` };
  }
}

interface LookedAt extends UsableRepository {
  readonly note: WorktreeNote;
}

/** Checks the worktree out on a branch of its own, and notes the programs that git's settings name then. */
async function makeWorktree(
  { root, git }: WorktreeDependencies,
  { name, merged }: ToOpen,
  { top, below, head, gitDir, note }: LookedAt,
): Promise<WorktreeOpened> {
  const tree = join(root, name);
  const branch = BRANCH_PREFIX + name;
  const paths = merged.filter(({ repository }) => repository === top).flatMap((files) => files.paths);
  const base = await checkOutBase(git, { repository: top, tree, branch, head, paths });
  const programs = await hashPrograms(git, { tree, gitDir: joinTreeDir(gitDir, name), repository: top });
  await writeWorktreeNote(root, name, { ...note, programs });
  const folder = join(tree, below);
  await mkdir(folder, { recursive: true });
  return { kind: "opened", repository: top, base, folder, branch };
}

/** Makes the folder for worktrees, which only its owner may enter; throws where something else is in its place. */
async function makeRootFolder(root: string): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  const facts = await lstat(root);
  if (!facts.isDirectory()) throw new Error(`${root} is not a folder`);
  await chmod(root, 0o700);
}

/** Removes a worktree with its branch and its note. Returns a sentence where it could not be removed. */
async function removeWorktree(dependencies: WorktreeDependencies, name: string): Promise<string | undefined> {
  const tree = join(dependencies.root, name);
  try {
    const note = await readWorktreeNote(dependencies.root, name);
    const gitDir = note && (note.gitDir ?? (await locateGitDir(dependencies, note.repository)));
    // It may be large, and others need git meanwhile.
    await removeFolder(tree);
    if (gitDir !== undefined)
      await dependencies.turns.run(gitDir, () => removeFromRepository(dependencies, gitDir, name));
    await deleteWorktreeNote(dependencies.root, name);
    return undefined;
  } catch (error) {
    return `the worktree ${tree} could not be removed: ${describeError(error)}`;
  }
}

/**
 * Removes what the repository has of a worktree: git's own folder of it, and its branch. The repository itself may be
 * gone. @throws Error where what git keeps of the worktree, or its branch, cannot be removed
 */
async function removeFromRepository(
  { root, git }: WorktreeDependencies,
  gitDir: string,
  name: string,
): Promise<void> {
  const place = { folder: gitDir, gitDir };
  await git({ ...place, args: ["worktree", "remove", "--force", "--force", join(root, name)] });
  // Never `git worktree prune`: it forgets those of others whose folders cannot be seen at the moment.
  await removeTreeDir(root, name, joinTreeDir(gitDir, name));
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

/** Deletes a note from before a time where neither folder nor branch nor what git keeps of the worktree is there. */
async function deleteStaleNote(
  dependencies: WorktreeDependencies,
  name: string,
  before: number,
): Promise<void> {
  const { root, git } = dependencies;
  const note = await readWorktreeNote(root, name);
  if (
    !note ||
    (await readWorktreeNoteTime(root, name)) >= before ||
    !(await isFolderAbsent(join(root, name)))
  )
    return;
  const gitDir = note.gitDir ?? (await locateGitDir(dependencies, note.repository));
  const isForgotten =
    (await isRepositoryGone(gitDir)) ||
    ((await isFolderAbsent(joinTreeDir(gitDir, name))) &&
      (await isBranchGone(git, gitDir, BRANCH_PREFIX + name)));
  if (isForgotten) await deleteWorktreeNote(root, name);
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

async function findKind(path: string): Promise<Awaited<ReturnType<typeof lookAtTrackable>>["kind"]> {
  return (await lookAtTrackable(dirname(path), basename(path))).kind;
}
