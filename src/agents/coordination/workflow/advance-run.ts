/**
 * Owns: what a run does next, as its log tells: the events to append now, the effects to perform outside, and when to look
 * again. It is pure: the same log gives the same plan (D2).
 *
 * D1 an effect is recorded as begun before it is performed. D5 nothing follows the end. L4 the order of the definition
 * decides among nodes that are ready together.
 */
import { formatTimestamp, type EpochMs } from "../contracts/ids.ts";
import type { WorkflowDraft, WorkflowEvent } from "../contracts/workflows/workflow-events.ts";
import { listNextNodes } from "./state/edges.ts";
import { evolveWorkflow } from "./state/evolve-workflow.ts";
import type { GraphNode, NodeGraph } from "./state/node-graph.ts";
import type {
  MemoryNote,
  NodeEffect,
  NodeStep,
  NodeView,
  WorkflowSettings,
} from "./node-contract/node-type.ts";
import { explainNotPlayed, findPlayedPart, NOT_PLAYED } from "./node-contract/conformance-parts.ts";
import { findNodeType } from "./nodes/node-types.ts";
import { findUnfitDraft, type UnfitDraft } from "./fit-for-log.ts";
import {
  draftEarlyEnd,
  draftRegularEnd,
  computeRunDeadlineMs,
  draftNodeCancellations,
} from "./node-contract/run-end.ts";
import {
  computeEventId,
  isAtWork,
  isEndedPhase,
  isMaterialising,
  type NodeRun,
  type WorkflowRun,
} from "./state/workflow-state.ts";
import { draftSuspension } from "./node-contract/suspension.ts";
import { draftOverLimit, draftExecutionLimit, draftLoopbackLimit } from "./run-limits.ts";
import { createBrokenNodeError, draftRetryOrFailure, draftNodeStart } from "./node-failure.ts";

/** A run after it was advanced, with the events, notes and effects that came of it. */
export interface RunProgress {
  readonly run: WorkflowRun;
  readonly events: readonly WorkflowEvent[];
  /** Notes to be kept in memory, each with the sequence of the event that records it. */
  readonly memory: readonly (MemoryNote & { readonly sequence: number })[];
  /** Every effect that should be under way now, begun or not. */
  readonly effects: readonly NodeEffect[];
  /** When to look again; absent where only somebody else can move the run. */
  readonly wakeAtMs?: EpochMs;
}

/** A run's graph and the settings of its host, as they are at any time. */
export interface RunContext {
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
}

export interface ProgressContext extends RunContext {
  readonly now: EpochMs;
}

/** How many events one call appends at most. The rest follows in the next call, so that a long run does not hold up others. */
const EVENTS_PER_CALL = 200;

/** A run that is being advanced, with what that came to so far. */
export interface RunAdvance extends RunContext {
  now: EpochMs;
  run: WorkflowRun;
  readonly events: WorkflowEvent[];
  readonly memory: (MemoryNote & { readonly sequence: number })[];
  /** Set in a replay, which compares instead of appending: true when the drafts are what was recorded. */
  readonly compare?: (drafts: readonly WorkflowDraft[]) => boolean;
}

/**
 * Turns the drafts, and what follows until there are `EVENTS_PER_CALL` events, into the next events of a run; returns
 * these, the run and its outstanding effects. A fork that still takes its source's events stays as it is.
 */
export function advanceRun(
  run: WorkflowRun,
  context: ProgressContext,
  drafts: readonly WorkflowDraft[] = [],
): RunProgress {
  if (isMaterialising(run)) return { run, events: [], memory: [], effects: [] };
  const advance: RunAdvance = { ...context, run, events: [], memory: [] };
  appendDrafts(advance, drafts);
  let hasStepped = true;
  while (hasStepped && advance.events.length < EVENTS_PER_CALL) hasStepped = appendNextStep(advance);
  return {
    run: advance.run,
    events: advance.events,
    memory: advance.memory,
    ...findOutstandingEffects(advance),
  };
}

/**
 * Turns the drafts, and nothing that follows from them, into the next events of a run, and returns the run after them
 * and the events. It writes nothing: whoever drives the run plans the rest.
 */
export function applyDrafts(
  run: WorkflowRun,
  context: ProgressContext,
  drafts: readonly WorkflowDraft[],
): Pick<RunProgress, "run" | "events"> {
  const advance: RunAdvance = { ...context, run, events: [], memory: [] };
  appendDrafts(advance, drafts);
  return { run: advance.run, events: advance.events };
}

/**
 * Appends the drafts to the run as events and folds them. Returns false where the log cannot hold one: a failure is
 * appended in place of all. A replay compares them instead, and returns whether they are as recorded.
 */
function appendDrafts(advance: RunAdvance, drafts: readonly WorkflowDraft[]): boolean {
  if (advance.compare) return compareWithRecord(advance, drafts, advance.compare);
  const unfit = findUnfitDraft(drafts);
  for (const draft of unfit ? draftUnfitFailure(advance, unfit) : drafts) {
    if (isEndedPhase(advance.run.phase)) break;
    const event = createRunEvent(advance.run, draft, advance.now);
    advance.events.push(event);
    advance.run = evolveWorkflow(advance.run, event);
  }
  return unfit === undefined;
}

/** Returns true when a replay's drafts, or the failure in place of an unfit one, are what was recorded. */
function compareWithRecord(
  advance: RunAdvance,
  drafts: readonly WorkflowDraft[],
  compare: NonNullable<RunAdvance["compare"]>,
): boolean {
  if (drafts.length === 0 || compare(drafts)) return true;
  const unfit = findUnfitDraft(drafts);
  return unfit !== undefined && compare(draftUnfitFailure(advance, unfit));
}

/** Drafts the failure that takes the place of a draft which is too large, or of another form than the log can hold. */
function draftUnfitFailure(advance: RunAdvance, { draft, problem }: UnfitDraft): WorkflowDraft[] {
  const error = { code: "value_not_recordable", message: `${draft.type} cannot be recorded: ${problem}` };
  const view = draft.nodeId === undefined ? undefined : createNodeView(advance, draft.nodeId);
  if (view && isAtWork(view.nodeRun)) return draftRetryOrFailure(advance, view, error);
  return [...draftNodeCancellations(advance.run, error.message), { type: "run.failed", payload: { error } }];
}

/** Creates the next event of a run from a draft, with its id, sequence and time. */
export function createRunEvent(run: WorkflowRun, draft: WorkflowDraft, now: EpochMs): WorkflowEvent {
  return {
    eventId: computeEventId(run, run.nextSequence),
    runId: run.runId,
    sequence: run.nextSequence,
    timestamp: formatTimestamp(now),
    ...draft,
  };
}

/**
 * Adds the events of the next thing that follows in a run to `advance`, which it changes. Returns false where nothing
 * follows now: the run has ended, is paused, or waits for a time, for work outside or for somebody.
 */
export function appendNextStep(advance: RunAdvance): boolean {
  const { run } = advance;
  if (isEndedPhase(run.phase) || run.phase.kind === "paused") return false;
  if (appendIfAny(advance, draftOverLimit(advance) ?? draftEarlyEnd(advance))) return true;
  for (const node of run.nodes.values()) if (isAtWork(node) && performNodeStep(advance, node)) return true;
  if (run.pauseRequested)
    return !hasRunningNode(run) && appendIfAny(advance, [draftPause(run.pauseRequested)]);
  return startNextNode(advance);
}

/** Starts or skips the next node, or ends the run when no work is left. Returns false when nodes are still at work. */
function startNextNode(advance: RunAdvance): boolean {
  const { run, graph } = advance;
  const [next] = listNextNodes(run, graph);
  if (next)
    return appendIfAny(
      advance,
      next.kind === "start" ? draftStartOrLimit(advance, next.node) : [draftUnreachedSkip(next.node)],
    );
  return hasNodeAtWork(run) ? false : appendIfAny(advance, draftRegularEnd(advance));
}

/** Appends the drafts. Returns false when there were none. */
function appendIfAny(advance: RunAdvance, drafts: readonly WorkflowDraft[]): boolean {
  appendDrafts(advance, drafts);
  return drafts.length > 0;
}

function hasNodeAtWork(run: WorkflowRun): boolean {
  for (const node of run.nodes.values()) if (isAtWork(node)) return true;
  return false;
}

function hasRunningNode(run: WorkflowRun): boolean {
  for (const { status } of run.nodes.values()) if (status === "running") return true;
  return false;
}

function draftPause(payload: NonNullable<WorkflowRun["pauseRequested"]>): WorkflowDraft {
  return { type: "run.paused", payload };
}

function draftUnreachedSkip({ node: { id } }: GraphNode): WorkflowDraft {
  return { type: "node.skipped", nodeId: id, payload: { nodeId: id, reason: "no edge leads to it" } };
}

/** Drafts the start of a node, its skip where it is disabled, or the end of a run that has started too many. */
function draftStartOrLimit(advance: RunAdvance, { node }: GraphNode): WorkflowDraft[] {
  const { run, graph } = advance;
  const capped = draftExecutionLimit(advance, node.id) ?? draftLoopbackLimit(run, graph, node);
  if (capped) return capped;
  if (node.disabled)
    return [{ type: "node.skipped", nodeId: node.id, payload: { nodeId: node.id, reason: "disabled" } }];
  return [draftNodeStart(node, 0)];
}

/** Asks the node what it wants now, and appends that. Returns false when it only waits or acts outside of the log. */
function performNodeStep(advance: RunAdvance, nodeRun: NodeRun): boolean {
  const view = createNodeView(advance, nodeRun.nodeId);
  if (!view) return false;
  return applyNodeStep(advance, view, decideNodeStep(view));
}

/**
 * Returns the next step of a node at work, as its type decides. A node that throws, or that this host cannot run, has
 * failing as its step.
 */
export function decideNodeStep(view: NodeView): NodeStep {
  const { node } = view.node;
  const { typeId } = node;
  const playedPart = view.settings.play ? undefined : findPlayedPart(node);
  if (playedPart !== undefined)
    return { kind: "fail", error: { code: NOT_PLAYED, message: explainNotPlayed(node, playedPart) } };
  const type = findNodeType(typeId, view.settings);
  if (!type) {
    const message = `this host does not know the node type ${typeId}`;
    return { kind: "fail", error: { code: "unknown_node_type", message } };
  }
  try {
    return type.step(view);
  } catch (error) {
    return { kind: "fail", error: createBrokenNodeError(error) };
  }
}

/**
 * Creates the view of a node that its type decides by; `undefined` for a node that has not been started, or is not in
 * the graph.
 */
export function createNodeView(
  { run, graph, settings, now }: ProgressContext & { readonly run: WorkflowRun },
  nodeId: string,
): NodeView | undefined {
  const node = graph.nodes.get(nodeId);
  const nodeRun = run.nodes.get(nodeId);
  return node && nodeRun ? { run, graph, node, nodeRun, now, settings } : undefined;
}

/** Appends what the node's step brings. Returns false when the node only waits or acts outside of the log. */
function applyNodeStep(advance: RunAdvance, view: NodeView, step: NodeStep): boolean {
  switch (step.kind) {
    case "complete":
      appendDrafts(advance, [
        ...(step.before ?? []),
        draftNodeCompletion(advance, view, step.outputs ?? {}),
        ...(step.after ?? []),
      ]);
      return true;
    case "fail":
      appendDrafts(advance, [...(step.before ?? []), ...draftRetryOrFailure(advance, view, step.error)]);
      return true;
    case "record": {
      const { nextSequence } = advance.run;
      const notes = (step.memory ?? []).map((note, index) => ({ ...note, sequence: nextSequence + index }));
      if (appendDrafts(advance, step.drafts)) advance.memory.push(...notes);
      return true;
    }
    case "suspend":
      appendDrafts(advance, [...(step.before ?? []), ...draftSuspension(view, step.interrupt)]);
      return true;
    case "end":
      appendDrafts(advance, step.drafts);
      return true;
    case "wait":
      return expireInterrupt(advance, view, step.atMs);
    case "act":
      return false;
  }
}

function draftNodeCompletion(
  { now }: RunAdvance,
  { nodeRun }: NodeView,
  outputs: Readonly<Record<string, unknown>>,
): WorkflowDraft {
  const { nodeId, startedAtMs } = nodeRun;
  const durationMs = Math.max(0, now - startedAtMs);
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs }, durationMs } };
}

/**
 * Answers a node's question with a no once its time is over, because nothing is approved by waiting. Returns false
 * until then.
 */
function expireInterrupt(
  advance: RunAdvance,
  { nodeRun, now }: NodeView,
  atMs: EpochMs | undefined,
): boolean {
  if (atMs === undefined || now < atMs || !nodeRun.interrupt) return false;
  const { interruptId, kind } = nodeRun.interrupt;
  const { nodeId } = nodeRun;
  const vote = { nodeId, interruptId, action: "timeout" };
  const received: WorkflowDraft = { type: "approval.received", nodeId, payload: vote };
  const resumeValue = { action: "timeout", decision: "rejected", reason: "timeout" };
  const payload = { ...vote, kind, resumeValue };
  const resolved: WorkflowDraft = { type: "interrupt.resolved", nodeId, payload };
  // A replay may find the first alone, where a branch was cut off behind it, or the second, as earlier releases wrote it.
  const forms = kind === "approval" ? [[received, resolved], [received], [resolved]] : [[resolved]];
  forms.some((drafts) => appendDrafts(advance, drafts));
  return true;
}

/** Returns the effects that should be under way, and when the run is to be advanced again. */
function findOutstandingEffects(advance: RunAdvance): Pick<RunProgress, "effects" | "wakeAtMs"> {
  const { run } = advance;
  if (isEndedPhase(run.phase) || run.phase.kind === "paused") return { effects: [] };
  const steps = [...run.nodes.values()].filter(isAtWork).flatMap((nodeRun) => {
    const view = createNodeView(advance, nodeRun.nodeId);
    return view ? [decideNodeStep(view)] : [];
  });
  const effects = steps.flatMap((step) => (step.kind === "act" ? [step.effect] : []));
  const times = [
    ...steps.flatMap((step) => (step.kind === "wait" ? [step.atMs] : [])),
    computeRunDeadlineMs(advance),
    // The call stopped at its bound: the next one follows at once.
    advance.events.length >= EVENTS_PER_CALL ? advance.now : undefined,
  ].filter((time) => time !== undefined);
  return { effects, ...(times.length > 0 && { wakeAtMs: Math.min(...times) as EpochMs }) };
}
