/** Owns: what a caller is shown of the own tenant's runs. Another tenant's run is one that is not there. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import {
  listAwaitedChildRuns,
  createRunSnapshot,
  computeRunStatus,
  type ChildRun,
} from "../../../workflow/state/run-view.ts";
import { isEndedPhase, type WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { HostCollaborators } from "./hosting.ts";
import { describeOpenInterrupt } from "./interrupts.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type {
  Ancestry,
  HostAnswer,
  Caller,
  CreatedRun,
  EventPage,
  RunSnapshot,
} from "../records/workflow-host.ts";
import { listFilesAtStart } from "../records/run-workspace.ts";
import { readEventPage } from "../records/read-event-page.ts";
import { refuseUnknownRun } from "./shared-refusals.ts";

/** Returns the id and the status of a run. */
export function pickIdAndStatus({ run }: LoadedRun): CreatedRun {
  return { runId: run.runId, status: computeRunStatus(run) };
}

/**
 * Returns the id and the status that the caller is told of an accepted run. One that has ended is told as running: the
 * protocol knows no ended status here, however fast the run was.
 */
export function describeAcceptedRun(loadedRun: LoadedRun): CreatedRun {
  const created = pickIdAndStatus(loadedRun);
  return hasRunEnded(created.status) ? { ...created, status: "running" } : created;
}

/** Returns the newest state of a run; `undefined` where there is none, or it is not of the caller's tenant. */
export async function findOwnRun(
  hosting: HostCollaborators,
  { tenant }: Caller,
  runId: string,
): Promise<LoadedRun | undefined> {
  const loadedRun = await hosting.driver.newest(runId as CoordinationId);
  return loadedRun?.run.started.owner.tenant === tenant ? loadedRun : undefined;
}

/**
 * Returns the snapshot of a run, with the child runs that it waits for, its open question and the files that it began
 * with; a refusal where the caller's tenant has no such run.
 */
export async function readRunSnapshot(
  hosting: HostCollaborators,
  caller: Caller,
  runId: string,
): Promise<HostAnswer<RunSnapshot>> {
  const loadedRun = await findOwnRun(hosting, caller, runId);
  if (!loadedRun) return refuseUnknownRun(runId);
  const { run, graph } = loadedRun;
  const children = await readChildRuns(hosting, run, { looksLeft: LOOKS_MAX });
  const files = await listFilesAtStart(hosting.store, run);
  const interrupt = isEndedPhase(run.phase) ? undefined : describeOpenInterrupt(hosting, loadedRun);
  return {
    kind: "done",
    value: {
      ...createRunSnapshot(run, graph, children),
      runId: run.runId,
      workflowId: run.started.workflowId,
      status: computeRunStatus(run, children),
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
async function readChildRuns(
  hosting: HostCollaborators,
  run: WorkflowRun,
  reading: TreeReading,
): Promise<ChildRun[]> {
  const children = await Promise.all(
    listAwaitedChildRuns(run).map(async (runId) => {
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
 * Reads the status of a child run; as far as looks are left, by its log where its summary says neither that it has
 * ended nor that it waits: it may wait for somebody by a run of its own.
 */
async function readChildRun(
  hosting: HostCollaborators,
  child: ChildRun,
  reading: TreeReading,
): Promise<ChildRun> {
  const isSettled = hasRunEnded(child.status) || child.status.startsWith("waiting-");
  if (isSettled || reading.looksLeft === 0) return child;
  reading.looksLeft -= 1;
  // A log that cannot be read is no reason to show nothing of the run above.
  const loadedRun = await hosting.driver.newest(child.runId as CoordinationId).catch(() => undefined);
  const childRuns = loadedRun ? await readChildRuns(hosting, loadedRun.run, reading) : [];
  if (!loadedRun || childRuns.length === 0) return child;
  return { ...child, status: computeRunStatus(loadedRun.run, childRuns), childRuns };
}

/** Returns a page of a run's events; a refusal where the caller's tenant has no such run. */
export async function readRunEvents(
  { store }: HostCollaborators,
  caller: Caller,
  runId: string,
  range: { readonly from: number; readonly limit: number },
): Promise<HostAnswer<EventPage>> {
  const entry = await store.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant) return refuseUnknownRun(runId);
  const hasEnded = hasRunEnded(entry.summary.status);
  return { kind: "done", value: await readEventPage(store, { ...entry, hasEnded }, range) };
}

/**
 * Returns the parent of a run and the host that the parent is on, null where it has none; a refusal where the caller's
 * tenant has no such run.
 */
export async function readAncestry(
  hosting: HostCollaborators,
  caller: Caller,
  runId: string,
): Promise<HostAnswer<Ancestry>> {
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
