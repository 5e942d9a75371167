/** Owns: what may be asked of a run, and what comes of it. */
import type { WorkflowDraft } from "../../../contracts/workflows/workflow-events.ts";
import type { LoadedRun } from "../records/run-book.ts";

/** Says what is to be appended to a run as it is now; a text is the reason why nothing is. */
export type Asked<R> = { readonly drafts: readonly WorkflowDraft[] } | { readonly refused: R };

/** The run as it is after the request. */
export interface Outcome<R> {
  readonly loadedRun: LoadedRun;
  readonly refused?: R;
}
