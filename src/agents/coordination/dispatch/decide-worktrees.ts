/**
 * Owns: deciding about the worktrees of attempts.
 *
 * W2 a merge is recorded before the first file is written, and a result counts only when all are. W3 what cannot be merged is
 * asked about in the same append, unless the step is at its end by then; the worktree stays until there is an answer.
 */
import type { AskAboutMerge, Command, FinishMerge } from "../contracts/commands.ts";
import { assertNever } from "../contracts/errors.ts";
import { createStepError } from "../contracts/fact-fields.ts";
import type { EpochMs, StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { formatWorktreeKey } from "../ledger/evolve-worktrees.ts";
import { findChildOfPhase, type OpenCoordination, type Worktree } from "../ledger/state.ts";
import { draftQuestion, isTooLateToAsk } from "./ask-people.ts";
import {
  draftAcceptedResult,
  draftCancelledWhileHeld,
  draftRejectedResult,
  draftResultFailedAtDeadline,
  findHeldStep,
  findReleaseReason,
  type HeldStep,
} from "./decide-held.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { mustStopRunningAttempts, isPlanned, findStopReason } from "./plan-rules.ts";
import { mustMergeWorktree } from "./worktree-effects.ts";

/** The tool that changes of a merge are recorded under. */
export const MERGE_TOOL = "worktree merge";

type WorktreeCommand = Command & {
  type: "openWorktree" | "beginMerge" | "finishMerge" | "askAboutMerge" | "failMerge" | "removeWorktree";
};

/**
 * Decides on a command about the worktree of an attempt: to open, remove or merge it; refused where there is no such
 * worktree.
 */
export function decideOnWorktrees(state: OpenCoordination, command: WorktreeCommand, now: EpochMs): Decision {
  const { stepId, attempt } = command;
  const worktree = state.worktrees.get(formatWorktreeKey(stepId, attempt));
  if (!worktree)
    return refuse("UNKNOWN_STEP", `there is no worktree of attempt ${attempt} of step ${stepId}`);
  switch (command.type) {
    case "openWorktree":
      return openWorktree(state, command, worktree);
    case "removeWorktree": {
      const { type: _, ...payload } = command;
      return accept([{ type: "worktree.removed", payload }], stepId);
    }
    case "beginMerge":
    case "finishMerge":
    case "askAboutMerge":
    case "failMerge":
      return decideOnMerge(state, command, { worktree, now });
    default:
      return assertNever(command, "command");
  }
}

/** Records that the worktree of an attempt was made; refused once the attempt no longer begins. */
function openWorktree(
  { steps }: OpenCoordination,
  { type: _, ...payload }: Command & { type: "openWorktree" },
  { opened }: Worktree,
): Decision {
  const { stepId, attempt } = payload;
  if (opened) return { kind: "replay", stepId };
  const phase = steps.get(stepId)?.phase;
  if (phase?.attempt !== attempt || phase.status !== "dispatched")
    return refuse("STEP_ENDED", `attempt ${attempt} of step ${stepId} does not begin any more`);
  return accept([{ type: "worktree.opened", payload }], stepId);
}

type MergeCommand = WorktreeCommand & { type: "beginMerge" | "finishMerge" | "askAboutMerge" | "failMerge" };

/** The worktree that a command merges, and when. */
interface WorktreeMerge {
  readonly worktree: Worktree;
  readonly now: EpochMs;
}

/** Decides on a command about merging the work of a held step back. */
function decideOnMerge(
  state: OpenCoordination,
  command: MergeCommand,
  { worktree, now }: WorktreeMerge,
): Decision {
  const { stepId, attempt } = command;
  const step = findHeldStep(state, stepId);
  if (!step || !mustMergeWorktree(state, stepId, attempt))
    return refuse("STEP_ENDED", `attempt ${attempt} of step ${stepId} is not to be merged back now`);
  switch (command.type) {
    case "beginMerge": {
      const { type: _, ...payload } = command;
      return worktree.merge
        ? { kind: "replay", stepId }
        : accept([{ type: "worktree.merge_begun", payload }], stepId);
    }
    case "finishMerge":
      return accept(draftFinishedMerge(state, step, command), stepId);
    case "askAboutMerge":
      return accept(draftMergeConflict(state, step, { command, now }), stepId);
    case "failMerge": {
      const error = createStepError("worktree_failed", command.message);
      return accept(draftRejectedResult(state, step, { error, now }), stepId);
    }
  }
}

/** Drafts the end of a merge, the changes of files that it made, and the acceptance of the step's result. */
function draftFinishedMerge(state: OpenCoordination, step: HeldStep, { changed }: FinishMerge): FactDraft[] {
  const { stepId } = step.spec;
  const { attempt } = step.phase;
  return [
    { type: "worktree.merged", payload: { stepId, attempt, files: changed.length } },
    ...draftMergedFileChanges(stepId, changed),
    ...draftAcceptedResult(step, findReleaseReason(state, step)),
  ];
}

function draftMergedFileChanges(stepId: StepId, changed: FinishMerge["changed"]): FactDraft[] {
  return changed.map(({ resource, version }): FactDraft => ({
    type: "resource.changed",
    payload: { stepId, resource, version, tool: MERGE_TOOL },
  }));
}

/**
 * Drafts the conflict of a merge and the question to people about it (W3). Where the step or its plan was stopped, or
 * the plan's deadline has passed, the step fails in place of the question.
 */
function draftMergeConflict(
  state: OpenCoordination,
  step: HeldStep,
  { command, now }: { readonly command: AskAboutMerge; readonly now: EpochMs },
): FactDraft[] {
  const { stepId, attempt, files, changed, question: words, asEarlier } = command;
  const conflicted: FactDraft[] = [
    { type: "worktree.conflicted", payload: { stepId, attempt, files } },
    ...draftMergedFileChanges(stepId, changed),
  ];
  const isStopped =
    step.cancelledBy !== undefined ||
    (isPlanned(state) && mustStopRunningAttempts(findStopReason(state, now)));
  if (isStopped) return [...conflicted, draftCancelledWhileHeld(step)];
  if (isTooLateToAsk(state, { now, asEarlier })) return [...conflicted, draftResultFailedAtDeadline(step)];
  const child = findChildOfPhase(step.phase);
  const question = draftQuestion(
    state,
    {
      stepId,
      cause: "merge",
      kind: "approval",
      answers: ["approve", "deny"],
      question: words,
      ...(child && { askedBy: child.childSessionKey }),
    },
    { now },
  );
  return [...conflicted, question];
}
