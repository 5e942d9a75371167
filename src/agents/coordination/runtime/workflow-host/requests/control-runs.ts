/** Owns: pausing, resuming and cancelling runs, and the runs that they started. */
import { isoTimestamp, type CoordinationId } from "../../../contracts/ids.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import type { WorkflowEntry } from "../../../ports/workflow-store.ts";
import { cancelRun, pauseRun, resumeRun } from "../../../workflow/workflow-commands.ts";
import { statusOf } from "../../../workflow/state/run-view.ts";
import { isEndedPhase, type WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { refuse } from "../driving/create-run.ts";
import type { Asked } from "../driving/drive-runs.ts";
import type { Hosting } from "./hosting.ts";
import { createdOf, ownRun } from "./read-runs.ts";
import { noRun } from "./no-run.ts";
import type { KnownRun } from "../records/run-book.ts";
import type { Answered, Caller, CreatedRun, HostRefusal, PauseRun } from "../records/workflow-host.ts";

async function ask(
  it: Hosting,
  caller: Caller,
  runId: string,
  asked: (known: KnownRun) => Asked<HostRefusal>,
): Promise<Answered<CreatedRun>> {
  if (!(await ownRun(it, caller, runId))) return noRun(runId);
  const answered = await it.runs.ask(runId as CoordinationId, asked);
  if (!answered) return noRun(runId);
  return answered.refused ?? { kind: "done", value: createdOf(answered.known) };
}

export function pause(
  it: Hosting,
  caller: Caller,
  runId: string,
  { drainPolicy = "drain-current-node", reason }: PauseRun,
): Promise<Answered<CreatedRun>> {
  return ask(it, caller, runId, ({ run }) => {
    const status = statusOf(run);
    if (status !== "running" || run.pauseRequested)
      return {
        refused: refuse("run_not_pausable", `a run that is ${status} cannot be paused`, pauseDetails(run)),
      };
    return { drafts: pauseRun(run, { drainPolicy, ...(reason !== undefined && { reason }) }) };
  });
}

export function resume(it: Hosting, caller: Caller, runId: string): Promise<Answered<CreatedRun>> {
  return ask(it, caller, runId, ({ run, graph }) => {
    if (run.phase.kind === "paused") return { drafts: resumeRun(run, { graph }) };
    const message = `a run that is ${statusOf(run)} cannot be resumed`;
    return { refused: refuse("run_not_paused", message, pauseDetails(run)) };
  });
}

function pauseDetails(run: WorkflowRun): Readonly<Record<string, unknown>> {
  const { phase } = run;
  return {
    runStatus: statusOf(run),
    ...(phase.kind === "paused" && { pausedAt: isoTimestamp(phase.atMs) }),
  };
}

interface Cancelling {
  readonly runId: string;
  readonly reason?: string | undefined;
  /** The run whose cancellation this follows from. */
  readonly parentRunId?: string;
}

/** A run that has ended stays as it ended. */
export function cancel(
  it: Hosting,
  caller: Caller,
  { runId, reason, parentRunId }: Cancelling,
): Promise<Answered<CreatedRun>> {
  const by = {
    cancelledBy: caller.principal,
    ...(reason !== undefined && { reason }),
    ...(parentRunId !== undefined && { parentRunId }),
  };
  return ask(it, caller, runId, ({ run }) => ({ drafts: isEndedPhase(run.phase) ? [] : cancelRun(run, by) }));
}

/** Nobody waits for them any more. What is cut off here is found by `endOrphan`. */
export async function cancelChildren(it: Hosting, run: WorkflowRun): Promise<void> {
  const children = [...run.nodes.values()].flatMap(({ handoff, status }) =>
    status === "cancelled" && handoff?.childRunId !== undefined ? [handoff.childRunId] : [],
  );
  for (const runId of children) {
    // What a peer calls its run may be the name of one here.
    if (!(await isChildOf(it, runId, run.runId))) continue;
    const cancelling = { runId, reason: `parent-${run.phase.kind}`, parentRunId: run.runId };
    await cancel(it, run.started.owner, cancelling).catch((error: unknown) => {
      const name = error instanceof Error ? error.name : "unknown";
      it.logger.warn({ runId, error: name }, "a child run could not be cancelled");
    });
  }
}

async function isChildOf({ store }: Hosting, runId: string, parentRunId: string): Promise<boolean> {
  const entry = await store.entry(runId as CoordinationId);
  return entry?.summary.parent?.runId === parentRunId;
}

/** Whether the run's parent ended while nobody was there to tell it; then it is cancelled now. */
export async function endOrphan(it: Hosting, { runId, summary }: WorkflowEntry): Promise<boolean> {
  const { parent, tenant } = summary;
  if (!parent || parent.wellKnownUrl !== undefined) return false;
  const above = await it.store.entry(parent.runId as CoordinationId);
  const hasEnded = above !== undefined && hasRunEnded(above.summary.status);
  return hasEnded && endAbandoned(it, { runId, tenant, parentRunId: parent.runId });
}

interface Child {
  readonly runId: CoordinationId;
  readonly tenant: string;
  readonly parentRunId: string;
}

/** Ends a child whose parent has ended without it. Returns whether it was one. */
export async function endAbandoned(it: Hosting, { runId, tenant, parentRunId }: Child): Promise<boolean> {
  // A fork may wait for a child that is its source's.
  const begunBy = (await it.store.entry(runId))?.summary.parent;
  if (begunBy?.runId !== parentRunId) return false;
  const { nodeId = "" } = begunBy;
  const parent = (await it.runs.newest(parentRunId as CoordinationId))?.run;
  if (!parent || !isCutOff(parent, nodeId, runId)) return false;
  const caller = { tenant, principal: "system" };
  await cancel(it, caller, { runId, reason: `parent-${parent.phase.kind}`, parentRunId });
  return true;
}

/** A child that nobody waited for goes on. */
function isCutOff({ phase, nodes }: WorkflowRun, nodeId: string, childRunId: string): boolean {
  const node = nodes.get(nodeId);
  if (!isEndedPhase(phase) || node?.status !== "cancelled") return false;
  return (node.handoff?.childRunId ?? childRunId) === childRunId;
}
