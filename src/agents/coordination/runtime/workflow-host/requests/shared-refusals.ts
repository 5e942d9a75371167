/** Owns: the refusals that runs of both kinds have in common: no such run, no such question, a question that is settled. */
import { refuse } from "../records/refuse.ts";
import type { HostRefusal } from "../records/workflow-host.ts";

/** Returns the refusal of a request about a run that is not there, or that is another tenant's. */
export function refuseUnknownRun(runId: string): HostRefusal {
  return refuse("not_found", `there is no run ${runId}`);
}

/** Returns the refusal of an answer to a node that waits for none. */
export function refuseUnaskedNode(nodeId: string): HostRefusal {
  return refuse("interrupt_not_found", `node ${nodeId} of the run waits for no answer`);
}

/** Returns the refusal of an answer to a node's question that has been settled already. */
export function refuseSettledQuestion(nodeId: string): HostRefusal {
  return refuse("interrupt_already_resolved", `the question of node ${nodeId} has already been settled`);
}
