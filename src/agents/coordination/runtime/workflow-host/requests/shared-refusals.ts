/** Owns: the refusals that runs of both kinds have in common: no such run, no such question, a question that is settled. */
import { refuse } from "../driving/create-run.ts";
import type { HostRefusal } from "../records/workflow-host.ts";

/** Of a run that there is not, or that is not of the caller. */
export function refuseUnknownRun(runId: string): HostRefusal {
  return refuse("not_found", `there is no run ${runId}`);
}

export function refuseUnaskedNode(nodeId: string): HostRefusal {
  return refuse("interrupt_not_found", `node ${nodeId} of the run waits for no answer`);
}

export function refuseSettledQuestion(nodeId: string): HostRefusal {
  return refuse("interrupt_already_resolved", `the question of node ${nodeId} has already been settled`);
}
