/** Owns: a coordination and a workflow run as listings show them with `--json`. */
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { Summary } from "../../agents/coordination/contracts/coordination-summary.ts";
import type { WorkflowSummary } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { createHomeField, type GatewayReport } from "./gateway-report.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import type { RunEntry } from "./find-coordination.ts";

export interface CoordinationReport {
  readonly coordinationId: CoordinationId;
  readonly status: Summary["status"];
  /** `null` once it is no longer kept. */
  readonly objective: string | null;
  readonly ownerSession: Summary["ownerSession"];
  readonly createdAtMs: Summary["createdAtMs"];
  readonly steps: Summary["steps"];
  readonly forkedFrom?: NonNullable<Summary["forkedFrom"]>;
  readonly usage?: NonNullable<Summary["usage"]>;
  /** Where several gateways share the ledger; `drives` is added by `addDrivingGateways`. */
  readonly gateway?: GatewayReport;
}

/** Returns a coordination as listings show it, from the summary of its entry and the text of its objective. */
export function createCoordinationReport(
  { runId, summary }: RunEntry,
  objective: string | null,
): CoordinationReport {
  const { status, ownerSession, createdAtMs, steps, forkedFrom, usage, gateway } = summary;
  return {
    coordinationId: runId,
    status,
    objective,
    ownerSession,
    createdAtMs,
    steps,
    ...(forkedFrom && { forkedFrom }),
    ...(usage && { usage }),
    ...createHomeField(gateway),
  };
}

export type WorkflowEntry = Awaited<ReturnType<ReportedLedger["workflows"]["list"]>>[number];

export interface WorkflowReport {
  readonly runId: CoordinationId;
  readonly workflowId: string;
  readonly status: WorkflowSummary["status"];
  readonly tenant: string;
  readonly startedAt: string;
  readonly events: number;
  readonly parentRunId: string | null;
  readonly fork?: { readonly mode: string; readonly sourceRunId: string; readonly fromSeq: number };
}

/** Returns a workflow run as listings show it, from the summary of its entry. */
export function createWorkflowReport({ runId, length, summary, origin }: WorkflowEntry): WorkflowReport {
  const { status, tenant, workflowId, createdAtMs, parent } = summary;
  return {
    runId,
    workflowId,
    status,
    tenant,
    startedAt: new Date(createdAtMs).toISOString(),
    events: length,
    parentRunId: parent?.runId ?? null,
    ...(origin && { fork: { mode: origin.mode, sourceRunId: origin.sourceRunId, fromSeq: origin.fromSeq } }),
  };
}
