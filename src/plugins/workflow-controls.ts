/** Owns: what an operator asks a host of workflows for on the page, in the name of the tenant whose run it is. */
import type {
  Caller,
  WorkflowHost,
} from "../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { WorkflowControls } from "./page/server/page-dependencies.ts";

/** The part of a host that an operator controls. */
export type ControlledHost = Pick<WorkflowHost, "cancel" | "fork">;

export function createWorkflowControls(host: ControlledHost): WorkflowControls {
  return {
    cancel: async ({ runId, tenant }) => {
      const reason = "cancelled on the operator's page";
      const answered = await host.cancel(createOperator(tenant), runId, { reason });
      return answered.kind === "refused" ? { refusal: answered.message } : {};
    },
    fork: async ({ runId, tenant, event }) => {
      const request = { sourceRunId: runId, mode: "branch" as const, fromSeq: event };
      const answered = await host.fork(createOperator(tenant), request);
      return answered.kind === "refused" ? { refusal: answered.message } : { id: answered.value.runId };
    },
  };
}

function createOperator(tenant: string): Caller {
  return { tenant, principal: "operator" };
}
