/** Owns: nodes that test what a replay does again: one that waits, which is pure, and one that has an effect, which is not. */
import type { NodeType } from "../node-contract/node-type.ts";
import { delay, echo } from "./basic-nodes.ts";
import { draftCompleted, draftFailureOf } from "./ends.ts";

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
      ? [draftCompleted(view, { effectId: outcome.effectId })]
      : draftFailureOf(view, outcome),
};
