/** Owns: `core.subWorkflow`: one child run, whose variables come back where they are mapped (RFC 0022 §B). */
import type { WorkflowDraft } from "../../contracts/workflow-events.ts";
import { of, type EffectOutcome, type NodeType, type NodeView } from "../node-type.ts";
import { childEffect, harvest, mappedInputs, mappingOf } from "./child-run.ts";

export const subWorkflow: NodeType = {
  check: ({ node: { id, config } }) =>
    typeof config["workflowId"] === "string" && config["workflowId"] !== ""
      ? []
      : [`node ${id} names no workflow in its configuration (workflowId)`],
  step: (view) => {
    const { config } = view.node.node;
    const { handoff, executions } = view.own;
    if (handoff?.childRunId !== undefined && config["waitForCompletion"] === false)
      return { kind: "complete", outputs: { childRunId: handoff.childRunId, childStatus: "running" } };
    const effect = childEffect(view, {
      cause: "core.subWorkflow",
      workflowId: String(config["workflowId"]),
      inputs: mappedInputs(view, mappingOf(config["inputMapping"])),
      ordinal: String(executions),
      ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    });
    return { kind: "act", effect };
  },
  settle: (view, _effect, outcome) => settle(view, outcome),
};

function settle(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  const { nodeId, handoff } = view.own;
  switch (outcome.kind) {
    case "child_created": {
      if (handoff?.childRunId !== undefined) return [];
      const childWorkflowId = String(view.node.node.config["workflowId"]);
      return [
        of(view, { type: "node.dispatched", payload: { childRunId: outcome.childRunId, childWorkflowId } }),
      ];
    }
    case "child_refused":
    case "failed":
      return [{ type: "node.failed", nodeId, payload: { nodeId, error: outcome.error } }];
    case "child_ended":
      return ended(view, outcome);
    default:
      return [];
  }
}

function ended(
  view: NodeView,
  { status, variables, error }: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  const { nodeId, handoff } = view.own;
  const { config } = view.node.node;
  const outputs = {
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    childStatus: status,
  };
  const completed = { type: "node.completed", nodeId, payload: { nodeId, outputs } } as const;
  if (status === "completed")
    return [...harvest(view, mappingOf(config["outputMapping"]), variables), completed];
  const absorbs = config["onChildFailure"] === "absorb" || config["onChildFailure"] === "continue";
  if (absorbs) return [completed];
  const why = error ? `: ${error.message}` : "";
  return [
    {
      type: "node.failed",
      nodeId,
      payload: { nodeId, error: { code: `child_${status}`, message: `the child run ${status}${why}` } },
    },
  ];
}
