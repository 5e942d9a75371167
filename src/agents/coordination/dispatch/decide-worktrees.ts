/**
 * Owns: deciding about the worktrees of attempts.
 *
 * W2 a merge is recorded before the first file is written, and a result counts only when all are. W3 what cannot be merged is
 * asked about in the same append, unless the step is at its end by then; the worktree stays until there is an answer.
 */
import type { AskAboutMerge, Command, FinishMerge } from "../contracts/commands.ts";
import { assertNever } from "../contracts/errors.ts";
import { stepError } from "../contracts/fact-fields.ts";
import type { EpochMs, StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { worktreeKeyOf } from "../ledger/evolve-worktrees.ts";
import { childOf, type OpenCoordination, type Worktree } from "../ledger/state.ts";
import { draftQuestion, isTooLateToAsk } from "./ask-people.ts";
import {
  draftAcceptedResult,
  draftCancelledWhileHeld,
  draftRejection,
  draftUnaskedResult,
  findHeldStep,
  releaseOf,
  type HeldStep,
} from "./decide-held.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { canStopRunning, isPlanned, stopOf } from "./plan-rules.ts";
import { isToMerge } from "./worktree-effects.ts";

/** The tool that changes of a merge are recorded under. */
export const MERGE_TOOL = "worktree merge";

type WorktreeCommand = Command & {
  type: "openWorktree" | "beginMerge" | "finishMerge" | "askAboutMerge" | "failMerge" | "removeWorktree";
};

/** Decides on a command about the worktree of an attempt. */
export function decideOnWorktrees(state: OpenCoordination, command: WorktreeCommand, now: EpochMs): Decision {
  const { stepId, attempt } = command;
  const worktree = state.worktrees.get(worktreeKeyOf(stepId, attempt));
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

interface Merging {
  readonly worktree: Worktree;
  readonly now: EpochMs;
}

function decideOnMerge(state: OpenCoordination, command: MergeCommand, { worktree, now }: Merging): Decision {
  const { stepId, attempt } = command;
  const step = findHeldStep(state, stepId);
  if (!step || !isToMerge(state, stepId, attempt))
    return refuse("STEP_ENDED", `attempt ${attempt} of step ${stepId} is not to be merged back now`);
  switch (command.type) {
    case "beginMerge": {
      const { type: _, ...payload } = command;
      return worktree.merge
        ? { kind: "replay", stepId }
        : accept([{ type: "worktree.merge_begun", payload }], stepId);
    }
    case "finishMerge":
      return accept(draftMerged(state, step, command), stepId);
    case "askAboutMerge":
      return accept(draftConflict(state, step, { command, now }), stepId);
    case "failMerge": {
      const error = stepError("worktree_failed", command.message);
      return accept(draftRejection(state, step, { error, now }), stepId);
    }
  }
}

function draftMerged(state: OpenCoordination, step: HeldStep, { changed }: FinishMerge): FactDraft[] {
  const { stepId } = step.spec;
  const { attempt } = step.phase;
  return [
    { type: "worktree.merged", payload: { stepId, attempt, files: changed.length } },
    ...draftChanges(stepId, changed),
    ...draftAcceptedResult(step, releaseOf(state, step)),
  ];
}

function draftChanges(stepId: StepId, changed: FinishMerge["changed"]): FactDraft[] {
  return changed.map(({ resource, version }): FactDraft => ({
    type: "resource.changed",
    payload: { stepId, resource, version, tool: MERGE_TOOL },
  }));
}

/** W3; where somebody cancelled the step meanwhile, or the plan's deadline has passed, nobody is asked. */
function draftConflict(
  state: OpenCoordination,
  step: HeldStep,
  { command, now }: { readonly command: AskAboutMerge; readonly now: EpochMs },
): FactDraft[] {
  const { stepId, attempt, files, changed, question: words, asEarlier } = command;
  const conflicted: FactDraft[] = [
    { type: "worktree.conflicted", payload: { stepId, attempt, files } },
    ...draftChanges(stepId, changed),
  ];
  const isStopped =
    step.cancelledBy !== undefined || (isPlanned(state) && canStopRunning(stopOf(state, now)));
  if (isStopped) return [...conflicted, draftCancelledWhileHeld(step)];
  if (isTooLateToAsk(state, { now, asEarlier })) return [...conflicted, draftUnaskedResult(step)];
  const child = childOf(step.phase);
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
