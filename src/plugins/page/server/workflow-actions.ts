/** Owns: what the page asks the host of workflows for about a run: to cancel it, or to fork it. */
import { hasRunEnded } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type { WorkflowEntry } from "../../../agents/coordination/ports/workflow-store.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import type { ActionResult, ForkPreview, ForkResult } from "../contract/actions.ts";
import { createSuccessAnswer, createRefusalAnswer, type JsonAnswer } from "./page-answer.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies } from "./page-dependencies.ts";

const NO_WORKFLOWS =
  "This gateway runs no workflows: turn `openwop.enabled` on, or open the page of the `serve` that runs them.";

/**
 * Cancels a workflow run with every run that it started and returns the answer for the page; a refusal where it has
 * ended, or its host is not here.
 */
export async function cancelWorkflowRun(
  { runId, summary }: WorkflowEntry,
  { workflows }: PageDependencies,
): Promise<JsonAnswer> {
  if (hasRunEnded(summary.status)) return createRefusalAnswer("refused", `Run ${runId} has already ended.`);
  if (!workflows) return createRefusalAnswer("refused", NO_WORKFLOWS);
  const { refusal } = await workflows.cancel({ runId, tenant: summary.tenant });
  if (refusal !== undefined) return createRefusalAnswer("refused", refusal);
  const cancelled: ActionResult = {
    happened: `${runId} is being cancelled, with every run that it started.`,
  };
  return createSuccessAnswer(cancelled);
}

/**
 * Returns the answer that says which nodes' outcomes a fork from an event keeps, by default all, and which begun nodes
 * it runs anew; a refusal for an event beyond the log's end. Forks nothing.
 */
export async function previewWorkflowFork(
  reader: ReportedLedger,
  { runId, length }: WorkflowEntry,
  event = length,
): Promise<JsonAnswer> {
  if (event > length) return createRefusalAnswer("invalid", `event: the run has ${length} events.`);
  const kept = new Set<string>();
  const begun = new Set<string>();
  for (let from = 0; from < length; from += PAGE_BOUNDS.eventsMax) {
    const page = await reader.workflows.read(runId, { from, limit: PAGE_BOUNDS.eventsMax });
    for (const { type, payload, sequence } of page) {
      if (type === "node.started") begun.add(payload.nodeId);
      if (sequence < event && (type === "node.completed" || type === "node.skipped"))
        kept.add(payload.nodeId);
    }
  }
  const preview: ForkPreview = {
    source: runId,
    event,
    kept: [...kept],
    anew: [...begun].filter((nodeId) => !kept.has(nodeId)),
  };
  return createSuccessAnswer(preview);
}

/**
 * Starts a fork of a workflow run from an event and returns the answer with its id; a refusal where the host refuses
 * it, or is not here.
 */
export async function forkWorkflowRun(
  { runId, summary }: WorkflowEntry,
  event: number,
  { workflows }: PageDependencies,
): Promise<JsonAnswer> {
  if (!workflows) return createRefusalAnswer("refused", NO_WORKFLOWS);
  const answered = await workflows.fork({ runId, tenant: summary.tenant, event });
  if (answered.refusal !== undefined) return createRefusalAnswer("refused", answered.refusal);
  const forked: ForkResult = {
    id: answered.id,
    happened: `${answered.id} runs: it keeps what ${runId} did before event ${event}.`,
  };
  return createSuccessAnswer(forked);
}
