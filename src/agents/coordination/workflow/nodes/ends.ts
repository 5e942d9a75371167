/** Owns: the drafts with which nodes that asked the outside for something end. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { of, type EffectOutcome, type NodeError, type NodeView } from "../node-contract/node-type.ts";
import { variableOf, type Values } from "../state/values.ts";

export function changed(view: NodeView, name: string, next: unknown): WorkflowDraft {
  const previous = variableOf(view.run, view.graph, name);
  const { nodeId } = view.own;
  return of(view, {
    type: "variable.changed",
    payload: { name, ...(previous !== undefined && { previous }), next, nodeId },
  });
}

export function completed({ own: { nodeId } }: NodeView, outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs } } };
}

export function failed({ own: { nodeId } }: NodeView, error: NodeError): WorkflowDraft {
  return { type: "node.failed", nodeId, payload: { nodeId, error } };
}

export function failedBy(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  return outcome.kind === "failed" ? [failed(view, outcome.error)] : [];
}
