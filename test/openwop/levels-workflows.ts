/** Owns: the workflows of the tests of levels 1 to 3. Every one is this project's own. */
import {
  workflowDefinitionSchema,
  type WorkflowDefinition,
} from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";

type Config = Readonly<Record<string, unknown>>;

interface NodeDependencies {
  readonly config?: Config;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly agent?: Readonly<Record<string, unknown>>;
}

export interface NodeDraft extends NodeDependencies {
  readonly id: string;
  readonly typeId: string;
}

export function createNode(id: string, typeId: string, dependencies: NodeDependencies = {}): NodeDraft {
  return { id, typeId, ...dependencies };
}

interface WorkflowContent {
  readonly nodes: readonly NodeDraft[];
  /** Absent: each node leads to the next. */
  readonly edges?: readonly (readonly [from: string, to: string, more?: Config])[];
  /** Their defaults; `undefined` for one that has none. */
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly settings?: Config;
}

export function createWorkflow(
  id: string,
  { nodes, edges, variables = {}, settings }: WorkflowContent,
): WorkflowDefinition {
  const inLine = nodes.slice(1).map(({ id: to }, index) => [nodes[index]?.id ?? "", to] as const);
  return workflowDefinitionSchema.parse({
    id,
    name: id,
    version: "1",
    nodes,
    triggers: [],
    metadata: {},
    edges: (edges ?? inLine).map(([sourceNodeId, targetNodeId, more = {}], index) => ({
      id: `e${index}`,
      sourceNodeId,
      targetNodeId,
      ...more,
    })),
    variables: Object.entries(variables).map(([name, defaultValue]) => ({
      name,
      type: typeOf(defaultValue),
      ...(defaultValue !== undefined && { defaultValue }),
    })),
    settings: settings ?? {},
  });
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return ["string", "number", "boolean", "object"].find((type) => typeof value === type) ?? "string";
}

export const work = (nextWorkerIds: readonly string[], confidence?: number) =>
  ({ kind: "next-worker", nextWorkerIds, ...(confidence !== undefined && { confidence }) }) as const;
export const end = (confidence?: number) =>
  ({ kind: "terminate", reason: "done", ...(confidence !== undefined && { confidence }) }) as const;

interface Loop extends Omit<WorkflowContent, "nodes" | "edges"> {
  readonly plan: readonly unknown[];
  readonly dispatch?: Config;
  readonly supervisor?: Config;
  /** Run before the loop begins. */
  readonly first?: NodeDraft;
}

/** A supervisor that decides by a script, and a dispatch that leads back to it. */
export function createLoop(
  id: string,
  { plan, dispatch = {}, supervisor = {}, first, ...rest }: Loop,
): WorkflowDefinition {
  const config = { mockDispatchPlan: plan, ...supervisor };
  return createWorkflow(id, {
    nodes: [
      ...(first ? [first] : []),
      createNode("boss", "core.orchestrator.supervisor", { config }),
      createNode("handing", "core.dispatch", { config: dispatch }),
    ],
    edges: [...(first ? [[first.id, "boss"] as const] : []), ["boss", "handing"], ["handing", "boss"]],
    ...rest,
  });
}

export const createNoop = (id: string): NodeDraft => createNode(id, "core.noop");
export const pause = (id: string, delayMs: number): NodeDraft =>
  createNode(id, "core.delay", { config: { delayMs } });

/** Waits as long as the run's input `delayMs` says. */
export const createDelayed = (id: string, otherwiseMs: number): WorkflowDefinition =>
  createWorkflow(id, {
    nodes: [
      createNode("wait", "core.delay", {
        inputs: { delayMs: { type: "variable", variableName: "delayMs" } },
      }),
    ],
    variables: { delayMs: otherwiseMs },
  });

/** The workers of loops, by what becomes of them. */
export const WORKERS: readonly WorkflowDefinition[] = [
  createWorkflow("worker-good", { nodes: [createNoop("only")], variables: { found: "gold" } }),
  createWorkflow("worker-other", { nodes: [createNoop("only")], variables: { found: "silver" } }),
  createWorkflow("worker-bad", {
    nodes: [createNode("only", "core.fail", { config: { code: "mine_flooded", message: "there is water" } })],
    variables: { found: "mud" },
  }),
  createDelayed("worker-slow", 60_000),
  createWorkflow("worker-gated", {
    nodes: [createNode("gate", "core.approvalGate", { config: { title: "Dig?" } })],
    variables: { found: "buried" },
  }),
];
