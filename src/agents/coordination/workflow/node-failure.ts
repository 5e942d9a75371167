/** Owns: how a node fails: whether it is tried again, and what is recorded. */
import { REFUSED, type WorkflowDraft } from "../contracts/workflows/workflow-events.ts";
import type { WorkflowNode } from "../contracts/workflows/workflow-definition.ts";
import { NOT_PLAYED } from "./node-contract/conformance-parts.ts";
import type { NodeError, NodeView } from "./node-contract/node-type.ts";
import type { NodeGraph } from "./state/node-graph.ts";
import { draftInvocationClosing } from "./state/invocation.ts";
import { draftExecutionLimit } from "./run-limits.ts";

/** Creates the error of a node whose code threw. It is final, so that the run is not tried again for ever. */
export function createBrokenNodeError(error: unknown): NodeError {
  const name = error instanceof Error ? error.name : typeof error;
  return {
    code: "node_broken",
    message: `the node could not cope with its configuration or inputs (${name})`,
  };
}

/** Drafts the start of an attempt of a node; the first attempt is 0. */
export function draftNodeStart(
  { id: nodeId, typeId }: Pick<WorkflowNode, "id" | "typeId">,
  attempt: number,
): WorkflowDraft {
  return { type: "node.started", nodeId, payload: { nodeId, typeId, attempt } };
}

/**
 * Drafts another attempt where a node may be tried again, its failure where it may not, and the end of the run where
 * that has executed as many nodes as it may. In a paused run the attempt begins when that is resumed.
 */
export function draftRetryOrFailure(
  { graph }: { readonly graph: NodeGraph },
  view: NodeView,
  error: { readonly code: string; readonly message: string },
): WorkflowDraft[] {
  const { nodeRun, node } = view;
  const { nodeId, attempt } = nodeRun;
  const isFinal = NOT_RETRIED.has(error.code) || attempt >= graph.maxRetries;
  const closed = draftInvocationClosing(nodeId, nodeRun.invocation, error.code);
  if (!isFinal) {
    const capped = draftExecutionLimit(view, nodeId);
    if (capped) return capped;
    const retry: WorkflowDraft = {
      type: "node.retried",
      nodeId,
      payload: { nodeId, attempt: attempt + 1, delayMs: 0, lastError: error },
    };
    if (view.run.phase.kind === "paused") return [...closed, retry];
    return [...closed, retry, draftNodeStart(node.node, attempt + 1)];
  }
  return [...closed, { type: "node.failed", nodeId, payload: { nodeId, error, attempts: attempt + 1 } }];
}

/** In a replay, an effect whose outcome the source did not record fails with this code and is not performed. */
export const REPLAY_SOURCE_MISSING = "replay_source_missing";

/** Errors that another attempt would not change: people or the protocol refused, or the node itself is at fault. */
export const NOT_RETRIED: ReadonlySet<string> = new Set([
  "approval_rejected",
  "approval_timeout",
  "clarification_timeout",
  "interrupt_timeout",
  "decision_rejected",
  "verification_failed",
  "low_confidence_rejected",
  "capability_not_provided",
  NOT_PLAYED,
  "unknown_node_type",
  "no_pending_decision",
  "fan_out_unsupported",
  "not_configured",
  "memory_action_unknown",
  REFUSED,
  "value_not_recordable",
  "node_broken",
  REPLAY_SOURCE_MISSING,
  "handoff_task_schema_violation",
  "forbidden",
  "agent_limit_exceeded",
]);
