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
import { isAgreedAnswer } from "../state/review.ts";
import type { InterruptAnswer, Handoff } from "../state/workflow-state.ts";
import { isRecord } from "../../std/is-record.ts";
import { readNodeGate, createChildOutputs, listGateProblems } from "./child-gate.ts";
import {
  createChildEffect,
  draftChildGaveUp,
  draftHarvestedChanges,
  mapChildInputs,
  readNameMapping,
} from "./child-run.ts";
import { describeUnsuccessfulEnd, draftNodeCompleted, draftNodeFailed } from "./ends.ts";
import { createHandoffBeginStep, settleHandoff, stepHandoff, type HandoffTerms } from "./handoff.ts";

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
  step: (view) => (readNodeGate(view.node) ? stepGated(view) : stepUngated(view)),
  settle: (view, _effect, outcome) => {
    if (!readNodeGate(view.node)) return settleUngated(view, outcome);
    const { handoff } = view.nodeRun;
    return handoff ? settleHandoff(view, handoff, createChildHandover(view), outcome) : [];
  },
};

function stepUngated(view: NodeView): NodeStep {
  const { config } = view.node.node;
  const { handoff, executions } = view.nodeRun;
  const isLeftAlone = config["waitForCompletion"] === false;
  if (handoff?.childRunId !== undefined && isLeftAlone)
    return { kind: "complete", outputs: { childRunId: handoff.childRunId, childStatus: "running" } };
  const effect = createChildEffect(view, {
    cause: "core.subWorkflow",
    workflowId: String(config["workflowId"]),
    inputs: mapChildInputs(view, readNameMapping(config["inputMapping"])),
    ordinal: String(executions),
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    ...(isLeftAlone && { isLeftAlone }),
  });
  return { kind: "act", effect };
}

function settleUngated(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
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
      return [draftNodeFailed(view, outcome.error)];
    case "failed":
      return handoff?.childRunId === undefined
        ? [draftNodeFailed(view, outcome.error)]
        : draftUngatedEnd(view, {
            kind: "child_ended",
            status: "failed",
            variables: {},
            error: outcome.error,
          });
    case "child_ended":
      return draftUngatedEnd(view, outcome);
    default:
      return [];
  }
}

/** Drafts the end of the node with that of its child, whose variables come back where they are mapped. */
function draftUngatedEnd(view: NodeView, outcome: EffectOutcome & { kind: "child_ended" }): WorkflowDraft[] {
  const { handoff } = view.nodeRun;
  const { status, variables, error } = outcome;
  const gaveUp = draftChildGaveUp(view, handoff?.childRunId, outcome);
  const outputs = {
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    childStatus: status,
    ...(gaveUp.length > 0 && { childGoalSatisfied: false }),
  };
  const completion = draftNodeCompleted(view, outputs);
  if (status === "completed")
    return [
      ...gaveUp,
      ...draftHarvestedChanges(view, readNameMapping(view.node.node.config["outputMapping"]), variables),
      completion,
    ];
  return isAbsorbingFailure(view) ? [completion] : [draftNodeFailed(view, createChildFailure(status, error))];
}

/** True when the node completes although its child failed. */
function isAbsorbingFailure({ node: { node } }: NodeView): boolean {
  const { onChildFailure } = node.config;
  return onChildFailure === "absorb" || onChildFailure === "continue";
}

function createChildFailure(status: string, error: NodeError | undefined): NodeError {
  const why = error ? `: ${error.message}` : "";
  return { code: `child_${status}`, message: `the child run ${describeUnsuccessfulEnd(status)}${why}` };
}

function createChildHandover({ node: { node }, nodeRun }: NodeView): HandoffTerms {
  const { config } = node;
  return {
    cause: "core.subWorkflow",
    inputMapping: readNameMapping(config["inputMapping"]),
    outputMapping: readNameMapping(config["outputMapping"]),
    ordinal: String(nodeRun.executions),
    causationId: nodeRun.startedEventId,
  };
}

function stepGated(view: NodeView): NodeStep {
  const { handoff } = view.nodeRun;
  const handover = createChildHandover(view);
  if (!handoff) return createHandoffBeginStep(view, String(view.node.node.config["workflowId"]), handover);
  return stepHandoff(view, handoff, handover) ?? createGatedEnd(view, handoff);
}

/** Returns the step that ends the node once its child and the gate are done. */
function createGatedEnd(view: NodeView, handoff: Handoff): NodeStep {
  const error = findUnmergedError(handoff);
  // A child that was never there is no failure of a child.
  const isAbsorbed = isAbsorbingFailure(view) && handoff.childRunId !== undefined;
  return error && !isAbsorbed
    ? { kind: "fail", error }
    : { kind: "complete", outputs: createChildOutputs(view, handoff) };
}

/** Returns why nothing of the child was merged where something should have been. */
function findUnmergedError({
  childRunId,
  childStatus,
  error,
  verdict,
  answer,
}: Handoff): NodeError | undefined {
  if (childStatus !== "completed")
    return childRunId === undefined && error ? error : createChildFailure(childStatus ?? "failed", error);
  if (answer) return findAnswerError(answer);
  return verdict === undefined || verdict.verdict === "pass"
    ? undefined
    : { code: "verification_failed", message: "the verifier did not accept what the child produced" };
}

/** Returns the error of people who did not agree or did not answer in time; `undefined` where they agreed. */
function findAnswerError(answer: InterruptAnswer): NodeError | undefined {
  if (isAgreedAnswer(answer)) return undefined;
  const isLate = isRecord(answer.resumeValue) && answer.resumeValue["action"] === "timeout";
  return isLate
    ? { code: "approval_timeout", message: "nobody let the child's outputs through in time" }
    : { code: "approval_rejected", message: "the child's outputs were not let through" };
}
