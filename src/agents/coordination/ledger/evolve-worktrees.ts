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

export function worktreeKeyOf(stepId: StepId, attempt: number): string {
  return `${stepId}\n${attempt}`;
}

/** True where the log says that the worktree of a dispatched attempt is gone. */
export function isWorktreeGone(
  state: Coordination,
  { stepId, attempt }: Pick<Worktree, "stepId" | "attempt">,
): boolean {
  if (state.kind === "unopened") return false;
  return state.kind === "ended" || !state.worktrees.has(worktreeKeyOf(stepId, attempt));
}

/** W1: the dispatch is the intent to make it. */
export function expectWorktree(
  state: OpenCoordination,
  { payload: { stepId, attempt } }: FactEvent & { type: "step.dispatched" },
): OpenCoordination {
  if (!state.steps.get(stepId)?.spec.isolate) return state;
  const worktree: Worktree = { stepId, attempt };
  return { ...state, worktrees: state.worktrees.set(worktreeKeyOf(stepId, attempt), worktree) };
}

export function evolveWorktree(state: OpenCoordination, event: WorktreeEvent): OpenCoordination {
  const { stepId, attempt } = event.payload;
  const key = worktreeKeyOf(stepId, attempt);
  const before = state.worktrees.get(key);
  assertInvariant(before !== undefined, `W1: no worktree of attempt ${attempt}: ${event.eventId}`);
  if (event.type === "worktree.removed") return { ...state, worktrees: state.worktrees.remove(key) };
  const changed = { ...state, worktrees: state.worktrees.set(key, changeWorktree(before, event)) };
  return event.type === "worktree.merged" ? noteMerged(changed, before) : changed;
}

/** Notes with the step which files it merged: later worktrees begin with them. */
function noteMerged(state: OpenCoordination, { stepId, opened, merge }: Worktree): OpenCoordination {
  const step = state.steps.get(stepId);
  if (!step || !opened || merge?.status !== "begun") return state;
  const merged = { repository: opened.repository, paths: merge.files.map(({ path }) => path) };
  return { ...state, steps: state.steps.set(stepId, { ...step, merged }) };
}

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
