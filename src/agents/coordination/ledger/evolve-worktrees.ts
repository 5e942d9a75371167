/**
 * Owns: which worktrees there are, or may be, and how far each was merged back.
 *
 * W1 an attempt that works in a worktree may have one from its dispatch on, until the log says that it is gone.
 */
import { assertInvariant } from "../contracts/errors.ts";
import type { StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import type { Coordination, OpenCoordination, Worktree } from "./state.ts";

export type WorktreeEvent = FactEvent & {
  type:
    | "worktree.opened"
    | "worktree.merge_begun"
    | "worktree.merged"
    | "worktree.conflicted"
    | "worktree.removed";
};

/** Returns the key by which the state finds the worktree of an attempt. */
export function formatWorktreeKey(stepId: StepId, attempt: number): string {
  return `${stepId}\n${attempt}`;
}

/**
 * True when the log has no worktree of this attempt, which was dispatched: it was removed, or the coordination ended.
 */
export function isWorktreeGone(
  state: Coordination,
  { stepId, attempt }: Pick<Worktree, "stepId" | "attempt">,
): boolean {
  if (state.kind === "unopened") return false;
  return state.kind === "ended" || !state.worktrees.has(formatWorktreeKey(stepId, attempt));
}

/**
 * Returns the state with a worktree noted that a dispatched attempt may have: the dispatch is the intent to make it
 * (W1). Unchanged for a step that asks for none.
 */
export function expectWorktree(
  state: OpenCoordination,
  { payload: { stepId, attempt } }: FactEvent & { type: "step.dispatched" },
): OpenCoordination {
  if (!state.steps.get(stepId)?.spec.isolate) return state;
  const worktree: Worktree = { stepId, attempt };
  return { ...state, worktrees: state.worktrees.set(formatWorktreeKey(stepId, attempt), worktree) };
}

/** Returns the state after a fact about the worktree of an attempt; throws where the state has none (W1). */
export function evolveWorktree(state: OpenCoordination, event: WorktreeEvent): OpenCoordination {
  const { stepId, attempt } = event.payload;
  const key = formatWorktreeKey(stepId, attempt);
  const before = state.worktrees.get(key);
  assertInvariant(before !== undefined, `W1: no worktree of attempt ${attempt}: ${event.eventId}`);
  if (event.type === "worktree.removed") return { ...state, worktrees: state.worktrees.remove(key) };
  const changed = { ...state, worktrees: state.worktrees.set(key, changeWorktree(before, event)) };
  return event.type === "worktree.merged" ? noteMergedFiles(changed, before) : changed;
}

/** Notes with the step which files it merged: later worktrees begin with them. */
function noteMergedFiles(state: OpenCoordination, { stepId, opened, merge }: Worktree): OpenCoordination {
  const step = state.steps.get(stepId);
  if (!step || !opened || merge?.status !== "begun") return state;
  const merged = { repository: opened.repository, paths: merge.files.map(({ path }) => path) };
  return { ...state, steps: state.steps.set(stepId, { ...step, merged }) };
}

/** Returns a worktree after a fact about it. */
function changeWorktree(
  before: Worktree,
  event: Exclude<WorktreeEvent, { type: "worktree.removed" }>,
): Worktree {
  switch (event.type) {
    case "worktree.opened": {
      const { repository, base, folder } = event.payload;
      return { ...before, opened: { repository, base, folder } };
    }
    case "worktree.merge_begun":
      return { ...before, merge: { status: "begun", files: event.payload.files } };
    case "worktree.merged":
      return { ...before, merge: { status: "merged" } };
    case "worktree.conflicted":
      return { ...before, merge: { status: "conflicted" } };
  }
}
