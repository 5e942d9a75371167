/** Owns: the nodes of the suite that test what a replay does again, and the one that needs what no host has. */
import type { NodeType } from "../../../agents/coordination/workflow/node-contract/node-type.ts";
import { delay, echo } from "../../../agents/coordination/workflow/nodes/basic-nodes.ts";
import { draftNodeCompleted, draftFailedOutcome } from "../../../agents/coordination/workflow/nodes/ends.ts";

/** A delay that passes its inputs on. */
export const hold: NodeType = {
  isPausable: true,
  step: (view) => {
    const step = delay.step(view);
    return step.kind === "complete" ? echo(view) : step;
  },
};

export const sideEffect: NodeType = {
  step: ({ nodeRun: { nodeId, executions } }) => ({
    kind: "act",
    effect: { kind: "cause_side_effect", id: `${nodeId}:${executions}:cause`, nodeId },
  }),
  settle: (view, _effect, outcome) =>
    outcome.kind === "side_effect_caused"
      ? [draftNodeCompleted(view, { effectId: outcome.effectId })]
      : draftFailedOutcome(view, outcome),
};

/** Stands for a node that needs what no host has. */
export const requiresMissing: NodeType = {
  step: () => ({
    kind: "fail",
    error: {
      code: "capability_not_provided",
      message: "this host does not provide the capability conformance.never-provided",
    },
  }),
};
