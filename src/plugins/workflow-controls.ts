/** Owns: what an operator asks a host of workflows for on the page, in the name of the tenant whose run it is. */
import type { WorkflowPayloads } from "../agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  Caller,
  WorkflowHost,
} from "../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { WorkflowControls, WorkflowRun } from "./page/server/page-dependencies.ts";

/** The part of a host that an operator controls. */
export type ControlledHost = Pick<WorkflowHost, "cancel" | "events" | "fork">;

/**
 * Creates the controls by which the operator's page cancels and forks runs of the workflow host; a refusal of the host
 * is returned as its message.
 */
export function createWorkflowControls(host: ControlledHost): WorkflowControls {
  return {
    cancel: async ({ runId, tenant }) => {
      const reason = "cancelled on the operator's page";
      const answered = await host.cancel(createOperatorCaller(tenant), runId, { reason });
      return answered.kind === "refused" ? { refusal: answered.message } : {};
    },
    fork: async ({ runId, tenant, event }) => {
      const scopes = await readStarterScopes(host, { runId, tenant });
      const request = { sourceRunId: runId, mode: "branch" as const, fromSeq: event };
      const answered = await host.fork({ ...createOperatorCaller(tenant), scopes }, request);
      return answered.kind === "refused" ? { refusal: answered.message } : { id: answered.value.runId };
    },
  };
}

function createOperatorCaller(tenant: string): Caller {
  return { tenant, principal: "operator" };
}

/** Returns the scopes of whoever started the run: an operator may fork it as that caller may. */
async function readStarterScopes(
  host: ControlledHost,
  { runId, tenant }: WorkflowRun,
): Promise<readonly string[]> {
  const answered = await host.events(createOperatorCaller(tenant), runId, { from: 0, limit: 1 });
  const first = answered.kind === "done" ? answered.value.events[0] : undefined;
  if (first?.type !== "run.started") return [];
  // Only runs of workflows are forked here; a coordination's event of this name has no scopes.
  return (first.payload as Partial<WorkflowPayloads["run.started"]>).scopes ?? [];
}
