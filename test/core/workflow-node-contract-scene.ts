/** Owns: a node at work, and the run around it at one moment, for tests of what a node and the run's limits record. */
import type {
  WorkflowDraft,
  WorkflowPayloads,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import type { Invocation } from "../../src/agents/coordination/workflow/state/invocation.ts";
import type { RunEnding } from "../../src/agents/coordination/workflow/node-contract/run-end.ts";
import type {
  NodeView,
  WorkflowSettings,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type { NodeRun, WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { SETTINGS as HOST_SETTINGS } from "../support/workflow-settings.ts";
import { createGraph, createNodeRun, createRun, LATER, withNodes } from "./workflow-view-scene.ts";

/** A run starts few nodes, so that a test comes to the last of them. */
export const SETTINGS: WorkflowSettings = { ...HOST_SETTINGS, nodeExecutionsMax: 10 };

/** The graph, the run and the start options in which a node stands. */
export interface RunSurroundings {
  readonly graph?: NodeGraph;
  readonly run?: Partial<WorkflowRun>;
  readonly configurable?: Readonly<Record<string, unknown>>;
}

/** A run a minute after it began. */
export function createEnding(nodeRuns: readonly NodeRun[], around: RunSurroundings = {}): RunEnding {
  const { graph = createGraph(), run = {}, configurable } = around;
  return {
    run: createRun({ ...withNodes(...nodeRuns), ...run }, configurable && { configurable }),
    graph,
    settings: SETTINGS,
    now: LATER,
  };
}

/** The node `a` at work; the node `b` works beside it. */
export function createView(more: Partial<NodeRun> = {}, around: RunSurroundings = {}): NodeView {
  const nodeRun = createNodeRun("a", "running", more);
  const ending = createEnding([nodeRun, createNodeRun("b", "running")], around);
  const node = ending.graph.nodes.get("a");
  if (!node) throw new Error("the graph has no node a");
  return { ...ending, node, nodeRun };
}

/** An agent of a manifest that has begun. */
export const INVOCATION: Invocation = {
  started: { invocationId: "invocation-1", agentId: "acme.writer", source: "workflow-node" },
  turns: [],
  called: new Map(),
  returned: new Map(),
  chars: 0,
  tokens: 0,
};

type Outcome = WorkflowPayloads["agent.invocation.completed"]["outcome"];

/** The agent of the node `a` comes to its end with it. */
export const close = (outcome: Outcome): WorkflowDraft => ({
  type: "agent.invocation.completed",
  nodeId: "a",
  payload: { invocationId: "invocation-1", agentId: "acme.writer", outcome },
});

export const cancel = (nodeId: string, reason: string): WorkflowDraft => ({
  type: "node.cancelled",
  nodeId,
  payload: { nodeId, reason },
});
