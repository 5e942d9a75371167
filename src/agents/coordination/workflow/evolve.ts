/**
 * Owns: what each event of a workflow run means for its state. An event already happened, so nothing here refuses.
 *
 * L2 sequences are gapless. L4 the same log folds to the same state in every release. D5 nothing follows the end.
 */
import { Map as ImmutableMap } from "immutable";
import { invariant } from "../contracts/errors.ts";
import { epochMsOf, type EpochMs } from "../contracts/ids.ts";
import type { WorkflowEvent } from "../contracts/workflow-events.ts";
import { evolveNode } from "./evolve-node.ts";
import { isAtWork, isEndedPhase, type RunPhase, type WorkflowRun } from "./state.ts";

export function foldWorkflow(events: Iterable<WorkflowEvent>): WorkflowRun | undefined {
  let run: WorkflowRun | undefined;
  for (const event of events) run = evolveWorkflow(run, event);
  return run;
}

export function evolveWorkflow(before: WorkflowRun | undefined, event: WorkflowEvent): WorkflowRun {
  if (!before) return begun(event);
  invariant(
    event.sequence === before.nextSequence,
    `L2: expected ${before.nextSequence} at ${event.eventId}`,
  );
  invariant(!isEndedPhase(before.phase), `D5: ${event.type} after the end at ${event.eventId}`);
  const atMs = epochMsOf(event.timestamp);
  const chars = before.chars + charsOf(event);
  const run = { ...before, nextSequence: event.sequence + 1, changedAtMs: atMs, chars };
  return waited(before, evolveKnown(run, event, atMs), atMs);
}

function begun(event: WorkflowEvent): WorkflowRun {
  invariant(event.type === "run.started" && event.sequence === 0, `L2: a run begins with ${event.type}`);
  const atMs = epochMsOf(event.timestamp);
  return {
    runId: event.runId,
    nextSequence: 1,
    changedAtMs: atMs,
    startedAtMs: atMs,
    startedEventId: event.eventId,
    started: event.payload,
    phase: { kind: "open" },
    nodes: ImmutableMap(),
    variables: ImmutableMap(),
    chars: charsOf(event),
    executions: 0,
    orchestrator: { decided: 0 },
    waitedMs: 0,
  };
}

/** Events that carry values; the others are small. */
const VALUES: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "run.started",
  "node.completed",
  "variable.changed",
  "interrupt.requested",
  "interrupt.resolved",
  "agent.toolCalled",
  "agent.toolReturned",
  "runOrchestrator.decided",
]);

function charsOf({ type, payload }: WorkflowEvent): number {
  return VALUES.has(type) ? JSON.stringify(payload).length : 0;
}

function evolveKnown(run: WorkflowRun, event: WorkflowEvent, atMs: EpochMs): WorkflowRun {
  switch (event.type) {
    case "run.completed":
    case "run.failed":
    case "run.cancelled":
    case "run.paused":
    case "run.resumed":
    case "coordination.pause_requested":
      return evolvePhase(run, event, atMs);
    case "variable.changed":
      return { ...run, variables: run.variables.set(event.payload.name, event.payload.next) };
    case "runOrchestrator.decided":
    case "core.workflowChain.confidence-escalated":
      return evolveOrchestrator(run, event);
    default:
      return evolveNode(run, event, atMs);
  }
}

type PhaseEvent = Extract<
  WorkflowEvent,
  {
    type:
      | "run.completed"
      | "run.failed"
      | "run.cancelled"
      | "run.paused"
      | "run.resumed"
      | "coordination.pause_requested";
  }
>;

function evolvePhase(run: WorkflowRun, event: PhaseEvent, atMs: EpochMs): WorkflowRun {
  const { pauseRequested: _, ...rest } = run;
  const into = (phase: RunPhase): WorkflowRun => ({ ...rest, phase });
  switch (event.type) {
    case "run.completed":
      return into({ kind: "completed", atMs, outputs: event.payload.outputs });
    case "run.failed": {
      const { error, failedNodeId } = event.payload;
      return into({
        kind: "failed",
        atMs,
        error,
        ...(failedNodeId !== undefined && { nodeId: failedNodeId }),
      });
    }
    case "run.cancelled": {
      const { reason } = event.payload;
      return into({ kind: "cancelled", atMs, ...(reason !== undefined && { reason }) });
    }
    case "run.paused":
      return into({ kind: "paused", atMs });
    case "run.resumed":
      return into({ kind: "open" });
    case "coordination.pause_requested":
      return { ...run, pauseRequested: event.payload };
  }
}

type OrchestratorEvent = Extract<
  WorkflowEvent,
  { type: "runOrchestrator.decided" | "core.workflowChain.confidence-escalated" }
>;

function evolveOrchestrator(run: WorkflowRun, event: OrchestratorEvent): WorkflowRun {
  const { held: _, ...orchestrator } = run.orchestrator;
  const { eventId, sequence, nodeId = "" } = event;
  if (event.type === "core.workflowChain.confidence-escalated") {
    const held = { decision: event.payload.originalDecision, sequence };
    return { ...run, orchestrator: { ...orchestrator, held } };
  }
  const { agentId, decision, iteration } = event.payload;
  return {
    ...run,
    orchestrator: { ...orchestrator, agentId, decided: iteration, last: { decision, eventId, nodeId } },
  };
}

/** Time in which a person, or nobody, was awaited does not count as the run's own. */
function waited(before: WorkflowRun, run: WorkflowRun, atMs: EpochMs): WorkflowRun {
  const since = before.waitingSinceMs;
  const waits = isWaiting(run);
  if (since === undefined) return waits ? { ...run, waitingSinceMs: atMs } : run;
  if (waits) return run;
  const { waitingSinceMs: _, ...rest } = run;
  return { ...rest, waitedMs: run.waitedMs + Math.max(0, atMs - since) };
}

function isWaiting({ phase, nodes }: WorkflowRun): boolean {
  if (phase.kind === "paused") return true;
  if (phase.kind !== "open") return false;
  let suspended = false;
  for (const node of nodes.values()) {
    if (node.status === "running") return false;
    suspended ||= isAtWork(node);
  }
  return suspended;
}
