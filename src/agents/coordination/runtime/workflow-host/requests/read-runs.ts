/** Owns: what a caller is shown of the own tenant's runs. Another tenant's run is one that is not there. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import { childrenOf, snapshotOf, statusOf, type ChildRun } from "../../../workflow/state/run-view.ts";
import { isEndedPhase, type WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { Hosting } from "./hosting.ts";
import { openInterruptOf } from "./interrupts.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type {
  Ancestry,
  Answered,
  Caller,
  CreatedRun,
  EventPage,
  RunSnapshot,
} from "../records/workflow-host.ts";
import { listFilesAtStart } from "../records/run-workspace.ts";
import { readEventPage } from "../records/read-event-page.ts";
import { refuseUnknownRun } from "./shared-refusals.ts";

export function createdOf({ run }: LoadedRun): CreatedRun {
  return { runId: run.runId, status: statusOf(run) };
}

/**
 * Returns what the caller is told of an accepted run. The protocol knows no ended status here, however fast the run
 * was.
 */
export function acceptedOf(loadedRun: LoadedRun): CreatedRun {
  const created = createdOf(loadedRun);
  return hasRunEnded(created.status) ? { ...created, status: "running" } : created;
}

export async function ownRun(
  hosting: Hosting,
  { tenant }: Caller,
  runId: string,
): Promise<LoadedRun | undefined> {
  const loadedRun = await hosting.runs.newest(runId as CoordinationId);
  return loadedRun?.run.started.owner.tenant === tenant ? loadedRun : undefined;
}

export async function readSnapshot(
  hosting: Hosting,
  caller: Caller,
  runId: string,
): Promise<Answered<RunSnapshot>> {
  const loadedRun = await ownRun(hosting, caller, runId);
  if (!loadedRun) return refuseUnknownRun(runId);
  const { run, graph } = loadedRun;
  const children = await readChildRuns(hosting, run, { looksLeft: LOOKS_MAX });
  const files = await listFilesAtStart(hosting.store, run);
  const interrupt = isEndedPhase(run.phase)
    ? undefined
    : openInterruptOf({ ...hosting, driver: hosting.runs }, loadedRun);
  return {
    kind: "done",
    value: {
      ...snapshotOf(run, graph, children),
      runId: run.runId,
      workflowId: run.started.workflowId,
      status: statusOf(run, children),
      ...(interrupt && { interrupt }),
      ...(files && { workspace: files.map(({ path, version }) => ({ path, version })) }),
    },
  };
}

/** Runs that are looked into for one snapshot, at any depth: whether they wait for runs in turn. */
const LOOKS_MAX = 100;

/** Counts down while the runs that a run waits for are read. */
interface TreeReading {
  looksLeft: number;
}

/** Reads the runs that a run waits for, and those that these wait for: how deep runs are nested has a bound. */
async function readChildRuns(hosting: Hosting, run: WorkflowRun, reading: TreeReading): Promise<ChildRun[]> {
  const children = await Promise.all(
    childrenOf(run).map(async (runId) => {
      const summary = (await hosting.store.entry(runId as CoordinationId))?.summary;
      // A peer's run may have the id of one here.
      const isOwn = summary?.parent?.runId === run.runId && summary.tenant === run.started.owner.tenant;
      if (!isOwn) return [];
      const { status, isAsking } = summary;
      return [await readChildRun(hosting, { runId, status, ...(isAsking && { isAsking }) }, reading)];
    }),
  );
  return children.flat();
}

/**
 * Reads how a run is that another one waits for. Its summary does not tell that it waits for somebody by a run of its own, which goes
 * on while it is paused.
 */
async function readChildRun(hosting: Hosting, child: ChildRun, reading: TreeReading): Promise<ChildRun> {
  const isSettled = hasRunEnded(child.status) || child.status.startsWith("waiting-");
  if (isSettled || reading.looksLeft === 0) return child;
  reading.looksLeft -= 1;
  // A log that cannot be read is no reason to show nothing of the run above.
  const loadedRun = await hosting.runs.newest(child.runId as CoordinationId).catch(() => undefined);
  const childRuns = loadedRun ? await readChildRuns(hosting, loadedRun.run, reading) : [];
  if (!loadedRun || childRuns.length === 0) return child;
  return { ...child, status: statusOf(loadedRun.run, childRuns), childRuns };
}

export async function readEvents(
  { store }: Hosting,
  caller: Caller,
  runId: string,
  range: { readonly from: number; readonly limit: number },
): Promise<Answered<EventPage>> {
  const entry = await store.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant) return refuseUnknownRun(runId);
  const hasEnded = hasRunEnded(entry.summary.status);
  return { kind: "done", value: await readEventPage(store, { ...entry, hasEnded }, range) };
}

export async function readAncestry(
  hosting: Hosting,
  caller: Caller,
  runId: string,
): Promise<Answered<Ancestry>> {
  const entry = await hosting.store.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant) return refuseUnknownRun(runId);
  const { hostId } = hosting.settings;
  const { parent } = entry.summary;
  if (!parent) return { kind: "done", value: { runId, hostId, parent: null } };
  const { wellKnownUrl, cause } = parent;
  const ancestor = { runId: parent.runId, hostId: parent.hostId, cause };
  const value = {
    runId,
    hostId,
    parent: { ...ancestor, ...(wellKnownUrl !== undefined && { wellKnownUrl }) },
  };
  return { kind: "done", value };
}
