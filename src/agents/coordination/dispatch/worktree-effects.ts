/** Owns: planning when the work of a worktree is merged back, and when a worktree is removed. */
import { createIdempotencyKey, type StepId } from "../contracts/ids.ts";
import { formatWorktreeKey } from "../ledger/evolve-worktrees.ts";
import type { OpenCoordination, Worktree } from "../ledger/state.ts";
import { ruleOnVerdicts } from "../gates/verifier-gate.ts";
import { findHeldStep, type HeldStep } from "./decide-held.ts";

/** An effect on one attempt of a step. */
export interface StepEffect<K extends string> {
  readonly kind: K;
  readonly effectId: string;
  readonly stepId: StepId;
  readonly attempt: number;
}

export type WorktreeEffect = MergeWorktree | RemoveWorktree;

/** Merges what a held attempt left back, because its result is to count. */
export type MergeWorktree = StepEffect<"mergeWorktree">;

/** Removes the worktree of an attempt that is over. */
export type RemoveWorktree = StepEffect<"removeWorktree">;

/** Returns an effect for each worktree that is to be merged back or removed now, for others to carry out. */
export function planWorktreeEffects(state: OpenCoordination): WorktreeEffect[] {
  if (state.worktrees.isEmpty()) return [];
  return state.worktrees
    .valueSeq()
    .toArray()
    .flatMap((worktree): WorktreeEffect[] => {
      const { stepId, attempt } = worktree;
      const key = createIdempotencyKey(state.coordinationId, stepId, attempt);
      if (isWorktreeOver(state, worktree))
        return [{ kind: "removeWorktree", effectId: `${key}:unworktree`, stepId, attempt }];
      return mustMergeWorktree(state, stepId, attempt)
        ? [{ kind: "mergeWorktree", effectId: `${key}:merge`, stepId, attempt }]
        : [];
    });
}

const IN_USE: ReadonlySet<string> = new Set(["dispatched", "running", "held"]);

/**
 * True when the worktree of an attempt is to be removed: the attempt is neither at work nor held, and no stray child
 * of it may still work there.
 */
export function isWorktreeOver(
  { steps, plan }: OpenCoordination,
  { stepId, attempt }: Pick<Worktree, "stepId" | "attempt">,
): boolean {
  const phase = steps.get(stepId)?.phase;
  if (phase?.attempt === attempt && IN_USE.has(phase.status)) return false;
  return !plan?.strays.some((stray) => stray.stepId === stepId && stray.attempt === attempt);
}

/**
 * True when a held result is to count, by its checks or by people, and the worktree of that attempt is not merged back
 * yet.
 */
export function mustMergeWorktree(state: OpenCoordination, stepId: StepId, attempt: number): boolean {
  const step = findHeldStep(state, stepId);
  const worktree = state.worktrees.get(formatWorktreeKey(stepId, attempt));
  if (!worktree || step?.phase.attempt !== attempt) return false;
  if (worktree.merge) return worktree.merge.status === "begun";
  const { escalationId } = step.phase;
  return escalationId === undefined ? hasPassedChecks(step) : isLetThroughByPeople(state, escalationId);
}

function isLetThroughByPeople({ escalations }: OpenCoordination, escalationId: string): boolean {
  const resolution = escalations.get(escalationId)?.closed?.resolution;
  return resolution === "approved" || resolution === "answered";
}

function hasPassedChecks({ spec: { gate }, phase, revisions = 0 }: HeldStep): boolean {
  const { stated, findings, failures } = phase;
  return !gate || ruleOnVerdicts(gate, { stated, findings, failures, revisions }).outcome === "pass";
}
