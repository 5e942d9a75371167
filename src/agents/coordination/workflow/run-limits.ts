/** Owns: the limits of a run, and how the run fails where it goes beyond one. */
import { WORKFLOW_BOUNDS } from "../contracts/workflows/workflow-bounds.ts";
import type { WorkflowDraft } from "../contracts/workflows/workflow-events.ts";
import type { GraphNode, NodeGraph } from "./state/node-graph.ts";
import {
  isOverTime,
  draftRunTimeout,
  draftNodeCancellations,
  type RunEnding,
} from "./node-contract/run-end.ts";
import type { WorkflowSettings } from "./node-contract/node-type.ts";
import type { WorkflowRun } from "./state/workflow-state.ts";

/** A run with the settings that bound it. */
interface LimitedRun {
  readonly run: WorkflowRun;
  readonly settings: WorkflowSettings;
}

/** Drafts the failure of a run that has worked too long or whose values are too large; else `undefined`. */
export function draftOverLimit(ending: RunEnding): WorkflowDraft[] | undefined {
  const { run } = ending;
  if (isOverTime(ending)) return draftRunTimeout(ending);
  if (run.chars <= WORKFLOW_BOUNDS.runCharsMax) return undefined;
  const message = `the values of the run take more than ${WORKFLOW_BOUNDS.runCharsMax} characters`;
  return [
    ...draftNodeCancellations(run, message),
    { type: "run.failed", payload: { error: { code: "run_too_large", message } } },
  ];
}

/** Drafts the failure of a run that has executed as many nodes as it may and is to start another; else `undefined`. */
export function draftExecutionLimit(
  { run, settings }: LimitedRun,
  nodeId: string,
): WorkflowDraft[] | undefined {
  const requested = run.started.configurable?.["recursionLimit"];
  const limit =
    typeof requested === "number"
      ? Math.min(requested, settings.nodeExecutionsMax)
      : settings.nodeExecutionsMax;
  if (run.executions < limit) return undefined;
  const message = `the run has executed ${run.executions} nodes, which is its limit`;
  const error = { code: "recursion_limit_exceeded", message };
  const observed = run.executions + 1;
  return [
    { type: "cap.breached", nodeId, payload: { kind: "node-executions", limit, observed, nodeId } },
    ...draftNodeCancellations(run, message),
    { type: "run.failed", payload: { error, failedNodeId: nodeId } },
  ];
}

/**
 * Drafts the failure of a run that would go back to a node too often; else `undefined`. A supervised run is left out:
 * the supervisor's loop has a limit of its own.
 */
export function draftLoopbackLimit(
  run: WorkflowRun,
  { loopbackMax }: NodeGraph,
  node: GraphNode["node"],
): WorkflowDraft[] | undefined {
  const nodeRun = run.nodes.get(node.id);
  const isSupervised = run.orchestrator.decided > 0 || run.orchestrator.held !== undefined;
  if (!nodeRun || isSupervised || nodeRun.endedSequence === undefined || nodeRun.loopbacks < loopbackMax)
    return undefined;
  const { id: nodeId } = node;
  const error = {
    code: "loopback_limit_exceeded",
    message: `node ${nodeId} was gone back to ${nodeRun.loopbacks} times`,
  };
  return [
    {
      type: "workflow.loopback-limit",
      nodeId,
      payload: { nodeId, iterations: nodeRun.loopbacks + 1, limit: loopbackMax },
    },
    ...draftNodeCancellations(run, error.message),
    { type: "run.failed", payload: { error, failedNodeId: nodeId } },
  ];
}
