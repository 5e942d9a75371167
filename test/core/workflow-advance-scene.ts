/** Owns: node types that tests script, and a run that is being advanced, for tests of what a run does next. */
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { RunAdvance, ProgressContext } from "../../src/agents/coordination/workflow/advance-run.ts";
import type {
  NodeEffect,
  NodePlay,
  NodeStep,
  NodeType,
  NodeView,
  WorkflowSettings,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import type { SmallWorkflow } from "../support/workflow-definitions.ts";
import { SETTINGS } from "../support/workflow-settings.ts";
import { createGraph, NOW } from "./workflow-view-scene.ts";

/** A host with node types of the test beside the product's. */
export function createPlayed(nodeTypes: Readonly<Record<string, NodeType>>): WorkflowSettings {
  const play: NodePlay = {
    nodeTypes,
    check: () => [],
    isModelPlayed: () => false,
    isVerdictPlayed: () => false,
    playVerdict: () => undefined,
    playTurn: () => undefined,
    findDoubtedDecision: () => undefined,
  };
  return { ...SETTINGS, play };
}

/** A host on which nodes of the type `test.step` want that step, wherever they are. */
export function createStepping(step: NodeStep): WorkflowSettings {
  return createPlayed({ "test.step": { step: () => step } });
}

export function createContext(
  small: SmallWorkflow,
  settings: WorkflowSettings = SETTINGS,
  now: number = NOW,
): ProgressContext {
  return { graph: createGraph(small), settings, now: now as ProgressContext["now"] };
}

export function createAdvance(
  run: WorkflowRun,
  context: ProgressContext,
  more: Partial<RunAdvance> = {},
): RunAdvance {
  return { ...context, run, events: [], memory: [], ...more };
}

/** The effect of a node that acts. */
export function createEffect({ nodeRun: { nodeId } }: Pick<NodeView, "nodeRun">): NodeEffect {
  return { kind: "cause_side_effect", id: `${nodeId}:effect`, nodeId };
}

/** Wants its effect, whatever happened. */
export const actingType: NodeType = { step: (view) => ({ kind: "act", effect: createEffect(view) }) };

/** A change of the variable by the node `a`. */
export const assign = (name: string): WorkflowDraft => ({
  type: "variable.changed",
  nodeId: "a",
  payload: { name, next: 1, nodeId: "a" },
});
