/** Owns: the drafts with which nodes that asked the outside for something end. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { withNodeId, type EffectOutcome, type NodeError, type NodeView } from "../node-contract/node-type.ts";
import { variableOf, type Values } from "../state/values.ts";

export type DraftOfChange = WorkflowDraft & { readonly type: "variable.changed" };

export function draftChanged(view: NodeView, name: string, next: unknown): DraftOfChange {
  const previous = variableOf(view.run, view.graph, name);
  const { nodeId } = view.nodeRun;
  return withNodeId(view, {
    type: "variable.changed",
    payload: { name, ...(previous !== undefined && { previous }), next, nodeId },
  });
}

/** Returns the change of the variable that the configuration's `into` names; none where it names none. */
export function draftChangesInto(view: NodeView, next: unknown): readonly WorkflowDraft[] {
  const { into } = view.node.node.config;
  return typeof into === "string" && into !== "" ? [draftChanged(view, into, next)] : [];
}

export function draftCompleted({ nodeRun: { nodeId } }: NodeView, outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs } } };
}

export function draftFailed({ nodeRun: { nodeId } }: NodeView, error: NodeError): WorkflowDraft {
  return { type: "node.failed", nodeId, payload: { nodeId, error } };
}

/** Says how a run ended that did not complete, as the rest of a sentence about it. */
export function describeEnd(status: string): string {
  return status === "cancelled" ? "was cancelled" : status;
}

export function draftFailureOf(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  return outcome.kind === "failed" ? [draftFailed(view, outcome.error)] : [];
}
