/** Owns: reading the recorded histories beside it, and what of their folded state must stay the same for ever. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  decodeWorkflowEvent,
  type WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import type { KnownCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { viewCoordination } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { summarizeRun } from "../../src/agents/coordination/workflow/state/run-view.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";

/** Reads the runs of a history in the order in which they began there. */
export function readRuns(name: string): RunEvent[][] {
  return groupByRun(readLines(name).map((line) => decodeEvent(line)));
}

export function readWorkflowRuns(name: string): WorkflowEvent[][] {
  return groupByRun(readLines(name).map((line) => decodeWorkflowEvent(line)));
}

function readLines(name: string): unknown[] {
  const text = readFileSync(join(import.meta.dirname, name), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

function groupByRun<Event extends { readonly runId: string }>(events: readonly Event[]): Event[][] {
  return [...Map.groupBy(events, ({ runId }) => runId).values()];
}

/** @throws Error for a log that opens nothing. */
export function foldRun(events: readonly RunEvent[]): KnownCoordination {
  const [first] = events;
  if (!first) throw new Error("a run without events");
  const state = fold(first.runId, events);
  if (state.kind === "unopened") throw new Error("a run that was not opened");
  return state;
}

/** Returns the content of the state that the events fold to, not its layout in memory. */
export function foldEvents(events: readonly RunEvent[]): object {
  const state = foldRun(events);
  const { openSteps, lastFactId, nextSequence, iterations } = state;
  const causes = [...state.steps.values()].map(({ lastFactId: fact, chainEventId: chain }) => ({
    fact,
    chain,
  }));
  const view = viewCoordination(state);
  // The times of events, which later releases show.
  const escalations = view.escalations.map(({ askedAtMs: _, ...question }) => question);
  const conflicts = view.conflicts.map(({ resolvedAtMs: _, ...conflict }) => conflict);
  return {
    summary: summarizeCoordination(state),
    references: events.flatMap(listEventReferences),
    view: { ...view, escalations, conflicts },
    position: { nextSequence, iterations, lastFactId, openSteps, causes },
  };
}

/** As `foldEvents`, with what no view shows: reports, what came too late, loans, worktrees, stray children, tellings. */
export function foldWithNotes(events: readonly RunEvent[]): object {
  const state = foldRun(events);
  const { cancelledBy, plan, tellings, untold, worktrees } = state;
  const notes = [...state.steps.values()].map(({ late, loan, merged, report, revisions, ...step }) => ({
    cancelledBy: step.cancelledBy,
    late,
    loan,
    merged,
    report,
    revisions,
  }));
  const hidden = {
    cancelledBy,
    notes,
    spent: plan?.spent,
    strays: plan?.strays,
    tellings,
    untold,
    worktrees,
  };
  return { ...foldEvents(events), hidden };
}

/**
 * The state in the middle, where things are open, and that at the end, where little is; and a digest of the state after every event,
 * so that the first one that folds otherwise can be told.
 */
export function foldThroughout<Event>(
  events: readonly Event[],
  foldOne: (events: readonly Event[]) => object,
): object {
  const digests = events.map((_, index) => digestOf(foldOne(events.slice(0, index + 1))));
  return { half: foldOne(halfOf(events)), whole: foldOne(events), digests };
}

function digestOf(value: object): string {
  return hash("sha256", JSON.stringify(value)).slice(0, 8);
}

export function halfOf<Event>(events: readonly Event[]): Event[] {
  return events.slice(0, Math.ceil(events.length / 2));
}

/** @throws Error for a log without events. */
export function foldWorkflowRun(events: readonly WorkflowEvent[]): WorkflowRun {
  const run = foldWorkflow(events);
  if (!run) throw new Error("a run without events");
  return run;
}

/** As `foldEvents`, of a workflow run. */
export function foldWorkflowEvents(events: readonly WorkflowEvent[]): object {
  const run = foldWorkflowRun(events);
  const { nextSequence, executions, orchestrator, waitedMs, phase, variables } = run;
  const nodes = [...run.nodes.values()].map(({ nodeId, status, outputs, error, answers, handoff }) => ({
    nodeId,
    status,
    outputs,
    error,
    answers,
    handoff,
  }));
  const position = { nextSequence, executions, orchestrator, waitedMs };
  return { summary: summarizeRun(run, "driver"), phase, variables, nodes, position };
}
