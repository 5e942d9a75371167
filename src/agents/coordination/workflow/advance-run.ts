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
import { describePlayedPart, findPlayedPart, NOT_PLAYED } from "./node-contract/conformance-parts.ts";
import { nodeTypeOf } from "./nodes/node-types.ts";
import { findUnfitDraft, type Unfit } from "./fit-for-log.ts";
import { draftEarlyEnd, endRun, runDeadlineMs, draftStop } from "./node-contract/run-end.ts";
import {
  eventIdOf,
  isAtWork,
  isEndedPhase,
  isMaterialising,
  type NodeRun,
  type WorkflowRun,
} from "./state/workflow-state.ts";
import { draftSuspension } from "./node-contract/suspension.ts";
import { draftOverLimit, draftExecutionLimit, draftLoopbackLimit } from "./run-limits.ts";
import { describeBrokenNode, draftFailure, draftNodeStart } from "./node-failure.ts";

export interface Progress {
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
export interface Advance extends RunContext {
  now: EpochMs;
  run: WorkflowRun;
  readonly events: WorkflowEvent[];
  readonly memory: (MemoryNote & { readonly sequence: number })[];
  /** Set in a replay, which compares instead of appending: true when the drafts are what was recorded. */
  readonly compare?: (drafts: readonly WorkflowDraft[]) => boolean;
}

/** Appends the drafts to the log of the run, then everything that follows from it. */
export function advanceRun(
  run: WorkflowRun,
  context: ProgressContext,
  drafts: readonly WorkflowDraft[] = [],
): Progress {
  if (isMaterialising(run)) return { run, events: [], memory: [], effects: [] };
  const advance: Advance = { ...context, run, events: [], memory: [] };
  append(advance, drafts);
  let hasStepped = true;
  while (hasStepped && advance.events.length < EVENTS_PER_CALL) hasStepped = takeStep(advance);
  return { run: advance.run, events: advance.events, memory: advance.memory, ...findOutstanding(advance) };
}

/** Appends the drafts to the log of the run, and nothing that follows from them: whoever drives the run plans that. */
export function recordDrafts(
  run: WorkflowRun,
  context: ProgressContext,
  drafts: readonly WorkflowDraft[],
): Pick<Progress, "run" | "events"> {
  const advance: Advance = { ...context, run, events: [], memory: [] };
  append(advance, drafts);
  return { run: advance.run, events: advance.events };
}

/** Makes the drafts events of the run and folds them. Returns false when the log cannot hold one of them; a failure is appended in its place. */
function append(advance: Advance, drafts: readonly WorkflowDraft[]): boolean {
  if (advance.compare) return compareDrafts(advance, drafts, advance.compare);
  const unfit = findUnfitDraft(drafts);
  for (const draft of unfit ? replaceUnfit(advance, unfit) : drafts) {
    if (isEndedPhase(advance.run.phase)) break;
    const event = eventOf(advance.run, draft, advance.now);
    advance.events.push(event);
    advance.run = evolveWorkflow(advance.run, event);
  }
  return unfit === undefined;
}

function compareDrafts(
  advance: Advance,
  drafts: readonly WorkflowDraft[],
  compare: NonNullable<Advance["compare"]>,
): boolean {
  if (drafts.length === 0 || compare(drafts)) return true;
  const unfit = findUnfitDraft(drafts);
  return unfit !== undefined && compare(replaceUnfit(advance, unfit));
}

/** Drafts the failure that takes the place of a draft which is too large, or of another form than the log can hold. */
function replaceUnfit(advance: Advance, { draft, problem }: Unfit): WorkflowDraft[] {
  const error = { code: "value_not_recordable", message: `${draft.type} cannot be recorded: ${problem}` };
  const view = draft.nodeId === undefined ? undefined : viewOf(advance, draft.nodeId);
  if (view && isAtWork(view.nodeRun)) return draftFailure(advance, view, error);
  return [...draftStop(advance.run, error.message), { type: "run.failed", payload: { error } }];
}

/** Returns the draft as the next event of the run. */
export function eventOf(run: WorkflowRun, draft: WorkflowDraft, now: EpochMs): WorkflowEvent {
  return {
    eventId: eventIdOf(run, run.nextSequence),
    runId: run.runId,
    sequence: run.nextSequence,
    timestamp: formatTimestamp(now),
    ...draft,
  };
}

/** Does one thing. Returns false when there is nothing to do until somebody outside acts. */
export function takeStep(advance: Advance): boolean {
  const { run } = advance;
  if (isEndedPhase(run.phase) || run.phase.kind === "paused") return false;
  if (appendAny(advance, draftOverLimit(advance) ?? draftEarlyEnd(advance))) return true;
  for (const node of run.nodes.values()) if (isAtWork(node) && stepNode(advance, node)) return true;
  if (run.pauseRequested) return !hasRunning(run) && appendAny(advance, [draftPause(run.pauseRequested)]);
  return startNextNode(advance);
}

function startNextNode(advance: Advance): boolean {
  const { run, graph } = advance;
  const [next] = listNextNodes(run, graph);
  if (next)
    return appendAny(
      advance,
      next.kind === "start" ? draftStart(advance, next.node) : [draftSkip(next.node)],
    );
  return hasWork(run) ? false : appendAny(advance, endRun(advance));
}

/** Returns false when there was nothing to append. */
function appendAny(advance: Advance, drafts: readonly WorkflowDraft[]): boolean {
  append(advance, drafts);
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

function draftPause(payload: NonNullable<WorkflowRun["pauseRequested"]>): WorkflowDraft {
  return { type: "run.paused", payload };
}

function draftSkip({ node: { id } }: GraphNode): WorkflowDraft {
  return { type: "node.skipped", nodeId: id, payload: { nodeId: id, reason: "no edge leads to it" } };
}

/** Drafts the start of a node, or how the run ends because it has started too many. */
function draftStart(advance: Advance, { node }: GraphNode): WorkflowDraft[] {
  const { run, graph } = advance;
  const capped = draftExecutionLimit(advance, node.id) ?? draftLoopbackLimit(run, graph, node);
  if (capped) return capped;
  if (node.disabled)
    return [{ type: "node.skipped", nodeId: node.id, payload: { nodeId: node.id, reason: "disabled" } }];
  return [draftNodeStart(node, 0)];
}

/** Does what the node wants now. Returns false when it waits. */
function stepNode(advance: Advance, nodeRun: NodeRun): boolean {
  const view = viewOf(advance, nodeRun.nodeId);
  if (!view) return false;
  return applyStep(advance, view, stepOf(view));
}

/** Returns what the node wants now. A node that throws fails. */
export function stepOf(view: NodeView): NodeStep {
  const { node } = view.node;
  const { typeId } = node;
  const playedPart = view.settings.play ? undefined : findPlayedPart(node);
  if (playedPart !== undefined)
    return { kind: "fail", error: { code: NOT_PLAYED, message: describePlayedPart(node, playedPart) } };
  const type = nodeTypeOf(typeId, view.settings);
  if (!type) {
    const message = `this host does not know the node type ${typeId}`;
    return { kind: "fail", error: { code: "unknown_node_type", message } };
  }
  try {
    return type.step(view);
  } catch (error) {
    return { kind: "fail", error: describeBrokenNode(error) };
  }
}

/** Returns all that a node may look at; `undefined` for one that has not been started. */
export function viewOf(
  { run, graph, settings, now }: ProgressContext & { readonly run: WorkflowRun },
  nodeId: string,
): NodeView | undefined {
  const node = graph.nodes.get(nodeId);
  const nodeRun = run.nodes.get(nodeId);
  return node && nodeRun ? { run, graph, node, nodeRun, now, settings } : undefined;
}

function applyStep(advance: Advance, view: NodeView, step: NodeStep): boolean {
  switch (step.kind) {
    case "complete":
      append(advance, [
        ...(step.before ?? []),
        draftCompletion(advance, view, step.outputs ?? {}),
        ...(step.after ?? []),
      ]);
      return true;
    case "fail":
      append(advance, [...(step.before ?? []), ...draftFailure(advance, view, step.error)]);
      return true;
    case "record": {
      const { nextSequence } = advance.run;
      const notes = (step.memory ?? []).map((note, index) => ({ ...note, sequence: nextSequence + index }));
      if (append(advance, step.drafts)) advance.memory.push(...notes);
      return true;
    }
    case "suspend":
      append(advance, [...(step.before ?? []), ...draftSuspension(view, step.interrupt)]);
      return true;
    case "end":
      append(advance, step.drafts);
      return true;
    case "wait":
      return expireInterrupt(advance, view, step.atMs);
    case "act":
      return false;
  }
}

function draftCompletion(
  { now }: Advance,
  { nodeRun }: NodeView,
  outputs: Readonly<Record<string, unknown>>,
): WorkflowDraft {
  const { nodeId, startedAtMs } = nodeRun;
  const durationMs = Math.max(0, now - startedAtMs);
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs }, durationMs } };
}

/** Resolves a question whose time is over with a no, because nothing is approved by waiting. */
function expireInterrupt(advance: Advance, { nodeRun, now }: NodeView, atMs: EpochMs | undefined): boolean {
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
  forms.some((drafts) => append(advance, drafts));
  return true;
}

/** Returns the effects that should be under way, and when the next thing is due. */
function findOutstanding(advance: Advance): Pick<Progress, "effects" | "wakeAtMs"> {
  const { run } = advance;
  if (isEndedPhase(run.phase) || run.phase.kind === "paused") return { effects: [] };
  const steps = [...run.nodes.values()].filter(isAtWork).flatMap((nodeRun) => {
    const view = viewOf(advance, nodeRun.nodeId);
    return view ? [stepOf(view)] : [];
  });
  const effects = steps.flatMap((step) => (step.kind === "act" ? [step.effect] : []));
  const times = [
    ...steps.flatMap((step) => (step.kind === "wait" ? [step.atMs] : [])),
    runDeadlineMs(advance),
    // The call stopped at its bound: the next one follows at once.
    advance.events.length >= EVENTS_PER_CALL ? advance.now : undefined,
  ].filter((time) => time !== undefined);
  return { effects, ...(times.length > 0 && { wakeAtMs: Math.min(...times) as EpochMs }) };
}
