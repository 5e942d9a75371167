/** Owns: the names of runs that clients of other protocols begin, so that a request which is made again finds its run. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type {
  Caller,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";

/**
 * Returns the id of the run that a request begins, made of the caller and all of the request; looks first for a run
 * with the id of earlier versions. The same request finds its run again; that of another principal has another run.
 */
export async function nameRepeatableRun(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  request: readonly unknown[],
  createName: (parts: readonly unknown[]) => CoordinationId,
): Promise<CoordinationId> {
  const { tenant, principal } = caller;
  // Earlier versions left the principal out: a request that began its run under one of them may be made again.
  const earlierName = createName([tenant, ...request]);
  const found = await host.snapshot(caller, earlierName);
  const owner = found.kind === "done" ? (found.value["owner"] as Partial<Caller> | undefined) : undefined;
  return owner?.principal === principal ? earlierName : createName([tenant, principal, ...request]);
}
