/** Owns: the refusal for a run that there is not, or that is not of the caller. */
import { refuse } from "../driving/create-run.ts";
import type { HostRefusal } from "../records/workflow-host.ts";

export function refuseUnknownRun(runId: string): HostRefusal {
  return refuse("not_found", `there is no run ${runId}`);
}
