/**
 * Owns: `core.subWorkflow`: one child run, whose variables come back where they are mapped (RFC 0022 §B). Where a gate stands
 * behind it (RFC 0063, RFC 0090), the child goes through the handoff state machine, as the worker of a dispatch does.
 */
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  withNodeId,
  type EffectOutcome,
  type NodeError,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { isAgreed } from "../state/review.ts";
import type { Answer, Handoff } from "../state/workflow-state.ts";
import { isRecord } from "../../std/is-record.ts";
import { gateOf, createChildOutputs, listGateProblems } from "./child-gate.ts";
import { createChildEffect, draftGivenUp, harvest, mapInputs, mappingOf } from "./child-run.ts";
import { describeEnd, draftCompleted, draftFailed } from "./ends.ts";
import { beginHandoff, settleHandoff, stepHandoff, type Handover } from "./handoff.ts";

export const subWorkflow: NodeType = {
  check: (node, graph, settings) => {
    const { id, config } = node.node;
    const isNamed = typeof config["workflowId"] === "string" && config["workflowId"] !== "";
    const isGated = config["verifier"] !== undefined || config["outputAttestation"] !== undefined;
    return [
      ...(isNamed ? [] : [`node ${id} names no workflow in its configuration (workflowId)`]),
      ...(isGated && config["waitForCompletion"] === false
        ? [`node ${id} does not wait for its child: nothing of it can be verified`]
        : []),
      ...listGateProblems(node, graph, settings),
    ];
  },
  step: (view) => (gateOf(view.node) ? stepGated(view) : stepAlone(view)),
  settle: (view, _effect, outcome) => {
    if (!gateOf(view.node)) return settleAlone(view, outcome);
    const { handoff } = view.nodeRun;
    return handoff ? settleHandoff(view, handoff, handoverOf(view), outcome) : [];
  },
};

function stepAlone(view: NodeView): NodeStep {
  const { config } = view.node.node;
  const { handoff, executions } = view.nodeRun;
  const isLeftAlone = config["waitForCompletion"] === false;
  if (handoff?.childRunId !== undefined && isLeftAlone)
    return { kind: "complete", outputs: { childRunId: handoff.childRunId, childStatus: "running" } };
  const effect = createChildEffect(view, {
    cause: "core.subWorkflow",
    workflowId: String(config["workflowId"]),
    inputs: mapInputs(view, mappingOf(config["inputMapping"])),
    ordinal: String(executions),
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    ...(isLeftAlone && { isLeftAlone }),
  });
  return { kind: "act", effect };
}

function settleAlone(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  const { handoff } = view.nodeRun;
  switch (outcome.kind) {
    case "child_created": {
      if (handoff?.childRunId !== undefined) return [];
      const childWorkflowId = String(view.node.node.config["workflowId"]);
      return [
        withNodeId(view, {
          type: "node.dispatched",
          payload: { childRunId: outcome.childRunId, childWorkflowId },
        }),
      ];
    }
    case "child_refused":
      return [draftFailed(view, outcome.error)];
    case "failed":
      return handoff?.childRunId === undefined
        ? [draftFailed(view, outcome.error)]
        : endAlone(view, { kind: "child_ended", status: "failed", variables: {}, error: outcome.error });
    case "child_ended":
      return endAlone(view, outcome);
    default:
      return [];
  }
}

function endAlone(view: NodeView, outcome: EffectOutcome & { kind: "child_ended" }): WorkflowDraft[] {
  const { handoff } = view.nodeRun;
  const { status, variables, error } = outcome;
  const gaveUp = draftGivenUp(view, handoff?.childRunId, outcome);
  const outputs = {
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    childStatus: status,
    ...(gaveUp.length > 0 && { childGoalSatisfied: false }),
  };
  const completion = draftCompleted(view, outputs);
  if (status === "completed")
    return [
      ...gaveUp,
      ...harvest(view, mappingOf(view.node.node.config["outputMapping"]), variables),
      completion,
    ];
  return isAbsorbing(view) ? [completion] : [draftFailed(view, failureOf(status, error))];
}

/** True when the node completes although its child failed. */
function isAbsorbing({ node: { node } }: NodeView): boolean {
  const { onChildFailure } = node.config;
  return onChildFailure === "absorb" || onChildFailure === "continue";
}

function failureOf(status: string, error: NodeError | undefined): NodeError {
  const why = error ? `: ${error.message}` : "";
  return { code: `child_${status}`, message: `the child run ${describeEnd(status)}${why}` };
}

function handoverOf({ node: { node }, nodeRun }: NodeView): Handover {
  const { config } = node;
  return {
    cause: "core.subWorkflow",
    inputMapping: mappingOf(config["inputMapping"]),
    outputMapping: mappingOf(config["outputMapping"]),
    ordinal: String(nodeRun.executions),
    causationId: nodeRun.startedEventId,
  };
}

function stepGated(view: NodeView): NodeStep {
  const { handoff } = view.nodeRun;
  const handover = handoverOf(view);
  if (!handoff) return beginHandoff(view, String(view.node.node.config["workflowId"]), handover);
  return stepHandoff(view, handoff, handover) ?? endGated(view, handoff);
}

function endGated(view: NodeView, handoff: Handoff): NodeStep {
  const error = problemOf(handoff);
  // A child that was never there is no failure of a child.
  const isAbsorbed = isAbsorbing(view) && handoff.childRunId !== undefined;
  return error && !isAbsorbed
    ? { kind: "fail", error }
    : { kind: "complete", outputs: createChildOutputs(view, handoff) };
}

/** Returns why nothing of the child was merged where something should have been. */
function problemOf({ childRunId, childStatus, error, verdict, answer }: Handoff): NodeError | undefined {
  if (childStatus !== "completed")
    return childRunId === undefined && error ? error : failureOf(childStatus ?? "failed", error);
  if (answer) return refusalOf(answer);
  return verdict === undefined || verdict.verdict === "pass"
    ? undefined
    : { code: "verification_failed", message: "the verifier did not accept what the child produced" };
}

function refusalOf(answer: Answer): NodeError | undefined {
  if (isAgreed(answer)) return undefined;
  const isLate = isRecord(answer.resumeValue) && answer.resumeValue["action"] === "timeout";
  return isLate
    ? { code: "approval_timeout", message: "nobody let the child's outputs through in time" }
    : { code: "approval_rejected", message: "the child's outputs were not let through" };
}
