/** Owns: that what is appended can be read again: a log with one event that cannot is lost as a whole. */
import { findPayloadProblem, type WorkflowDraft } from "../contracts/workflows/workflow-events.ts";

/** A draft that cannot be appended, and why. */
export interface UnfitDraft {
  readonly draft: WorkflowDraft;
  readonly problem: string;
}

const PROBLEM_CHARS_MAX = 300;

/** Made of what a definition or another event said already. */
const ALWAYS_FIT: ReadonlySet<WorkflowDraft["type"]> = new Set([
  "node.started",
  "node.skipped",
  "node.cancelled",
  "run.resumed",
  "run.resuming",
]);

/**
 * Returns the first draft whose payload could not be read again from the log, with the problem; `undefined` where all
 * fit.
 */
export function findUnfitDraft(drafts: readonly WorkflowDraft[]): UnfitDraft | undefined {
  for (const draft of drafts) {
    const problem = ALWAYS_FIT.has(draft.type) ? undefined : findPayloadProblem(draft.type, draft.payload);
    if (problem !== undefined) return { draft, problem: problem.slice(0, PROBLEM_CHARS_MAX) };
  }
  return undefined;
}
