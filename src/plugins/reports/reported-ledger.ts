/** Owns: what reports read of a ledger. */
import type { ContentStore } from "../../agents/coordination/ports/content-store.ts";
import type { LedgerQueries } from "../../agents/coordination/ports/ledger-queries.ts";
import type { LedgerStore } from "../../agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../agents/coordination/ports/workflow-store.ts";

export interface ReportedLedger extends LedgerStore, LedgerQueries, ContentStore {
  /** The runs of workflows in the same ledger. */
  readonly workflows: WorkflowStore;
  /** How many runs there are of each kind. */
  counts(): Promise<{ readonly coordinations: number; readonly workflowRuns: number }>;
  /** Returns the bytes that it takes on disk. */
  measureBytes(): Promise<number>;
}
