/** Owns: which agent executes a node, on what task, and the effects of its invocation. */
import type { AgentEffect } from "../node-contract/agent-effects.ts";
import type { Invocation } from "../state/invocation.ts";
import type { NodeEffect, NodeView } from "../node-contract/node-type.ts";
import { inputsOf, variablesOf, type Values } from "../state/values.ts";

export interface NodeAgent {
  readonly agentId: string;
  /** sha256 of it as it was installed when the run began. */
  readonly manifest: string;
}

/** The agent of a manifest that the node names; nothing where it names none. */
export function agentOf({ run, node: { node } }: NodeView): NodeAgent | undefined {
  const named = node.agent?.agentId ?? node.config["agentId"];
  const { agents = {} } = run.started;
  if (typeof named !== "string" || !Object.hasOwn(agents, named)) return undefined;
  const manifest = agents[named];
  return manifest === undefined ? undefined : { agentId: named, manifest };
}

/** The ports of the node, or those that edges brought; without any its configured task, else what the run has and may show. */
export function taskOf({ run, graph, node }: NodeView): unknown {
  const { inputs: ports, config } = node.node;
  const inputs = inputsOf(run, graph, node);
  if (Object.keys(ports).length > 0 || Object.keys(inputs).length > 0) return inputs;
  return config["task"] ?? config["prompt"] ?? shownOf(run, graph);
}

/** A model, and whoever its tools tell, has a sensitive variable where a port names it. */
function shownOf(run: NodeView["run"], graph: NodeView["graph"]): Values {
  const hidden = new Set(graph.variables.flatMap(({ name, sensitive }) => (sensitive ? [name] : [])));
  return Object.fromEntries(Object.entries(variablesOf(run, graph)).filter(([name]) => !hidden.has(name)));
}

/** Returns an id within this execution of the node; the next execution is another invocation. */
function idOf({ nodeRun: { nodeId, executions } }: NodeView): string {
  return `${nodeId}:${executions}`;
}

export function prepareEffect(view: NodeView): NodeEffect {
  const { nodeId } = view.nodeRun;
  const agent = agentOf(view);
  const { node } = view.node;
  const ref = node.agent?.["memoryRef"];
  return {
    kind: "prepare_agent",
    id: `${idOf(view)}:prepare`,
    nodeId,
    agentId: agent?.agentId ?? nodeId,
    manifest: agent?.manifest ?? "",
    invocationId: idOf(view),
    source: view.run.started.agent?.source ?? "workflow-node",
    task: taskOf(view),
    ...(typeof ref === "string" && ref !== "" && { memoryRef: ref }),
  };
}

type Rest<E> = E extends AgentEffect ? Omit<E, "nodeId" | "agentId" | "manifest"> : never;

/** `id`: within the invocation. */
export function createAgentEffect(
  view: NodeView,
  { started }: Invocation,
  rest: Rest<AgentEffect>,
): NodeEffect {
  const { agentId, manifest = "" } = started;
  return { ...rest, id: `${idOf(view)}:${rest.id}`, nodeId: view.nodeRun.nodeId, agentId, manifest };
}

export function asksOf({ turns }: Invocation): { readonly id: string; readonly turn: number } {
  const turn = turns.length + 1;
  return { id: `turn:${turn}`, turn };
}
