/** Owns: small workflow definitions for tests. */
import {
  workflowDefinitionSchema,
  type WorkflowDefinition,
} from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

type Given = Readonly<Record<string, unknown>>;

/** `id` or `id:typeId`; without a type, `core.noop`. */
export function createNode(id: string, typeId = "core.noop", config: Given = {}, more: Given = {}): Given {
  return { id, typeId, config, ...more };
}

/** `a>b`, with what else the edge says. */
export function createEdge(arrow: string, more: Given = {}): Given {
  const [sourceNodeId, targetNodeId] = arrow.split(">");
  return { id: arrow, sourceNodeId, targetNodeId, ...more };
}

/** Edges from each to the next: `a>b>c`. */
export function chain(arrows: string): Given[] {
  const ids = arrows.split(">");
  return ids.slice(1).map((id, index) => createEdge(`${ids[index] ?? ""}>${id}`));
}

export interface Small {
  readonly nodes: readonly Given[];
  readonly edges?: readonly Given[];
  /** Defaults by name; `undefined` for a variable that has none. */
  readonly variables?: Given;
  readonly settings?: Given;
}

export function createWorkflow(
  id: string,
  { nodes, edges = [], variables = {}, settings = {} }: Small,
): WorkflowDefinition {
  return workflowDefinitionSchema.parse({
    id,
    name: id,
    version: "1",
    nodes,
    edges,
    settings,
    variables: Object.entries(variables).map(([name, defaultValue]) => ({
      name,
      type: "string",
      ...(defaultValue !== undefined && { defaultValue }),
    })),
  });
}

/** A supervisor that decides as scripted, and a dispatch that goes back to it. */
export function createSupervised(
  id: string,
  plan: readonly unknown[],
  {
    dispatch = {},
    supervisor = {},
    variables = {},
    settings = {},
  }: {
    readonly dispatch?: Given;
    readonly supervisor?: Given;
    readonly variables?: Given;
    readonly settings?: Given;
  } = {},
): WorkflowDefinition {
  return createWorkflow(id, {
    nodes: [
      createNode("supervisor", "core.orchestrator.supervisor", { mockDispatchPlan: plan, ...supervisor }),
      createNode("dispatch", "core.dispatch", dispatch),
    ],
    edges: [createEdge("supervisor>dispatch"), createEdge("dispatch>supervisor")],
    variables,
    settings,
  });
}

export function sendNextWorker(...nextWorkerIds: readonly string[]): Given {
  return { kind: "next-worker", nextWorkerIds };
}

export const TERMINATE = { kind: "terminate", reason: "done" } as const;

/** A worker whose variables are there to be harvested. */
export function createWorker(id: string, variables: Given = { result: `${id} did it` }): WorkflowDefinition {
  return createWorkflow(id, { nodes: [createNode("work")], variables });
}

/** Creates what several hosts run together: waits one after the other, a run within a run, and a question. */
export function createFleetWorkflows(names: readonly string[], delayMs: number): WorkflowDefinition[] {
  return [
    createWorkflow("steps", {
      nodes: names.map((name) => createNode(name, "core.delay", { delayMs })),
      edges: chain(names.join(">")),
    }),
    createWorkflow("nested", {
      nodes: [createNode("sub", "core.subWorkflow", { workflowId: "steps" }), createNode("after")],
      edges: [createEdge("sub>after")],
    }),
    createWorkflow("gated", {
      nodes: [createNode("gate", "core.approvalGate"), createNode("after")],
      edges: [createEdge("gate>after")],
    }),
  ];
}
