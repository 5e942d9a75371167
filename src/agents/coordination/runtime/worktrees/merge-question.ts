/** Owns: what people are asked when the work of a worktree could not be merged back. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { StepId } from "../../contracts/ids.ts";
import type { MergeBackObstacle, UnmergedFile } from "../../contracts/worktree-fields.ts";
import type { KeptWork } from "../../ports/worktrees.ts";
import { quoteUnlessPlain } from "../questions/plain-text.ts";

export interface MergeProblem extends KeptWork {
  readonly stepId: StepId;
  readonly repository: string;
  readonly unmerged: readonly UnmergedFile[];
  /** Said instead of files. */
  readonly message?: string;
  /** How many files were written before it was found. */
  readonly written: number;
  /** Whether an earlier try wrote files is not known. */
  readonly mayBeWritten?: boolean;
}

const REASONS: Readonly<Record<MergeBackObstacle, string>> = {
  both_changed: "changed in the folder, too",
  held: "held by another step",
  not_a_file: "no plain file, only a pointer of Git LFS, or its place is taken",
  changed_meanwhile: "changed while it was merged",
  not_writable: "cannot be written",
};

const NAMES_MAX = 20;
const KEPT_PROBLEM_CHARS_MAX = 500;

const ANSWERS =
  "Approve: its result counts, and what you did not merge yourself is dropped. Deny: its result is withheld.";

/**
 * Returns the text of the question about a failed merge: what could not be merged, where the work is, and last what
 * the two answers do. The last is there whatever the length of the rest.
 */
export function formatMergeQuestion(problem: MergeProblem): string {
  const { stepId, repository, unmerged, message } = problem;
  const room = BOUNDS.questionCharsMax - ANSWERS.length - 1;
  const before = `What step ${quoteUnlessPlain(stepId)} did in its worktree could not be merged into ${repository}: `;
  const after = `. ${sayWhatIsWritten(problem)}\n${sayWhereWorkIs(problem)}`;
  const left = Math.max(room - before.length - after.length, 0);
  const problems = message?.slice(0, left) ?? formatUnmergedFiles(unmerged, left);
  return `${(before + problems + after).slice(0, room)}\n${ANSWERS}`;
}

/** Names as many files as there is room for, `NAMES_MAX` at most, and counts the others. */
function formatUnmergedFiles(unmerged: readonly UnmergedFile[], room: number): string {
  let names = "";
  for (const [index, { path, because }] of unmerged.entries()) {
    const rest = `${unmerged.length - index} more`;
    const longer = `${names}${quoteUnlessPlain(path)} (${REASONS[because]}), `;
    if (index === NAMES_MAX || longer.length + rest.length > room) return names + rest;
    names = longer;
  }
  return names.slice(0, -", ".length);
}

function sayWhatIsWritten({ written, mayBeWritten }: MergeProblem): string {
  if (mayBeWritten) return "Some of it may be written there already.";
  return written > 0
    ? `${written} other files of it are written already.`
    : "Nothing of it is written there.";
}

function sayWhereWorkIs({ branch, folder, problem }: KeptWork): string {
  if (problem === undefined)
    return `All of its work is on branch ${branch}, in folder ${folder}, until you answer.`;
  const why = problem.slice(0, KEPT_PROBLEM_CHARS_MAX);
  return `All of its work is in folder ${folder} until you answer; git could not put all of it on branch ${branch}: ${why}.`;
}
