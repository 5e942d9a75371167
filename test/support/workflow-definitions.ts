/** Owns: small workflow definitions for tests. */
import {
  workflowDefinitionSchema,
  type WorkflowDefinition,
} from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/** `id` or `id:typeId`; without a type, `core.noop`. */
export function createNode(
  id: string,
  typeId = "core.noop",
  config: JsonFields = {},
  more: JsonFields = {},
): JsonFields {
  return { id, typeId, config, ...more };
}

/** `a>b`, with what else the edge says. */
export function createEdge(arrow: string, more: JsonFields = {}): JsonFields {
  const [sourceNodeId, targetNodeId] = arrow.split(">");
  return { id: arrow, sourceNodeId, targetNodeId, ...more };
}

/** Edges from each to the next: `a>b>c`. */
export function chain(arrows: string): JsonFields[] {
  const ids = arrows.split(">");
  return ids.slice(1).map((id, index) => createEdge(`${ids[index] ?? ""}>${id}`));
}

/** The nodes, edges, variables and settings of a workflow that fits into a few lines. */
export interface SmallWorkflow {
  readonly nodes: readonly JsonFields[];
  readonly edges?: readonly JsonFields[];
  /** Defaults by name; `undefined` for a variable that has none. */
  readonly variables?: JsonFields;
  readonly settings?: JsonFields;
}

export function createWorkflow(
  id: string,
  { nodes, edges = [], variables = {}, settings = {} }: SmallWorkflow,
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
    readonly dispatch?: JsonFields;
    readonly supervisor?: JsonFields;
    readonly variables?: JsonFields;
    readonly settings?: JsonFields;
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

export function sendNextWorker(...nextWorkerIds: readonly string[]): JsonFields {
  return { kind: "next-worker", nextWorkerIds };
}

export const TERMINATE = { kind: "terminate", reason: "done" } as const;

/** A worker whose variables are there to be harvested. */
export function createWorker(
  id: string,
  variables: JsonFields = { result: `${id} did it` },
): WorkflowDefinition {
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
