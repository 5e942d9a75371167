/** Owns: what a request to a run appends to it, and what comes of the request. */
import type { WorkflowDraft } from "../../../contracts/workflows/workflow-events.ts";
import type { LoadedRun } from "../records/run-book.ts";

/** Drafts that are appended to a run as it is now, or the reason why none are. */
export type RequestDrafts<R> = { readonly drafts: readonly WorkflowDraft[] } | { readonly refused: R };

/** The run as it is after the request. */
export interface RequestOutcome<R> {
  readonly loadedRun: LoadedRun;
  readonly refused?: R;
}
