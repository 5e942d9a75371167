/** Owns: the statuses of a workflow run, and the summary that is kept beside its log. */
import type { ParentRun } from "./workflow-events.ts";
import type { EpochMs } from "../ids.ts";

/** run-snapshot.schema.json. */
export const WORKFLOW_STATUSES = [
  "pending",
  "running",
  "paused",
  "waiting-approval",
  "waiting-input",
  "waiting-external",
  "completed",
  "failed",
  "cancelling",
  "cancelled",
] as const;
/** The status of a workflow run, as the protocol names it. */
export type WorkflowStatus = (typeof WORKFLOW_STATUSES)[number];

/** A workflow run as it is kept beside its log, so that finding one folds nothing. */
export interface WorkflowSummary {
  readonly kind: "workflow";
  readonly status: WorkflowStatus;
  readonly tenant: string;
  readonly workflowId: string;
  readonly createdAtMs: EpochMs;
  /** True where it asks somebody something while other nodes of it work, or while it is paused: its status does not tell that. */
  readonly isAsking?: true;
  /** The process that drives it, while it has not ended. */
  readonly driver: string;
  readonly parent?: ParentRun;
  /** Characters that its events take. */
  readonly chars?: number;
  /** The run that a client asked for and that this one comes of, and the how-manieth run of it this is. */
  readonly root?: { readonly runId: string; readonly number: number };
  /** When a run that only waits is due. Until then nobody has to read it. */
  readonly wakesAtMs?: EpochMs;
}

/** True for the status of a workflow run that is completed, failed or cancelled. */
export function hasRunEnded(status: WorkflowStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
