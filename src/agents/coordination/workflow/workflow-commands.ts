/** Owns: what people and other systems may ask of a run, and the events that follow, or why none do. */
import type { WorkflowDraft } from "../contracts/workflows/workflow-events.ts";
import type { EffectOutcome, NodeEffect, NodeType, NodeView } from "./node-contract/node-type.ts";
import { nodeTypeOf } from "./nodes/node-types.ts";
import { draftModelCall } from "./node-contract/model-call.ts";
import { viewOf, type ProgressContext, type RunContext } from "./advance-run.ts";
import { describeBrokenNode, draftFailure, draftNodeStart, REPLAY_SOURCE_MISSING } from "./node-failure.ts";
import { draftStop } from "./node-contract/run-end.ts";
import { isEndedPhase, type WorkflowRun } from "./state/workflow-state.ts";

export function cancelRun(
  run: WorkflowRun,
  by: { readonly reason?: string; readonly cancelledBy?: string; readonly parentRunId?: string },
): WorkflowDraft[] {
  return [...draftStop(run, "the run was cancelled"), { type: "run.cancelled", payload: by }];
}

export function pauseRun(
  run: WorkflowRun,
  request: { readonly drainPolicy: "immediate" | "drain-current-node"; readonly reason?: string },
): WorkflowDraft[] {
  const isWorking = [...run.nodes.values()].some(({ status }) => status === "running");
  return request.drainPolicy === "immediate" || !isWorking
    ? [{ type: "run.paused", payload: request }]
    : [{ type: "coordination.pause_requested", payload: request }];
}

/**
 * Drafts the continuation of a paused run. A node that was stopped in the middle begins anew, and one that failed
 * meanwhile begins its next attempt. A pause that is taken back before it began has stopped nothing.
 */
export function resumeRun(run: WorkflowRun, { graph, settings }: RunContext): WorkflowDraft[] {
  const resumed: WorkflowDraft = { type: "run.resumed", payload: {} };
  if (run.pauseRequested) return [resumed];
  const again = [...run.nodes.values()].flatMap((nodeRun): WorkflowDraft[] => {
    const { nodeId, status, attempt, isRetrying = false } = nodeRun;
    const node = graph.nodes.get(nodeId)?.node;
    if (!node) return [];
    const isCutOff = status === "running" && nodeTypeOf(node.typeId, settings)?.isPausable === true;
    if (!isRetrying && !isCutOff) return [];
    return [draftNodeStart(node, isRetrying ? attempt : attempt + 1)];
  });
  return [resumed, ...again];
}

/** D3: an outcome that the node does not wait for any more means nothing. */
export function settleEffect(
  run: WorkflowRun,
  context: ProgressContext,
  { effect, outcome }: { readonly effect: NodeEffect; readonly outcome: EffectOutcome },
): WorkflowDraft[] {
  const view = isEndedPhase(run.phase) ? undefined : viewOf({ ...context, run }, effect.nodeId);
  const type = view && nodeTypeOf(view.node.node.typeId, view.settings);
  if (!view || !type?.settle || !isAwaited(type, view, effect)) return [];
  // Whatever a node makes of a failure: a replay does not go on as if it had been tried.
  if (outcome.kind === "failed" && outcome.error.code === REPLAY_SOURCE_MISSING)
    return draftFailure(context, view, outcome.error);
  const drafts = settleSafely(type.settle, view, { effect, outcome }).flatMap((draft) =>
    draft.type === "node.failed" ? draftFailure(context, view, draft.payload.error) : [draft],
  );
  return drafts.length > 0 ? [...draftModelCall(view, outcome), ...drafts] : [];
}

function isAwaited(type: NodeType, view: NodeView, { id }: NodeEffect): boolean {
  const step = view.nodeRun.status === "running" ? type.step(view) : undefined;
  return step?.kind === "act" && step.effect.id === id;
}

function settleSafely(
  settle: NonNullable<NodeType["settle"]>,
  view: NodeView,
  { effect, outcome }: { readonly effect: NodeEffect; readonly outcome: EffectOutcome },
): readonly WorkflowDraft[] {
  try {
    return settle(view, effect, outcome);
  } catch (error) {
    const { nodeId } = view.nodeRun;
    return [{ type: "node.failed", nodeId, payload: { nodeId, error: describeBrokenNode(error) } }];
  }
}
