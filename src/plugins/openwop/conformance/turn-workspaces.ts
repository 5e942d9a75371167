/** Owns: what each turn of a run's supervisor was given of the workspace, told afterwards from the log. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { SUPERVISOR } from "../../../agents/coordination/workflow/state/graph.ts";
import type { SeamAccess } from "../../../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import { refuseUnknownRun } from "../../../agents/coordination/runtime/workflow-host/requests/shared-refusals.ts";
import type {
  HostAnswer,
  Caller,
  TurnWorkspace,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { readWorkspaceFiles } from "../../../agents/coordination/runtime/workflow-host/records/run-workspace.ts";

/** Events of a run that is looked at. */
const EVENTS_MAX = 10_000;

/**
 * Returns the paths of the files that each turn of a run's supervisor was given, as told by the first 10,000 events of
 * its log; a refusal where the run is not one of the caller's tenant.
 */
export async function listTurnWorkspaces(
  { store, runs }: SeamAccess,
  { tenant }: Caller,
  runId: string,
): Promise<HostAnswer<readonly TurnWorkspace[]>> {
  const loadedRun = await runs.newest(runId as CoordinationId);
  if (loadedRun?.run.started.owner.tenant !== tenant) return refuseUnknownRun(runId);
  const turns: TurnWorkspace[] = [];
  let iteration = 1;
  for (const event of await store.read(loadedRun.run.runId, { from: 0, limit: EVENTS_MAX })) {
    if (event.type === "runOrchestrator.decided") iteration = event.payload.iteration + 1;
    if (event.type !== "node.started" || event.payload.typeId !== SUPERVISOR || event.payload.attempt > 0)
      continue;
    const read = await readWorkspaceFiles(store, loadedRun.run, {
      before: event.sequence,
      paths: [],
      contentsMax: 0,
    });
    if ("files" in read) turns.push({ iteration, paths: read.files.map(({ path }) => path) });
  }
  return { kind: "done", value: turns };
}
