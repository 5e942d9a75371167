/** Owns: when and how a run ends: all is done, a node failed, or its time is over. */
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import type { WorkflowDraft, WorkflowPayloads } from "../../contracts/workflows/workflow-events.ts";
import type { NodeGraph } from "../state/node-graph.ts";
import type { WorkflowSettings } from "./node-type.ts";
import { isHandlingFailure } from "../state/edges.ts";
import { draftClosings } from "../state/invocation.ts";
import { isAtWork, type NodeRun, type WorkflowRun } from "../state/workflow-state.ts";
import type { Values } from "../state/values.ts";

/** A run that may be at its end, with what bounds it. */
export interface Ending {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly now: EpochMs;
}

/** A failure that nobody takes, or a supervisor's `terminate`: the run ends though other nodes could go on. */
export function draftEarlyEnd(ending: Ending): WorkflowDraft[] {
  const { run, graph } = ending;
  for (const node of run.nodes.values())
    if (node.status === "failed" && !isFailureHandled(graph, node)) return draftFailedRun(ending, node);
  const last = run.orchestrator.last;
  return last?.decision.kind === "terminate"
    ? [...draftStop(run, "the supervisor ended the run"), draftCompletedRun(ending)]
    : [];
}

function isFailureHandled(graph: NodeGraph, { nodeId }: NodeRun): boolean {
  const node = graph.nodes.get(nodeId);
  return node !== undefined && isHandlingFailure(node);
}

/** Ends a run in which nothing is at work and nothing can be started. */
export function endRun(ending: Ending): WorkflowDraft[] {
  return [draftCompletedRun(ending)];
}

function draftFailedRun(ending: Ending, { nodeId, error }: NodeRun): WorkflowDraft[] {
  const reported = error ?? { code: "node_failed", message: `node ${nodeId} failed` };
  return [
    ...draftStop(ending.run, `node ${nodeId} failed`),
    {
      type: "run.failed",
      payload: { error: reported, failedNodeId: nodeId, durationMs: durationOf(ending) },
    },
  ];
}

/** Drafts the end of every node that is still at work. */
export function draftStop(run: WorkflowRun, reason: string): WorkflowDraft[] {
  return [...run.nodes.values()]
    .filter(isAtWork)
    .flatMap(({ nodeId, invocation }): WorkflowDraft[] => [
      ...draftClosings(nodeId, invocation),
      { type: "node.cancelled", nodeId, payload: { nodeId, reason } },
    ]);
}

/** Drafts the end of a run because one of its nodes cannot go on: the node fails, and all others stop. */
export function draftFailedEnd(
  run: WorkflowRun,
  nodeId: string,
  error: { readonly code: string; readonly message: string },
): WorkflowDraft[] {
  return [
    { type: "node.failed", nodeId, payload: { nodeId, error } },
    ...draftStop(run, error.message).filter((draft) => draft.nodeId !== nodeId),
    { type: "run.failed", payload: { error, failedNodeId: nodeId } },
  ];
}

function draftCompletedRun(ending: Ending): WorkflowDraft {
  return {
    type: "run.completed",
    payload: { outputs: { ...outputsOf(ending) }, durationMs: durationOf(ending) },
  };
}

function durationOf({ run, now }: Ending): number {
  return Math.max(0, now - run.startedAtMs);
}

/** Returns the outputs of the primary node, else of the only end, else of all ends by their ids. */
function outputsOf({ run, graph }: Ending): Values {
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

/** The strictest of what the caller, the workflow and the host say. Waiting for people does not count. */
function computeLimitMs({ run, graph, settings }: Ending): number {
  const requestedMs = run.started.configurable?.["runTimeoutMs"];
  const limits = [
    settings.runDurationMsMax,
    ...(typeof requestedMs === "number" ? [requestedMs] : []),
    ...(graph.timeoutMs ? [graph.timeoutMs] : []),
  ];
  return Math.min(...limits);
}

/** When the run's time is over, unless somebody is waited for. */
export function runDeadlineMs(ending: Ending): EpochMs | undefined {
  const { run } = ending;
  if (run.waitingSinceMs !== undefined) return undefined;
  return addMs(run.startedAtMs, computeLimitMs(ending) + run.waitedMs + 1);
}

export function isOverTime(ending: Ending): boolean {
  const deadline = runDeadlineMs(ending);
  return deadline !== undefined && ending.now >= deadline;
}

export function draftTimeout(ending: Ending): WorkflowDraft[] {
  const { run, now } = ending;
  const limit = computeLimitMs(ending);
  const observed = now - run.startedAtMs - run.waitedMs;
  const error: WorkflowPayloads["run.failed"]["error"] = {
    code: "run_timeout",
    message: `the run has worked for ${observed} ms, and its limit is ${limit} ms`,
  };
  return [
    { type: "cap.breached", payload: { kind: "run-duration", limit, observed } },
    ...draftStop(run, "the run's time is over"),
    { type: "run.failed", payload: { error, durationMs: durationOf(ending) } },
  ];
}
