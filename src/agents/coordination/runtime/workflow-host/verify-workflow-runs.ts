/**
 * Owns: proving the logs of workflow runs, beyond their bytes: L2 gapless, L3 causes are earlier events or on another host,
 * L4 the log folds, D5 one end and nothing after it; the summary beside the log is what the log says, and what a branch took
 * is what its source has.
 */
import { isCoordinationError, isLedgerOutage } from "../../contracts/errors.ts";
import type { WorkflowEvent } from "../../contracts/workflows/workflow-events.ts";
import type { WorkflowSummary } from "../../contracts/workflows/workflow-summary.ts";
import type { StoredProblem } from "../../ports/ledger-store.ts";
import type { UnprovenRun } from "../../ports/run-store.ts";
import type { WorkflowStore } from "../../ports/workflow-store.ts";
import { beginWorkflow, evolveWorkflow } from "../../workflow/state/evolve-workflow.ts";
import { summarizeRun } from "../../workflow/state/run-view.ts";
import type { WorkflowRun } from "../../workflow/state/workflow-state.ts";
import { isSameValue } from "../../workflow/state/values.ts";
import { describeError } from "../../std/describe-error.ts";
import { checkLogLength } from "../log/check-length.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import { listUnprovenRuns, readLog } from "../log/read-pages.ts";

const PROBLEMS_MAX = 200;

export interface RunsVerification {
  readonly workflowRuns: number;
  readonly events: number;
  readonly problems: readonly StoredProblem[];
  /** The verification stopped before its end; there may be more problems. */
  readonly isCut?: true;
}

type VerificationReads = Pick<WorkflowStore, "listUnproven" | "findUnproven" | "read" | "pruned">;

/** A workflow run as the ledger lists it, before its log is verified. */
type UnprovenWorkflowRun = UnprovenRun<WorkflowSummary>;

/**
 * Proves all workflow runs of a ledger; returns counts and up to `PROBLEMS_MAX` problems, `isCut` where it ended
 * early. `onProgress` hears of each run. @throws CoordinationError for an outage before any problem
 */
export async function verifyWorkflowRuns(
  store: VerificationReads,
  onProgress: (progress: Pick<RunsVerification, "workflowRuns" | "events">) => void = () => undefined,
): Promise<RunsVerification> {
  const problems: StoredProblem[] = [];
  let workflowRuns = 0;
  let events = 0;
  let isCut = false;
  const cutListing = (message: string): void => {
    problems.push({
      kind: "index_differs",
      message: `the list of workflow runs is unreadable: ${message}`,
    });
    isCut = true;
  };
  try {
    for await (const entry of listUnprovenRuns(store, "oldest", cutListing)) {
      problems.push(...(await verifyRun(store, entry)));
      workflowRuns += 1;
      events += entry.length;
      onProgress({ workflowRuns, events });
      if (problems.length >= PROBLEMS_MAX) break;
    }
  } catch (error) {
    if (!isLedgerOutage(error) || problems.length === 0) throw error;
    isCut = true;
  }
  if (problems.length >= PROBLEMS_MAX) isCut = true;
  return { workflowRuns, events, problems: problems.slice(0, PROBLEMS_MAX), ...(isCut && { isCut }) };
}

/**
 * Proves one workflow run, its stored bytes and then what its log means, and returns the problems; the first damaged
 * event is the only problem where there is one.
 */
export async function verifyWorkflowRun(
  store: VerificationReads & Pick<WorkflowStore, "damage">,
  entry: UnprovenWorkflowRun,
): Promise<Pick<RunsVerification, "events" | "problems">> {
  const { runId, length } = entry;
  const damage = await store.damage(runId, { before: length });
  if (!damage) return { events: length, problems: await verifyRun(store, entry) };
  const { problem: kind, sequence } = damage;
  const message = "the event is not the one that was stored";
  return { events: length, problems: [{ kind, message, runId, sequence }] };
}

/** Returns the problems of a run, up to the events that its entry counts. One that was pruned meanwhile has none. */
async function verifyRun(store: VerificationReads, entry: UnprovenWorkflowRun): Promise<StoredProblem[]> {
  const problems = await findLogProblems(store, entry);
  if (problems.length === 0) return problems;
  const newest = await store.findUnproven(entry.runId).catch(ignoreDamage);
  return newest === undefined && (await store.pruned.find(entry.runId)) ? [] : problems;
}

/** Checks the log, the source and the summary of a run. A log that cannot be read on is its last problem. */
async function findLogProblems(
  store: VerificationReads,
  entry: UnprovenWorkflowRun,
): Promise<StoredProblem[]> {
  const { runId } = entry;
  const check: WorkflowRunCheck = { entry, seen: new Set(), problems: [] };
  try {
    await checkAllEvents(store, entry, check);
    check.problems.push(...(await checkLogLength(store, entry, check.run?.nextSequence ?? 0)));
  } catch (error) {
    if (isLedgerOutage(error)) throw error;
    const isUnreadable = isCoordinationError(error) && error.code === "EVENT_UNREADABLE";
    const message = describeError(error);
    const kind = isUnreadable ? "event_unreadable" : "fold_failed";
    return [...check.problems, { kind, message, runId, sequence: check.run?.nextSequence ?? 0 }];
  }
  return [...check.problems, ...checkSummary(check, entry)];
}

async function checkAllEvents(
  store: VerificationReads,
  { runId, length }: UnprovenWorkflowRun,
  check: WorkflowRunCheck,
): Promise<void> {
  await checkSource(store, check);
  for await (const page of readLog(store, runId, { to: length })) {
    for (const event of page) checkEvent(check, event);
    await checkTakenEvents(store, check, page);
  }
}

/** Adds a problem where the source of a fork does not have the events that the fork takes. */
async function checkSource(
  store: VerificationReads,
  { entry: { runId, origin }, problems }: WorkflowRunCheck,
): Promise<void> {
  if (!origin) return;
  const { sourceRunId, until } = origin;
  const source = await store.findUnproven(sourceRunId);
  if (source && source.length >= until) return;
  // A run that was forked while it was pruned; its events are those of the fork, too.
  if (!source && (await store.pruned.find(sourceRunId))) return;
  const message = source
    ? `it takes ${until} events of ${sourceRunId}, which has ${source.length}`
    : `its source ${sourceRunId} is not there`;
  problems.push({ kind: "event_missing", message, runId, sequence: 0 });
}

/**
 * Adds a problem for each event of a branch that differs from its source. Faults of the source itself are reported for
 * the source.
 */
async function checkTakenEvents(
  store: VerificationReads,
  { entry: { origin }, problems }: WorkflowRunCheck,
  page: readonly WorkflowEvent[],
): Promise<void> {
  if (origin?.mode !== "branch") return;
  const takenEvents = page.filter(({ sequence }) => sequence < origin.fromSeq);
  const [first] = takenEvents;
  if (!first) return;
  const range = { from: first.sequence, limit: takenEvents.length };
  const source = await store.read(origin.sourceRunId, range).catch(ignoreDamage);
  for (const [index, { runId: _, ...event }] of source?.entries() ?? []) {
    const { runId = "", ...ownFields } = takenEvents[index] ?? {};
    if (isSameValue(ownFields, event)) continue;
    const message = `event ${event.sequence} is not that of its source ${origin.sourceRunId}`;
    problems.push({ kind: "event_forged", message, runId, sequence: event.sequence });
  }
}

/**
 * Returns a problem where the stored summary is not the log's. The log tells neither who drove the run last, nor which
 * request it comes of, nor when it is due; it tells the rest.
 */
function checkSummary({ run }: WorkflowRunCheck, { runId, summary }: UnprovenWorkflowRun): StoredProblem[] {
  if (!summary) return [{ kind: "index_differs", message: "the summary cannot be read", runId }];
  const { root: _root, wakesAtMs: _wakesAtMs, ...stored } = summary;
  return isSameValue(run && summarizeAsStored(run, stored), stored)
    ? []
    : [{ kind: "index_differs", message: "the summary differs from the state that the log gives", runId }];
}

/**
 * Summarizes a run without the fields that the stored summary lacks. Ledgers of earlier versions do not have that a
 * run asks while it works or is paused, and how many characters it has.
 */
function summarizeAsStored(run: WorkflowRun, { driver, isAsking, chars }: WorkflowSummary): WorkflowSummary {
  const { isAsking: asks, ...summary } = summarizeRun(run, driver);
  return {
    ...summary,
    ...(isAsking && asks && { isAsking }),
    ...(chars !== undefined && { chars: run.chars }),
  };
}

/** The check of one workflow run, as far as it has come. */
interface WorkflowRunCheck {
  readonly entry: UnprovenWorkflowRun;
  run?: WorkflowRun;
  readonly seen: Set<string>;
  readonly problems: StoredProblem[];
}

/** Folds an event into the run, and adds a problem where its cause is not an earlier event (L3). */
function checkEvent(check: WorkflowRunCheck, event: WorkflowEvent): void {
  const { eventId, runId, sequence, causationId, payload } = event;
  const isForeign = (payload as { readonly causationHostId?: unknown }).causationHostId !== undefined;
  if (causationId !== undefined && !isForeign && !check.seen.has(causationId))
    check.problems.push({
      kind: "projection_differs",
      message: `L3: ${eventId} is caused by ${causationId}, which is not an earlier event`,
      runId,
      sequence,
    });
  check.seen.add(eventId);
  check.run = check.run ? evolveWorkflow(check.run, event) : beginWorkflow(event, check.entry.origin);
}
