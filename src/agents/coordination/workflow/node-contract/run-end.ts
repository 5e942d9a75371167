/** Owns: when and how a run ends: all is done, a node failed, or its time is over. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import type { WorkflowDraft, WorkflowPayloads } from "../../contracts/workflows/workflow-events.ts";
import type { NodeGraph } from "../state/node-graph.ts";
import type { WorkflowSettings } from "./node-type.ts";
import { isHandlingFailure } from "../state/edges.ts";
import { draftInvocationClosing } from "../state/invocation.ts";
import { isAtWork, type NodeRun, type WorkflowRun } from "../state/workflow-state.ts";
import type { Values } from "../state/values.ts";

/** A run that may be at its end, with what bounds it. */
export interface RunEnding {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly now: EpochMs;
}

/**
 * Drafts the end of a run in which a node failed and no edge handles that, or whose supervisor decided to terminate;
 * else empty. Other nodes could go on.
 */
export function draftEarlyEnd(ending: RunEnding): WorkflowDraft[] {
  const { run, graph } = ending;
  for (const node of run.nodes.values())
    if (node.status === "failed" && !isFailureHandled(graph, node)) return draftFailedRun(ending, node);
  const last = run.orchestrator.last;
  return last?.decision.kind === "terminate"
    ? [...draftNodeCancellations(run, "the supervisor ended the run"), draftCompletedRun(ending)]
    : [];
}

/** True when an edge of the failed node waits for its failure, so that the run goes on. */
function isFailureHandled(graph: NodeGraph, { nodeId }: NodeRun): boolean {
  const node = graph.nodes.get(nodeId);
  return node !== undefined && isHandlingFailure(node);
}

/** Drafts the completion of a run in which nothing is at work and nothing can be started. */
export function draftRegularEnd(ending: RunEnding): WorkflowDraft[] {
  return [draftCompletedRun(ending)];
}

function draftFailedRun(ending: RunEnding, { nodeId, error }: NodeRun): WorkflowDraft[] {
  const reported = error ?? { code: "node_failed", message: `node ${nodeId} failed` };
  return [
    ...draftNodeCancellations(ending.run, `node ${nodeId} failed`),
    {
      type: "run.failed",
      payload: { error: reported, failedNodeId: nodeId, durationMs: computeDurationMs(ending) },
    },
  ];
}

/**
 * Drafts the cancellation of every node of a run that is still at work, and before it the end of the node's agent
 * invocation.
 */
export function draftNodeCancellations(run: WorkflowRun, reason: string): WorkflowDraft[] {
  return [...run.nodes.values()]
    .filter(isAtWork)
    .flatMap(({ nodeId, invocation }): WorkflowDraft[] => [
      ...draftInvocationClosing(nodeId, invocation),
      { type: "node.cancelled", nodeId, payload: { nodeId, reason } },
    ]);
}

/**
 * Drafts the failure of a run because one of its nodes cannot go on: the node fails with the error, and all others at
 * work are cancelled.
 */
export function draftEndByNode(
  run: WorkflowRun,
  nodeId: string,
  error: { readonly code: string; readonly message: string },
): WorkflowDraft[] {
  return [
    { type: "node.failed", nodeId, payload: { nodeId, error } },
    ...draftNodeCancellations(run, error.message).filter((draft) => draft.nodeId !== nodeId),
    { type: "run.failed", payload: { error, failedNodeId: nodeId } },
  ];
}

function draftCompletedRun(ending: RunEnding): WorkflowDraft {
  return {
    type: "run.completed",
    payload: { outputs: { ...collectRunOutputs(ending) }, durationMs: computeDurationMs(ending) },
  };
}

function computeDurationMs({ run, now }: RunEnding): number {
  return Math.max(0, now - run.startedAtMs);
}

/** Returns the outputs of the primary node, else of the only end, else of all ends by their ids. */
function collectRunOutputs({ run, graph }: RunEnding): Values {
  const endNodes = [...graph.nodes.values()].flatMap(({ node, outgoing }) => {
    const nodeRun = run.nodes.get(node.id);
    const isEnd = outgoing.every(({ closesLoop }) => closesLoop);
    return nodeRun?.status === "completed" ? [{ node, own: nodeRun, isEnd }] : [];
  });
  const primary = endNodes.find(({ node }) => node.outputRole === "primary");
  if (primary) return primary.own.outputs ?? {};
  const ends = endNodes.filter(({ isEnd }) => isEnd);
  const [only] = ends;
  if (only && ends.length === 1) return only.own.outputs ?? {};
  return Object.fromEntries(ends.map(({ node, own: nodeRun }) => [node.id, nodeRun.outputs ?? {}]));
}

/** Returns the longest that a run may take: the strictest of what the caller, the workflow and the host say. */
function computeDurationLimitMs({ run, graph, settings }: RunEnding): number {
  const requestedMs = run.started.configurable?.["runTimeoutMs"];
  const limits = [
    settings.runDurationMsMax,
    ...(typeof requestedMs === "number" ? [requestedMs] : []),
    ...(graph.timeoutMs ? [graph.timeoutMs] : []),
  ];
  return Math.min(...limits);
}

/**
 * Returns the moment at which a run has worked for longer than it may; `undefined` while somebody is waited for, which
 * does not count.
 */
export function computeRunDeadlineMs(ending: RunEnding): EpochMs | undefined {
  const { run } = ending;
  if (run.waitingSinceMs !== undefined) return undefined;
  return addMs(run.startedAtMs, computeDurationLimitMs(ending) + run.waitedMs + 1);
}

/** True where a run has worked for longer than it may; false while somebody is waited for. */
export function isOverTime(ending: RunEnding): boolean {
  const deadline = computeRunDeadlineMs(ending);
  return deadline !== undefined && ending.now >= deadline;
}

/** Drafts the failure of a run that has worked for longer than it may, with the cancellation of its nodes. */
export function draftRunTimeout(ending: RunEnding): WorkflowDraft[] {
  const { run, now } = ending;
  const limit = computeDurationLimitMs(ending);
  const observed = now - run.startedAtMs - run.waitedMs;
  const error: WorkflowPayloads["run.failed"]["error"] = {
    code: "run_timeout",
    message: `the run has worked for ${observed} ms, and its limit is ${limit} ms`,
  };
  return [
    { type: "cap.breached", payload: { kind: "run-duration", limit, observed } },
    ...draftNodeCancellations(run, "the run's time is over"),
    { type: "run.failed", payload: { error, durationMs: computeDurationMs(ending) } },
  ];
}
