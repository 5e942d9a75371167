/** Owns: what a caller is shown of the own tenant's runs. Another tenant's run is one that is not there. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import { childrenOf, snapshotOf, statusOf, type ChildRun } from "../../../workflow/state/run-view.ts";
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import type { Hosting } from "./hosting.ts";
import { openInterruptOf } from "./interrupts.ts";
import type { KnownRun } from "../records/run-book.ts";
import type {
  Ancestry,
  Answered,
  Caller,
  CreatedRun,
  EventPage,
  RunSnapshot,
} from "../records/workflow-host.ts";
import { listedAtStart } from "../records/run-workspace.ts";
import { noRun } from "./no-run.ts";

export function createdOf({ run }: KnownRun): CreatedRun {
  return { runId: run.runId, status: statusOf(run) };
}

/** What is accepted has not ended for its caller, however fast it was: the protocol knows no other status here. */
export function acceptedOf(known: KnownRun): CreatedRun {
  const created = createdOf(known);
  return hasRunEnded(created.status) ? { ...created, status: "running" } : created;
}

export async function ownRun(it: Hosting, { tenant }: Caller, runId: string): Promise<KnownRun | undefined> {
  const known = await it.runs.newest(runId as CoordinationId);
  return known?.run.started.owner.tenant === tenant ? known : undefined;
}

export async function snapshot(it: Hosting, caller: Caller, runId: string): Promise<Answered<RunSnapshot>> {
  const known = await ownRun(it, caller, runId);
  if (!known) return noRun(runId);
  const { run, graph } = known;
  const children = await childStatuses(it, known);
  const files = await listedAtStart(it.store, run);
  const interrupt = isEndedPhase(run.phase) ? undefined : openInterruptOf({ ...it, driver: it.runs }, known);
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

async function childStatuses(it: Hosting, { run }: KnownRun): Promise<ChildRun[]> {
  const children = await Promise.all(
    childrenOf(run).map(async (runId) => {
      const summary = (await it.store.entry(runId as CoordinationId))?.summary;
      // What a peer calls its run may be the name of one here.
      const isOwn = summary?.parent?.runId === run.runId && summary.tenant === run.started.owner.tenant;
      return isOwn ? [{ runId, status: summary.status }] : [];
    }),
  );
  return children.flat();
}

interface Range {
  readonly from: number;
  readonly limit: number;
}

export async function events(
  { store }: Hosting,
  caller: Caller,
  runId: string,
  { from, limit }: Range,
): Promise<Answered<EventPage>> {
  const entry = await store.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant) return noRun(runId);
  // Whoever waits at the end of a log asks often.
  const page = from < entry.length ? await store.read(entry.runId, { from, limit }) : [];
  const end = (page.at(-1)?.sequence ?? from - 1) + 1;
  const isComplete = hasRunEnded(entry.summary.status) && end >= entry.length;
  return { kind: "done", value: { events: page, isComplete } };
}

export async function ancestry(it: Hosting, caller: Caller, runId: string): Promise<Answered<Ancestry>> {
  const entry = await it.store.entry(runId as CoordinationId);
  if (entry?.summary.tenant !== caller.tenant) return noRun(runId);
  const { hostId } = it.settings;
  const { parent } = entry.summary;
  if (!parent) return { kind: "done", value: { runId, hostId, parent: null } };
  const { wellKnownUrl, cause } = parent;
  const told = { runId: parent.runId, hostId: parent.hostId, cause };
  const value = { runId, hostId, parent: { ...told, ...(wellKnownUrl !== undefined && { wellKnownUrl }) } };
  return { kind: "done", value };
}
