/** Owns: what people and other systems may ask of a run, and the events that follow, or why none do. */
import type { WorkflowDraft } from "../contracts/workflows/workflow-events.ts";
import type { EffectOutcome, NodeEffect, NodeType, NodeView } from "./node-contract/node-type.ts";
import { findNodeType } from "./nodes/node-types.ts";
import { draftModelCall } from "./node-contract/model-call.ts";
import { createNodeView, type ProgressContext, type RunContext } from "./advance-run.ts";
import {
  createBrokenNodeError,
  draftRetryOrFailure,
  draftNodeStart,
  REPLAY_SOURCE_MISSING,
} from "./node-failure.ts";
import { draftNodeCancellations } from "./node-contract/run-end.ts";
import { isEndedPhase, type WorkflowRun } from "./state/workflow-state.ts";

/** Drafts the cancellation of a run and of its nodes that are at work. */
export function draftRunCancellation(
  run: WorkflowRun,
  by: { readonly reason?: string; readonly cancelledBy?: string; readonly parentRunId?: string },
): WorkflowDraft[] {
  return [...draftNodeCancellations(run, "the run was cancelled"), { type: "run.cancelled", payload: by }];
}

/** Drafts the pause of a run, or the request for one that begins once the running nodes have ended. */
export function draftRunPause(
  run: WorkflowRun,
  request: { readonly drainPolicy: "immediate" | "drain-current-node"; readonly reason?: string },
): WorkflowDraft[] {
  const isWorking = [...run.nodes.values()].some(({ status }) => status === "running");
  return request.drainPolicy === "immediate" || !isWorking
    ? [{ type: "run.paused", payload: request }]
    : [{ type: "coordination.pause_requested", payload: request }];
}

/**
 * Drafts the continuation of a paused run, with the start of nodes that were stopped in the middle or failed
 * meanwhile. A pause that is taken back before it began has stopped nothing.
 */
export function draftRunResumption(run: WorkflowRun, { graph, settings }: RunContext): WorkflowDraft[] {
  const resumed: WorkflowDraft = { type: "run.resumed", payload: {} };
  if (run.pauseRequested) return [resumed];
  const restarts = [...run.nodes.values()].flatMap((nodeRun): WorkflowDraft[] => {
    const { nodeId, status, attempt, isRetrying = false } = nodeRun;
    const node = graph.nodes.get(nodeId)?.node;
    if (!node) return [];
    const isCutOff = status === "running" && findNodeType(node.typeId, settings)?.isPausable === true;
    if (!isRetrying && !isCutOff) return [];
    return [draftNodeStart(node, isRetrying ? attempt : attempt + 1)];
  });
  return [resumed, ...restarts];
}

/**
 * Drafts what the outcome of a node's effect brings to the run, with the model call that it tells of; empty where the
 * node does not wait for it any more (D3).
 */
export function draftEffectOutcome(
  run: WorkflowRun,
  context: ProgressContext,
  { effect, outcome }: { readonly effect: NodeEffect; readonly outcome: EffectOutcome },
): WorkflowDraft[] {
  const view = isEndedPhase(run.phase) ? undefined : createNodeView({ ...context, run }, effect.nodeId);
  const type = view && findNodeType(view.node.node.typeId, view.settings);
  if (!view || !type?.settle || !isEffectAwaited(type, view, effect)) return [];
  // Whatever a node makes of a failure: a replay does not go on as if it had been tried.
  if (outcome.kind === "failed" && outcome.error.code === REPLAY_SOURCE_MISSING)
    return draftRetryOrFailure(context, view, outcome.error);
  const drafts = settleSafely(type.settle, view, { effect, outcome }).flatMap((draft) =>
    draft.type === "node.failed" ? draftRetryOrFailure(context, view, draft.payload.error) : [draft],
  );
  return drafts.length > 0 ? [...draftModelCall(view, outcome), ...drafts] : [];
}

function isEffectAwaited(type: NodeType, view: NodeView, { id }: NodeEffect): boolean {
  const step = view.nodeRun.status === "running" ? type.step(view) : undefined;
  return step?.kind === "act" && step.effect.id === id;
}

/** Drafts what a node makes of an outcome, or its failure where its code throws. */
function settleSafely(
  settle: NonNullable<NodeType["settle"]>,
  view: NodeView,
  { effect, outcome }: { readonly effect: NodeEffect; readonly outcome: EffectOutcome },
): readonly WorkflowDraft[] {
  try {
    return settle(view, effect, outcome);
  } catch (error) {
    const { nodeId } = view.nodeRun;
    return [{ type: "node.failed", nodeId, payload: { nodeId, error: createBrokenNodeError(error) } }];
  }
}
