/**
 * Owns: what each event of a workflow run means for its state. An event already happened, so nothing here refuses.
 *
 * L2 sequences are gapless. L4 the same log folds to the same state in every release. D5 nothing follows the end.
 */
import { Map as ImmutableMap } from "immutable";
import { assertInvariant } from "../../contracts/errors.ts";
import { addMs, epochMsOf, type EpochMs } from "../../contracts/ids.ts";
import type { RunOrigin } from "../../contracts/workflows/run-origin.ts";
import type { WorkflowEvent } from "../../contracts/workflows/workflow-events.ts";
import { evolveNode } from "./evolve-node.ts";
import { isAtWork, isEndedPhase, type NodeRun, type RunPhase, type WorkflowRun } from "./workflow-state.ts";

/**
 * Returns the state of a run that the events of its log fold to; `undefined` where there are none. `origin`: of a
 * fork.
 */
export function foldWorkflow(events: Iterable<WorkflowEvent>, origin?: RunOrigin): WorkflowRun | undefined {
  let run: WorkflowRun | undefined;
  for (const event of events) run = run ? evolveWorkflow(run, event) : beginWorkflow(event, origin);
  return run;
}

/**
 * Returns the state of a run after the next event of its log; the first event creates it. Throws where the event is
 * not the next one, or the run has ended.
 */
export function evolveWorkflow(earlier: WorkflowRun | undefined, event: WorkflowEvent): WorkflowRun {
  if (!earlier) return beginWorkflow(event);
  const before = isFirstOfFork(earlier) ? shiftAfterGap(earlier, epochMsOf(event.timestamp)) : earlier;
  assertInvariant(
    event.sequence === before.nextSequence,
    `L2: expected ${before.nextSequence} at ${event.eventId}`,
  );
  assertInvariant(!isEndedPhase(before.phase), `D5: ${event.type} after the end at ${event.eventId}`);
  const atMs = epochMsOf(event.timestamp);
  const chars = before.chars + countValueChars(event);
  const run = { ...before, nextSequence: event.sequence + 1, changedAtMs: atMs, chars };
  return addWaitedTime(before, evolveByType(run, event, atMs), atMs);
}

/** Creates the state of a run from the first event of its log; throws for any other event. `origin`: of a fork. */
export function beginWorkflow(event: WorkflowEvent, origin?: RunOrigin): WorkflowRun {
  assertInvariant(
    event.type === "run.started" && event.sequence === 0,
    `L2: a run begins with ${event.type}`,
  );
  const atMs = epochMsOf(event.timestamp);
  return {
    runId: event.runId,
    nextSequence: 1,
    changedAtMs: atMs,
    startedAtMs: atMs,
    startedEventId: event.eventId,
    started: overlayOptions(event.payload, origin),
    ...(origin && { origin }),
    phase: { kind: "open" },
    nodes: ImmutableMap(),
    variables: ImmutableMap(),
    chars: countValueChars(event),
    executions: 0,
    orchestrator: { decided: 0, revisions: 0 },
    reviews: ImmutableMap(),
    waitedMs: 0,
  };
}

/** Returns the options of the source with what the fork's caller put in their place. */
function overlayOptions(
  started: WorkflowRun["started"],
  origin: RunOrigin | undefined,
): WorkflowRun["started"] {
  const overlay = origin?.configurable;
  return overlay ? { ...started, configurable: { ...started.configurable, ...overlay } } : started;
}

/** True when the run's next event is the first that the fork, or a fork that it comes from, appends itself. */
export function isFirstOfFork({ origin, nextSequence }: WorkflowRun): boolean {
  return origin?.ids.some(({ before }) => before === nextSequence) === true;
}

/** Shifts the times of a fork by the gap behind its source's last event, so that nothing runs out early. */
function shiftAfterGap(run: WorkflowRun, atMs: EpochMs): WorkflowRun {
  const gapMs = Math.max(0, atMs - run.changedAtMs);
  const nodes = run.nodes.map((node): NodeRun => {
    if (!isAtWork(node)) return node;
    const { interrupt } = node;
    return {
      ...node,
      startedAtMs: addMs(node.startedAtMs, gapMs),
      ...(interrupt && { interrupt: { ...interrupt, atMs: addMs(interrupt.atMs, gapMs) } }),
    };
  });
  return addUncountedTime({ ...run, nodes }, gapMs);
}

/** Adds time in which nobody drove the run. Where it waits, that time is counted when the wait ends. */
function addUncountedTime(run: WorkflowRun, ms: number): WorkflowRun {
  return run.waitingSinceMs === undefined ? { ...run, waitedMs: run.waitedMs + ms } : run;
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
  "agent.reasoned",
  "coordination.agent_bound",
  "coordination.agent_turned",
  "runOrchestrator.decided",
]);

/** Counts the characters of an event's values; 0 for events that carry none. */
function countValueChars({ type, payload }: WorkflowEvent): number {
  return VALUES.has(type) ? JSON.stringify(payload).length : 0;
}

function evolveByType(run: WorkflowRun, event: WorkflowEvent, atMs: EpochMs): WorkflowRun {
  switch (event.type) {
    case "run.completed":
    case "run.failed":
    case "run.cancelled":
    case "run.paused":
    case "run.resumed":
    case "coordination.pause_requested":
      return evolvePhase(run, event, atMs);
    case "variable.changed":
      return changeVariable(run, event.payload);
    case "runOrchestrator.decided":
    case "core.workflowChain.confidence-escalated":
      return evolveOrchestrator(run, event);
    case "agent.decided": {
      const { agentId, confidence } = event.payload;
      const actor = { agentId, ...(confidence !== undefined && { confidence }) };
      return { ...run, actor };
    }
    case "run.resuming": {
      const { awayMs } = event.payload;
      if (awayMs === undefined) return run;
      return { ...addUncountedTime(run, awayMs), awaySequence: event.sequence };
    }
    default:
      return evolveNode(run, event, atMs);
  }
}

/** Keeps the value that is replaced, because texts which it came into may still hold it. */
function changeVariable(
  run: WorkflowRun,
  { name, next }: (WorkflowEvent & { type: "variable.changed" })["payload"],
): WorkflowRun {
  const variables = run.variables.set(name, next);
  if (!run.variables.has(name)) return { ...run, variables };
  const { replacedValues = ImmutableMap<string, readonly unknown[]>() } = run;
  const values = [...replacedValues.get(name, []), run.variables.get(name)];
  return { ...run, variables, replacedValues: replacedValues.set(name, values) };
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
  const enterPhase = (phase: RunPhase): WorkflowRun => ({ ...rest, phase });
  switch (event.type) {
    case "run.completed":
      return enterPhase({ kind: "completed", atMs, outputs: event.payload.outputs });
    case "run.failed": {
      const { error, failedNodeId } = event.payload;
      return enterPhase({
        kind: "failed",
        atMs,
        error,
        ...(failedNodeId !== undefined && { nodeId: failedNodeId }),
      });
    }
    case "run.cancelled": {
      const { reason } = event.payload;
      return enterPhase({ kind: "cancelled", atMs, ...(reason !== undefined && { reason }) });
    }
    case "run.paused":
      return enterPhase({ kind: "paused", atMs });
    case "run.resumed":
      return enterPhase({ kind: "open" });
    case "coordination.pause_requested":
      return { ...run, pauseRequested: event.payload };
  }
}

type OrchestratorEvent = Extract<
  WorkflowEvent,
  { type: "runOrchestrator.decided" | "core.workflowChain.confidence-escalated" }
>;

/** Applies a supervisor's recorded or held decision. */
function evolveOrchestrator(run: WorkflowRun, event: OrchestratorEvent): WorkflowRun {
  const { held: heldDecisions = [], ...others } = run.orchestrator;
  const { eventId, sequence, nodeId = "" } = event;
  const ofOthers = heldDecisions.filter((heldDecision) => heldDecision.nodeId !== nodeId);
  if (event.type === "core.workflowChain.confidence-escalated") {
    const { originalDecision: decision } = event.payload;
    // A verifier's doubt holds no decision.
    if (!decision) return run;
    return { ...run, orchestrator: { ...others, held: [...ofOthers, { nodeId, decision, sequence }] } };
  }
  const orchestrator = ofOthers.length > 0 ? { ...others, held: ofOthers } : others;
  const { agentId, decision, iteration } = event.payload;
  const { last, earlier = [] } = others;
  return {
    ...run,
    orchestrator: {
      ...orchestrator,
      agentId,
      decided: iteration,
      last: { decision, eventId, sequence, nodeId },
      ...(last && { earlier: [...earlier, last] }),
    },
  };
}

/**
 * Begins or ends a wait, which does not count as the run's own time. A run waits while it is paused, and where only
 * people or children with a limit of their own are to go on.
 */
function addWaitedTime(before: WorkflowRun, run: WorkflowRun, atMs: EpochMs): WorkflowRun {
  const since = before.waitingSinceMs;
  const waits = isRunWaiting(run);
  if (since === undefined) return waits ? { ...run, waitingSinceMs: atMs } : run;
  if (waits) return run;
  const { waitingSinceMs: _, ...rest } = run;
  return { ...rest, waitedMs: run.waitedMs + Math.max(0, atMs - since) };
}

function isRunWaiting({ phase, nodes }: WorkflowRun): boolean {
  if (phase.kind === "paused") return true;
  if (phase.kind !== "open") return false;
  let isAwaiting = false;
  for (const node of nodes.values()) {
    if (node.status === "running" && !isAwaitingChild(node)) return false;
    isAwaiting ||= isAtWork(node);
  }
  return isAwaiting;
}

function isAwaitingChild({ handoff }: NodeRun): boolean {
  return handoff?.phase === "running";
}
