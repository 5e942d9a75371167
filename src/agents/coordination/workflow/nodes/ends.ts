/** Owns: the drafts with which nodes that asked the outside for something end. */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { withNodeId, type EffectOutcome, type NodeError, type NodeView } from "../node-contract/node-type.ts";
import { readVariable, type Values } from "../state/values.ts";

export type DraftOfChange = WorkflowDraft & { readonly type: "variable.changed" };

/** Drafts the change of a variable by a node, with its previous value. */
export function draftVariableChange(view: NodeView, name: string, next: unknown): DraftOfChange {
  const previous = readVariable(view.run, view.graph, name);
  const { nodeId } = view.nodeRun;
  return withNodeId(view, {
    type: "variable.changed",
    payload: { name, ...(previous !== undefined && { previous }), next, nodeId },
  });
}

/** Drafts the change of the variable that a node's configuration names as `into`; empty where it names none. */
export function draftConfiguredChange(view: NodeView, next: unknown): readonly WorkflowDraft[] {
  const { into } = view.node.node.config;
  return typeof into === "string" && into !== "" ? [draftVariableChange(view, into, next)] : [];
}

/** Drafts the completion of a node with its outputs. */
export function draftNodeCompleted({ nodeRun: { nodeId } }: NodeView, outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs } } };
}

/** Drafts the failure of a node with its error. */
export function draftNodeFailed({ nodeRun: { nodeId } }: NodeView, error: NodeError): WorkflowDraft {
  return { type: "node.failed", nodeId, payload: { nodeId, error } };
}

/** Returns the words for how a run ended that did not complete, as the rest of a sentence about it. */
export function describeUnsuccessfulEnd(status: string): string {
  return status === "cancelled" ? "was cancelled" : status;
}

/** Drafts the failure of a node whose effect failed; empty for any other outcome. */
export function draftFailedOutcome(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  return outcome.kind === "failed" ? [draftNodeFailed(view, outcome.error)] : [];
}
