/** Owns: the turns of a supervisor whose decisions a workflow of the suite scripts. */
import {
  decisionSchema,
  type OrchestratorDecision,
} from "../../../agents/coordination/contracts/workflows/workflow-events.ts";
import { hasSupervisorModel } from "../../../agents/coordination/workflow/node-contract/conformance-parts.ts";
import type { NodePlay, NodeView } from "../../../agents/coordination/workflow/node-contract/node-type.ts";
import { suspendForLowConfidence, readEscalationThreshold } from "./mock-agent.ts";

/** Returns the turn that is scripted; `undefined` where the supervisor's model decides. */
export const playTurn: NodePlay["playTurn"] = (view) => {
  const pending = findPendingDecision(view);
  const { mockConfidence } = view.node.node.config;
  if (pending && view.run.orchestrator.decided === 0) {
    const isLow = typeof mockConfidence === "number" && mockConfidence < readEscalationThreshold(view);
    return isLow
      ? { kind: "doubted", step: suspendForLowConfidence(view, [], mockConfidence, pending) }
      : { kind: "decided", decision: pending };
  }
  if (hasSupervisorModel(view.node.node)) return undefined;
  return { kind: "decided", decision: readScriptedDecision(view, pending !== undefined) };
};

/** Returns the scripted decision for this turn. An unscripted supervisor sends one worker and ends. */
function readScriptedDecision(
  { node: { node }, run: { orchestrator } }: NodeView,
  hasPending: boolean,
): OrchestratorDecision {
  const plan = node.config["mockDispatchPlan"] ?? node.config["mockDecisions"];
  const turns: readonly unknown[] = Array.isArray(plan) ? plan : hasPending ? [] : [DEFAULT_WORK];
  const planned = parseDecision(turns[orchestrator.decided]);
  return planned ?? { kind: "terminate", reason: "plan-exhausted" };
}

const DEFAULT_WORK = { kind: "next-worker", nextWorkerIds: ["conformance-noop"] } as const;

/**
 * Returns the decision that a node's script has for the supervisor's first turn, which waits for people where its
 * confidence is low; `undefined` where it has none.
 */
export function findPendingDecision({ node: { node } }: NodeView): OrchestratorDecision | undefined {
  return parseDecision(node.config["mockPendingDecision"]);
}

function parseDecision(value: unknown): OrchestratorDecision | undefined {
  const parsed = decisionSchema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}
