/**
 * Owns: what a run does next, as far as its log alone tells: the events to append now, what is to be done outside, and when
 * to look again. It is pure: asked again on the same log, it plans the same (D2).
 *
 * D1 what is done outside was recorded as begun before. D5 nothing follows the end. L4 the order of the definition decides
 * among nodes that are ready together.
 */
import { isoTimestamp, type EpochMs } from "../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../contracts/workflows/workflow-bounds.ts";
import { REFUSED, type WorkflowDraft, type WorkflowEvent } from "../contracts/workflows/workflow-events.ts";
import { nextNodes } from "./state/edges.ts";
import { evolveWorkflow } from "./state/evolve-workflow.ts";
import type { GraphNode } from "./state/node-graph.ts";
import type { NodeGraph } from "./state/node-graph.ts";
import type {
  MemoryNote,
  NodeError,
  NodeEffect,
  NodeStep,
  NodeView,
  WorkflowSettings,
} from "./node-contract/node-type.ts";
import { nodeTypeOf } from "./nodes/node-types.ts";
import { firstUnfit, type Unfit } from "./fit-for-log.ts";
import { closing } from "./state/invocation.ts";
import { earlyEnd, endRun, isOverTime, overTime, runDeadlineMs, stopped } from "./node-contract/run-end.ts";
import {
  eventIdOf,
  isAtWork,
  isEndedPhase,
  isMaterialising,
  type NodeRun,
  type WorkflowRun,
} from "./state/workflow-state.ts";
import { suspension } from "./node-contract/suspension.ts";

export interface Progress {
  readonly run: WorkflowRun;
  readonly events: readonly WorkflowEvent[];
  /** With the sequence of the event that tells of each. */
  readonly memory: readonly (MemoryNote & { readonly sequence: number })[];
  /** All that should be under way now. */
  readonly effects: readonly NodeEffect[];
  readonly wakeAtMs?: EpochMs;
}

export interface ProgressParts {
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly now: EpochMs;
}

/** Appends of one go; more are made in the next, so that a long run does not hold up others. */
const EVENTS_PER_GO = 200;

/** One who goes on with a run. */
export interface Going extends Omit<ProgressParts, "now"> {
  now: EpochMs;
  run: WorkflowRun;
  readonly events: WorkflowEvent[];
  readonly memory: (MemoryNote & { readonly sequence: number })[];
  /** Of a replay, in place of appending: whether the drafts are what was recorded. */
  readonly compare?: (drafts: readonly WorkflowDraft[]) => boolean;
}

/** What follows from the log, after `drafts` are appended to it. */
export function progress(
  run: WorkflowRun,
  parts: ProgressParts,
  drafts: readonly WorkflowDraft[] = [],
): Progress {
  if (isMaterialising(run)) return { run, events: [], memory: [], effects: [] };
  const going: Going = { ...parts, run, events: [], memory: [] };
  append(going, drafts);
  while (goOn(going) && going.events.length < EVENTS_PER_GO);
  return { run: going.run, events: going.events, memory: going.memory, ...outstanding(going) };
}

/** Drafts as events of the run, which it is folded from. False where one could not be read again: then it fails instead. */
function append(going: Going, drafts: readonly WorkflowDraft[]): boolean {
  if (going.compare) return compared(going, drafts, going.compare);
  const unfit = firstUnfit(drafts);
  for (const draft of unfit ? insteadOf(going, unfit) : drafts) {
    if (isEndedPhase(going.run.phase)) break;
    const event = eventOf(going.run, draft, going.now);
    going.events.push(event);
    going.run = evolveWorkflow(going.run, event);
  }
  return unfit === undefined;
}

function compared(
  going: Going,
  drafts: readonly WorkflowDraft[],
  compare: NonNullable<Going["compare"]>,
): boolean {
  if (drafts.length === 0 || compare(drafts)) return true;
  const unfit = firstUnfit(drafts);
  return unfit !== undefined && compare(insteadOf(going, unfit));
}

/** What a node, a model, a tool or a peer made may be too large, or of another form than the log can hold. */
function insteadOf(going: Going, { draft, problem }: Unfit): WorkflowDraft[] {
  const error = { code: "value_not_recordable", message: `${draft.type} cannot be recorded: ${problem}` };
  const view = draft.nodeId === undefined ? undefined : viewOf(going, draft.nodeId);
  if (view && isAtWork(view.own)) return failure(going, view, error);
  return [...stopped(going.run, error.message), { type: "run.failed", payload: { error } }];
}

export function eventOf(
  run: Pick<WorkflowRun, "runId" | "origin" | "nextSequence">,
  draft: WorkflowDraft,
  now: EpochMs,
): WorkflowEvent {
  return {
    eventId: eventIdOf(run, run.nextSequence),
    runId: run.runId,
    sequence: run.nextSequence,
    timestamp: isoTimestamp(now),
    ...draft,
  };
}

/** One thing at a time; false when there is nothing to do. */
export function goOn(going: Going): boolean {
  const { run } = going;
  if (isEndedPhase(run.phase) || run.phase.kind === "paused") return false;
  if (appended(going, overLimits(going) ?? earlyEnd(going))) return true;
  for (const node of run.nodes.values()) if (isAtWork(node) && stepNode(going, node)) return true;
  if (run.pauseRequested) return hasRunning(run) ? false : appended(going, [pausing(run)]);
  return goToNext(going);
}

/** What the run may not go beyond, whatever its nodes do. */
function overLimits(going: Going): WorkflowDraft[] | undefined {
  const { run } = going;
  if (isOverTime(going)) return overTime(going);
  if (run.chars <= WORKFLOW_BOUNDS.runCharsMax) return undefined;
  const message = `the values of the run take more than ${WORKFLOW_BOUNDS.runCharsMax} characters`;
  return [
    ...stopped(run, message),
    { type: "run.failed", payload: { error: { code: "run_too_large", message } } },
  ];
}

function goToNext(going: Going): boolean {
  const { run, graph } = going;
  const [next] = nextNodes(run, graph);
  if (next) return appended(going, next.kind === "start" ? startOf(going, next.node) : [skipping(next.node)]);
  return hasWork(run) ? false : appended(going, endRun(going));
}

function appended(going: Going, drafts: readonly WorkflowDraft[]): boolean {
  append(going, drafts);
  return drafts.length > 0;
}

function hasWork(run: WorkflowRun): boolean {
  for (const node of run.nodes.values()) if (isAtWork(node)) return true;
  return false;
}

function hasRunning(run: WorkflowRun): boolean {
  for (const { status } of run.nodes.values()) if (status === "running") return true;
  return false;
}

function pausing({ pauseRequested }: WorkflowRun): WorkflowDraft {
  return { type: "run.paused", payload: pauseRequested ?? { drainPolicy: "drain-current-node" } };
}

function skipping({ node: { id } }: GraphNode): WorkflowDraft {
  return { type: "node.skipped", nodeId: id, payload: { nodeId: id, reason: "no edge leads to it" } };
}

/** A node whose time has come, unless the run has had enough of them. */
function startOf(going: Going, { node }: GraphNode): WorkflowDraft[] {
  const { run, graph } = going;
  const capped = overExecutions(going, node.id) ?? overLoopbacks(run, graph, node);
  if (capped) return capped;
  if (node.disabled)
    return [{ type: "node.skipped", nodeId: node.id, payload: { nodeId: node.id, reason: "disabled" } }];
  return [
    { type: "node.started", nodeId: node.id, payload: { nodeId: node.id, typeId: node.typeId, attempt: 0 } },
  ];
}

function overExecutions(
  { run, settings }: Pick<Going, "run" | "settings">,
  nodeId: string,
): WorkflowDraft[] | undefined {
  const asked = run.started.configurable?.["recursionLimit"];
  const limit =
    typeof asked === "number" ? Math.min(asked, settings.nodeExecutionsMax) : settings.nodeExecutionsMax;
  if (run.executions < limit) return undefined;
  const message = `the run has executed ${run.executions} nodes, which is its limit`;
  const error = { code: "recursion_limit_exceeded", message };
  const observed = run.executions + 1;
  return [
    { type: "cap.breached", nodeId, payload: { kind: "node-executions", limit, observed, nodeId } },
    ...stopped(run, message),
    { type: "run.failed", payload: { error, failedNodeId: nodeId } },
  ];
}

/** The supervisor's loop has a limit of its own. */
function overLoopbacks(
  run: WorkflowRun,
  { loopbackMax }: NodeGraph,
  node: GraphNode["node"],
): WorkflowDraft[] | undefined {
  const own = run.nodes.get(node.id);
  const isSupervised = run.orchestrator.decided > 0 || run.orchestrator.held !== undefined;
  if (!own || isSupervised || own.endedSequence === undefined || own.loopbacks < loopbackMax)
    return undefined;
  const { id: nodeId } = node;
  const error = {
    code: "loopback_limit_exceeded",
    message: `node ${nodeId} was gone back to ${own.loopbacks} times`,
  };
  return [
    {
      type: "workflow.loopback-limit",
      nodeId,
      payload: { nodeId, iterations: own.loopbacks + 1, limit: loopbackMax },
    },
    ...stopped(run, error.message),
    { type: "run.failed", payload: { error, failedNodeId: nodeId } },
  ];
}

/** Whether the node has gone on. */
function stepNode(going: Going, own: NodeRun): boolean {
  const view = viewOf(going, own.nodeId);
  if (!view) return false;
  return taken(going, view, stepOf(view));
}

export function stepOf(view: NodeView): NodeStep {
  const { typeId } = view.node.node;
  const type = nodeTypeOf(typeId);
  if (!type) {
    const message = `this host does not know the node type ${typeId}`;
    return { kind: "fail", error: { code: "unknown_node_type", message } };
  }
  try {
    return type.step(view);
  } catch (error) {
    return { kind: "fail", error: brokenNode(error) };
  }
}

/** A node that cannot cope with what it was given fails; the run must not be tried again for ever. */
export function brokenNode(error: unknown): NodeError {
  const name = error instanceof Error ? error.name : typeof error;
  return {
    code: "node_broken",
    message: `the node could not cope with its configuration or inputs (${name})`,
  };
}

export function viewOf(
  { run, graph, settings, now }: ProgressParts & { readonly run: WorkflowRun },
  nodeId: string,
): NodeView | undefined {
  const node = graph.nodes.get(nodeId);
  const own = run.nodes.get(nodeId);
  return node && own ? { run, graph, node, own, now, settings } : undefined;
}

function taken(going: Going, view: NodeView, step: NodeStep): boolean {
  switch (step.kind) {
    case "complete":
      append(going, [
        ...(step.before ?? []),
        completion(going, view, step.outputs ?? {}),
        ...(step.after ?? []),
      ]);
      return true;
    case "fail":
      append(going, [...(step.before ?? []), ...failure(going, view, step.error)]);
      return true;
    case "record": {
      const { nextSequence } = going.run;
      const notes = (step.memory ?? []).map((note, index) => ({ ...note, sequence: nextSequence + index }));
      if (append(going, step.drafts)) going.memory.push(...notes);
      return true;
    }
    case "suspend":
      append(going, [...(step.before ?? []), ...suspension(view, step.interrupt)]);
      return true;
    case "end":
      append(going, step.drafts);
      return true;
    case "wait":
      return timedOut(going, view, step.atMs);
    case "act":
      return false;
  }
}

function completion(
  { now }: Going,
  { own }: NodeView,
  outputs: Readonly<Record<string, unknown>>,
): WorkflowDraft {
  const { nodeId, startedAtMs } = own;
  const durationMs = Math.max(0, now - startedAtMs);
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs }, durationMs } };
}

/** A node that may be tried again is; else its failure is the run's, unless an edge takes it. */
export function failure(
  { graph }: Pick<Going, "graph">,
  view: NodeView,
  error: { readonly code: string; readonly message: string },
): WorkflowDraft[] {
  const { own, node } = view;
  const { nodeId, attempt } = own;
  const isFinal = NOT_RETRIED.has(error.code) || attempt >= graph.maxRetries;
  const closed = closing(nodeId, own.invocation, error.code);
  if (!isFinal) {
    const capped = overExecutions(view, nodeId);
    if (capped) return capped;
    const { typeId } = node.node;
    return [
      ...closed,
      {
        type: "node.retried",
        nodeId,
        payload: { nodeId, attempt: attempt + 1, delayMs: 0, lastError: error },
      },
      { type: "node.started", nodeId, payload: { nodeId, typeId, attempt: attempt + 1 } },
    ];
  }
  return [...closed, { type: "node.failed", nodeId, payload: { nodeId, error, attempts: attempt + 1 } }];
}

/** Of a replay: what its source has no outcome of is not done. */
export const REPLAY_SOURCE_MISSING = "replay_source_missing";

/** What people or the protocol said no to stays no. */
const NOT_RETRIED: ReadonlySet<string> = new Set([
  "approval_rejected",
  "approval_timeout",
  "clarification_timeout",
  "interrupt_timeout",
  "decision_rejected",
  "verification_failed",
  "low_confidence_rejected",
  "capability_not_provided",
  "unknown_node_type",
  "no_pending_decision",
  "fan_out_unsupported",
  "not_configured",
  "memory_action_unknown",
  REFUSED,
  "value_not_recordable",
  "node_broken",
  REPLAY_SOURCE_MISSING,
  "handoff_task_schema_violation",
  "forbidden",
  "agent_limit_exceeded",
]);

/** Whoever did not answer in time said no: nothing is approved by waiting. */
function timedOut(going: Going, { own, now }: NodeView, atMs: EpochMs | undefined): boolean {
  if (atMs === undefined || now < atMs || !own.interrupt) return false;
  const { interruptId, kind } = own.interrupt;
  const resumeValue = { action: "timeout", decision: "rejected", reason: "timeout" };
  const payload = { nodeId: own.nodeId, interruptId, kind, resumeValue, action: "timeout" };
  append(going, [{ type: "interrupt.resolved", nodeId: own.nodeId, payload }]);
  return true;
}

/** What should be under way, and when the next thing is due. */
function outstanding(going: Going): Pick<Progress, "effects" | "wakeAtMs"> {
  const { run } = going;
  if (isEndedPhase(run.phase) || run.phase.kind === "paused") return { effects: [] };
  const steps = [...run.nodes.values()].filter(isAtWork).flatMap((own) => {
    const view = viewOf(going, own.nodeId);
    return view ? [stepOf(view)] : [];
  });
  const effects = steps.flatMap((step) => (step.kind === "act" ? [step.effect] : []));
  const times = [
    ...steps.flatMap((step) => (step.kind === "wait" ? [step.atMs] : [])),
    runDeadlineMs(going),
    // Stopped in the middle of a long go: it goes on at once.
    going.events.length >= EVENTS_PER_GO ? going.now : undefined,
  ].filter((time) => time !== undefined);
  return { effects, ...(times.length > 0 && { wakeAtMs: Math.min(...times) as EpochMs }) };
}
