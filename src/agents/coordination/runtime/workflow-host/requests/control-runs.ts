/** Owns: pausing, resuming and cancelling runs, and the runs that they started. */
import { readErrorCode } from "../../../contracts/errors.ts";
import { addMs, formatTimestamp, type CoordinationId } from "../../../contracts/ids.ts";
import { isParentOnThisHost } from "../../../contracts/workflows/workflow-events.ts";
import { hasRunEnded } from "../../../contracts/workflows/workflow-summary.ts";
import type { WorkflowEntry } from "../../../ports/workflow-store.ts";
import {
  draftRunCancellation,
  draftRunPause,
  draftRunResumption,
} from "../../../workflow/workflow-commands.ts";
import { computeRunStatus } from "../../../workflow/state/run-view.ts";
import { isEndedPhase, type WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import { RETRY_MS } from "../driving/advance-driven.ts";
import { refuse } from "../records/refuse.ts";
import type { RequestDrafts } from "../driving/request-drafts.ts";
import type { HostCollaborators } from "./hosting.ts";
import { pickIdAndStatus, findOwnRun } from "./read-runs.ts";
import { refuseUnknownRun } from "./shared-refusals.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { HostAnswer, Caller, CreatedRun, HostRefusal, PauseRun } from "../records/workflow-host.ts";

/** Puts a request to a run of the caller's tenant. Returns its id and status then, or the refusal. */
async function submitRunRequest(
  hosting: HostCollaborators,
  caller: Caller,
  runId: string,
  request: (loadedRun: LoadedRun) => RequestDrafts<HostRefusal>,
): Promise<HostAnswer<CreatedRun>> {
  if (!(await findOwnRun(hosting, caller, runId))) return refuseUnknownRun(runId);
  const answered = await hosting.driver.ask(runId as CoordinationId, request);
  if (!answered) return refuseUnknownRun(runId);
  return answered.refused ?? { kind: "done", value: pickIdAndStatus(answered.loadedRun) };
}

/**
 * Pauses a run, at once or when its running nodes have ended, and returns its status. Refuses a run that is not
 * running, and a second request that is not for a pause at once.
 */
export function requestPause(
  hosting: HostCollaborators,
  caller: Caller,
  runId: string,
  { drainPolicy = "drain-current-node", reason }: PauseRun,
): Promise<HostAnswer<CreatedRun>> {
  return submitRunRequest(hosting, caller, runId, ({ run }) => {
    const status = computeRunStatus(run);
    if (status !== "running") return refusePause(run, `a run that is ${status} cannot be paused`);
    // A pause at once takes the place of one that waits for the running nodes.
    if (run.pauseRequested && drainPolicy !== "immediate") return refusePause(run, ALREADY_DRAINING);
    return { drafts: draftRunPause(run, { drainPolicy, ...(reason !== undefined && { reason }) }) };
  });
}

const ALREADY_DRAINING = "the run is already asked to pause, and does when its running nodes have ended";

function refusePause(run: WorkflowRun, message: string): RequestDrafts<HostRefusal> {
  return { refused: refuse("run_not_pausable", message, describePauseState(run)) };
}

/**
 * Lets a paused run go on, or takes back a pause that still waits for the running nodes, and returns its status;
 * returns a refusal for any other run.
 */
export function requestResume(
  hosting: HostCollaborators,
  caller: Caller,
  runId: string,
): Promise<HostAnswer<CreatedRun>> {
  const { settings } = hosting;
  return submitRunRequest(hosting, caller, runId, ({ run, graph }) => {
    if (run.phase.kind === "paused" || run.pauseRequested)
      return { drafts: draftRunResumption(run, { graph, settings }) };
    const message = `a run that is ${computeRunStatus(run)} cannot be resumed`;
    return { refused: refuse("run_not_paused", message, describePauseState(run)) };
  });
}

function describePauseState(run: WorkflowRun): Readonly<Record<string, unknown>> {
  const { phase, pauseRequested } = run;
  return {
    runStatus: computeRunStatus(run),
    ...(pauseRequested && { pauseRequested }),
    ...(phase.kind === "paused" && { pausedAt: formatTimestamp(phase.atMs) }),
  };
}

/** A request to cancel a run, and why. */
interface RunCancellation {
  readonly runId: string;
  readonly reason?: string | undefined;
  /** The run whose cancellation this follows from. */
  readonly parentRunId?: string;
}

/** Cancels a run and returns its status, or the refusal. One that has ended stays as it ended, which is no refusal. */
export function requestCancel(
  hosting: HostCollaborators,
  caller: Caller,
  { runId, reason, parentRunId }: RunCancellation,
): Promise<HostAnswer<CreatedRun>> {
  const by = {
    cancelledBy: caller.principal,
    ...(reason !== undefined && { reason }),
    ...(parentRunId !== undefined && { parentRunId }),
  };
  return submitRunRequest(hosting, caller, runId, ({ run }) => ({
    drafts: isEndedPhase(run.phase) ? [] : draftRunCancellation(run, by),
  }));
}

/**
 * Cancels the children that nobody waits for after a run ended. It does not throw: a failure is warned of, and all is
 * tried again in `RETRY_MS`.
 */
export async function cancelChildren(hosting: HostCollaborators, run: WorkflowRun): Promise<void> {
  try {
    await cancelEachChild(hosting, run);
  } catch (error) {
    const code = readErrorCode(error);
    // The process ends; the next one finds them by `endOrphan`.
    if (code === "LEDGER_CLOSED") return;
    const { logger, clock } = hosting;
    logger.warn(
      { runId: run.runId, code },
      "the children of a run could not be cancelled; it is tried again",
    );
    clock.wakeAt(addMs(clock.now(), RETRY_MS), () => void cancelChildren(hosting, run));
  }
}

async function cancelEachChild(hosting: HostCollaborators, run: WorkflowRun): Promise<void> {
  const children = [...run.nodes.values()].flatMap(({ handoff, status }) =>
    status === "cancelled" && handoff?.childRunId !== undefined ? [handoff.childRunId] : [],
  );
  for (const runId of children) {
    // A peer's run may have the id of one here.
    if (!(await isChildOf(hosting, runId, run.runId))) continue;
    const cancelling = { runId, reason: `parent-${run.phase.kind}`, parentRunId: run.runId };
    await requestCancel(hosting, run.started.owner, cancelling);
  }
}

async function isChildOf({ store }: HostCollaborators, runId: string, parentRunId: string): Promise<boolean> {
  const entry = await store.entry(runId as CoordinationId);
  return entry?.summary.parent?.runId === parentRunId;
}

/**
 * Cancels a run whose parent on this host ended while nobody was there to tell it. Returns whether it did; false where
 * the parent goes on or is on another host.
 */
export async function endOrphan(
  hosting: HostCollaborators,
  { runId, summary }: WorkflowEntry,
): Promise<boolean> {
  const { parent, tenant } = summary;
  if (!isParentOnThisHost(parent)) return false;
  const above = await hosting.store.entry(parent.runId as CoordinationId);
  const hasEnded = above !== undefined && hasRunEnded(above.summary.status);
  return hasEnded && endAbandonedChild(hosting, { runId, tenant, parentRunId: parent.runId });
}

/** A child run whose parent may have ended without it. */
interface AbandonedChild {
  readonly runId: CoordinationId;
  readonly tenant: string;
  readonly parentRunId: string;
}

/**
 * Cancels a child whose parent has ended without it. Returns whether it did; false for a child of another run, or one
 * that its parent does not leave.
 */
export async function endAbandonedChild(
  hosting: HostCollaborators,
  { runId, tenant, parentRunId }: AbandonedChild,
): Promise<boolean> {
  // A fork may wait for a child that is its source's.
  const begunBy = (await hosting.store.entry(runId))?.summary.parent;
  if (begunBy?.runId !== parentRunId) return false;
  const { nodeId = "" } = begunBy;
  const parent = (await hosting.driver.newest(parentRunId as CoordinationId))?.run;
  if (!parent || !isChildAbandoned(parent, nodeId, runId)) return false;
  const caller = { tenant, principal: "system" };
  await requestCancel(hosting, caller, { runId, reason: `parent-${parent.phase.kind}`, parentRunId });
  return true;
}

/** True where the parent ended while it waited for the child. A child that nobody waited for goes on. */
function isChildAbandoned({ phase, nodes }: WorkflowRun, nodeId: string, childRunId: string): boolean {
  const node = nodes.get(nodeId);
  if (!isEndedPhase(phase) || node?.status !== "cancelled") return false;
  return (node.handoff?.childRunId ?? childRunId) === childRunId;
}
