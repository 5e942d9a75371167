/** Owns: the port to worktrees: folders in which attempts work alone, and bringing back what they left there. */

import type { MergedPaths, WorktreeAttempt } from "../contracts/worktree-fields.ts";

/** A worktree that an attempt works in. */
export interface OpenWorktree {
  /** Follows from the attempt, so that it is found again after any crash. */
  readonly name: string;
  /** The folder that the repository is checked out in, where the work is to be merged back. */
  readonly repository: string;
  /** The commit that the worktree was made from: `HEAD`, or one on top of it with what was merged before. */
  readonly base: string;
}

/** A worktree on this machine, whole or half made, and the attempt that it was made for. */
export interface WorktreeOnMachine extends WorktreeAttempt {
  readonly name: string;
  /** The folder that its repository is checked out in. */
  readonly repository: string;
  readonly folder: string;
  /** False where the folder is not there: not made yet, or removed. */
  readonly hasFolder: boolean;
  readonly branch: string;
}

/** The attempt that a worktree is to be made for. */
export interface WorktreeWanted extends WorktreeAttempt {
  /** Aborted once the attempt is over: a worktree that is not begun by then is refused. */
  readonly signal?: AbortSignal;
}

/** The result of opening a worktree. */
export type WorktreeOpened =
  /** `folder`: where the agent is to work. It is below the worktree where its own folder is below the repository. */
  | {
      readonly kind: "opened";
      readonly repository: string;
      readonly base: string;
      readonly folder: string;
      readonly branch: string;
    }
  | { readonly kind: "refused"; readonly message: string };

/**
 * One file that differs from the base, in three places. A version is `absent`, a mode of git and the id of the content, or
 * `folder` or `other` for what cannot be merged.
 */
export interface WorktreeChange {
  /** From the top of the repository, with `/`. */
  readonly path: string;
  readonly base: string;
  /** In the worktree. */
  readonly theirs: string;
  /** In the folder of the repository. */
  readonly ours: string;
}

/** The changes that an attempt left in its worktree. */
export type WorktreeCompared =
  | { readonly kind: "compared"; readonly changes: readonly WorktreeChange[] }
  /** There is more than is merged by a host, or something that it must not look into. */
  | { readonly kind: "too_much"; readonly message: string }
  /** Git failed. The files that the attempt left are still there. */
  | { readonly kind: "failed"; readonly message: string }
  /** The folder of the worktree is not there any more. */
  | { readonly kind: "absent"; readonly message: string };

/** The texts of one file. */
export interface WorktreeTexts {
  readonly base: string;
  readonly theirs: string;
  readonly ours: string;
}

/** One file to be written into the folder of the repository. */
export interface WorktreeWrite {
  readonly path: string;
  /** The content that must be there; else nothing is written. */
  readonly before: string;
  /** The content that is there afterwards, or already. */
  readonly after: string;
  /** Absent: the file of the worktree is taken, or its absence. */
  readonly text?: string;
}

/** The result of writing one file. */
export type WorktreeWritten = "written" | "changed_meanwhile" | "not_writable";

/** Where the work of an attempt is, for people. */
export interface KeptWork {
  readonly branch: string;
  readonly folder: string;
  /** Why not all of it is on the branch, as a sentence without its full stop. */
  readonly problem?: string;
}

/** Worktrees of git. No method throws for what is wrong with a repository, and none takes longer than its bounds. */
export interface Worktrees {
  /** Says in a sentence why no worktree can be made for a folder; `undefined` where one can. */
  findObstacle(folder: string): Promise<string | undefined>;
  /**
   * Makes a worktree from the HEAD of the repository of a folder, and from the files of `merged` as they are there now.
   * Remains of one with this name are removed first.
   */
  open(
    name: string,
    folder: string,
    attempt: WorktreeWanted,
    merged: readonly MergedPaths[],
  ): Promise<WorktreeOpened>;
  /** Lists what is on this machine. @throws Error where the folder of worktrees cannot be read */
  list(): Promise<WorktreeOnMachine[]>;
  /** Compares every file that was changed, added or deleted, committed or not. Ignored files are left out. */
  compare(worktree: OpenWorktree): Promise<WorktreeCompared>;
  /** The texts of a file that is a text in all three places; `undefined` where it is not. */
  texts(worktree: OpenWorktree, path: string): Promise<WorktreeTexts | undefined>;
  /** The version that a file of the repository would have with this text. */
  versionOf(
    worktree: OpenWorktree,
    file: { readonly path: string; readonly text: string; readonly mode: string },
  ): Promise<string | undefined>;
  /** Writes one file as a whole. Writing it again changes nothing. */
  write(worktree: OpenWorktree, write: WorktreeWrite): Promise<WorktreeWritten>;
  /** Commits what is there to the worktree's branch, for people to merge; returns the branch, its folder and whether that worked. */
  keep(worktree: OpenWorktree): Promise<KeptWork>;
  /** Removes a worktree and its branch, or what is left of them. Returns what could not be removed, as a sentence. */
  remove(name: string): Promise<string | undefined>;
  /** Forgets a worktree that was noted more than a day ago and of which nothing is left, its branch included. */
  forget(name: string): Promise<void>;
}
