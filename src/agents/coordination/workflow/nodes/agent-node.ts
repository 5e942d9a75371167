/** Owns: which agent executes a node, on what task, and the effects of its invocation. */
import type { AgentEffect } from "../node-contract/agent-effects.ts";
import type { Invocation } from "../state/invocation.ts";
import type { NodeEffect, NodeView } from "../node-contract/node-type.ts";
import { cleanNestedTexts, collectSensitiveTexts, maskTexts } from "../state/sensitive-texts.ts";
import { readNodeInputs, readVariables, type Values } from "../state/values.ts";

export interface NodeAgent {
  readonly agentId: string;
  /** sha256 of it as it was installed when the run began. */
  readonly manifest: string;
}

/**
 * Returns the agent that a node names, with the hash of its manifest; `undefined` where it names none that the run was
 * started with.
 */
export function findNodeAgent({ run, node: { node } }: NodeView): NodeAgent | undefined {
  const named = node.agent?.agentId ?? node.config["agentId"];
  const { agents = {} } = run.started;
  if (typeof named !== "string" || !Object.hasOwn(agents, named)) return undefined;
  const manifest = agents[named];
  return manifest === undefined ? undefined : { agentId: named, manifest };
}

/**
 * Returns the task of a node's agent: the inputs of its ports and edges; without any the configured task or prompt,
 * else the variables that may be shown.
 */
export function readNodeTask({ run, graph, node }: NodeView): unknown {
  const { inputs: ports, config } = node.node;
  const inputs = readNodeInputs(run, graph, node);
  if (Object.keys(ports).length > 0 || Object.keys(inputs).length > 0) return inputs;
  return config["task"] ?? config["prompt"] ?? selectShownVariables(run, graph);
}

/**
 * Returns the variables that are not sensitive, with copies of sensitive texts in them masked: those are told only
 * where a port names them.
 */
function selectShownVariables(run: NodeView["run"], graph: NodeView["graph"]): Values {
  const hidden = new Set(graph.variables.flatMap(({ name, sensitive }) => (sensitive ? [name] : [])));
  const shown = Object.entries(readVariables(run, graph)).filter(([name]) => !hidden.has(name));
  const texts = collectSensitiveTexts([{ run, graph }]);
  return cleanNestedTexts(Object.fromEntries(shown), (text) => maskTexts(text, texts)) as Values;
}

/** Returns the id of the invocation: it is unique to this execution of the node. */
function createInvocationId({ nodeRun: { nodeId, executions } }: NodeView): string {
  return `${nodeId}:${executions}`;
}

/** Creates the effect that prepares the agent of a node for an invocation, with its task. */
export function createPrepareEffect(view: NodeView): NodeEffect {
  const { nodeId } = view.nodeRun;
  const agent = findNodeAgent(view);
  const { node } = view.node;
  const ref = node.agent?.["memoryRef"];
  return {
    kind: "prepare_agent",
    id: `${createInvocationId(view)}:prepare`,
    nodeId,
    agentId: agent?.agentId ?? nodeId,
    manifest: agent?.manifest ?? "",
    invocationId: createInvocationId(view),
    source: view.run.started.agent?.source ?? "workflow-node",
    task: readNodeTask(view),
    ...(typeof ref === "string" && ref !== "" && { memoryRef: ref }),
  };
}

/** The fields of an effect of an agent, without those that all of them have. */
type AgentEffectFields<E> = E extends AgentEffect ? Omit<E, "nodeId" | "agentId" | "manifest"> : never;

/** Creates an effect of an agent's invocation from its own fields; the `id` given is one within the invocation. */
export function createAgentEffect(
  view: NodeView,
  { started }: Invocation,
  rest: AgentEffectFields<AgentEffect>,
): NodeEffect {
  const { agentId, manifest = "" } = started;
  return {
    ...rest,
    id: `${createInvocationId(view)}:${rest.id}`,
    nodeId: view.nodeRun.nodeId,
    agentId,
    manifest,
  };
}

/** Returns the number of the invocation's next turn, and the id within the invocation of its effect. */
export function numberNextTurn({ turns }: Invocation): { readonly id: string; readonly turn: number } {
  const turn = turns.length + 1;
  return { id: `turn:${turn}`, turn };
}
