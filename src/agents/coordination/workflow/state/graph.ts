/**
 * Owns: turning a workflow definition into the graph that runs follow, and what makes a definition one that cannot be run.
 * A cycle is a loop: the edge that closes it fires its target again.
 */
import type { WorkflowDefinition, WorkflowEdge } from "../../contracts/workflows/workflow-definition.ts";
import { WORKFLOW_BOUNDS } from "../../contracts/workflows/workflow-bounds.ts";
import { findConditionProblem } from "./values.ts";
import type { NodeGraph, GraphNode, GraphEdge } from "./node-graph.ts";

/** The graph of a workflow, or the problems of its definition. */
export type CompiledWorkflow =
  | { readonly ok: true; readonly graph: NodeGraph }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Compiles a workflow definition into the graph that runs follow, or lists the problems for which it cannot be run. */
export function compileWorkflow(authored: WorkflowDefinition, sha256: string): CompiledWorkflow {
  const problems = listDefinitionProblems(authored);
  if (problems.length > 0) return { ok: false, problems };
  const definition = { ...authored, edges: [...authored.edges, ...createSupervisorLoop(authored)] };
  const closing = findLoopEdges(definition);
  const edges = definition.edges.map((edge): GraphEdge => ({
    ...edge,
    rule: edge.triggerRule ?? "all_success",
    closesLoop: closing.has(edge.id),
  }));
  const incoming = Map.groupBy(edges, ({ targetNodeId }) => targetNodeId);
  const outgoing = Map.groupBy(edges, ({ sourceNodeId }) => sourceNodeId);
  const looped = findLoopedNodes(outgoing);
  const nodes = new Map(
    definition.nodes.map((node): [string, GraphNode] => [
      node.id,
      {
        node,
        incoming: incoming.get(node.id) ?? [],
        outgoing: outgoing.get(node.id) ?? [],
        isLooped: looped.has(node.id),
      },
    ]),
  );
  const { settings } = definition;
  return {
    ok: true,
    graph: {
      workflowId: definition.id,
      definition: sha256,
      nodes,
      variables: definition.variables,
      ...(settings.timeout !== undefined && { timeoutMs: settings.timeout }),
      maxRetries: settings.maxRetries ?? 0,
      loopbackMax: settings.maxLoopbackIterations ?? WORKFLOW_BOUNDS.loopbackIterations,
    },
  };
}

export const SUPERVISOR = "core.orchestrator.supervisor";
export const DISPATCH = "core.dispatch";
/** A node that does nothing but let its agent work. */
export const AGENT = "openclaw.agent";

/**
 * Returns the edges that make the first supervisor and its dispatch a loop also where no edge says so (RFC 0037). Its
 * dispatch is the first to which an edge of it leads, else the first to which it leads over other nodes, else the
 * first to which no supervisor leads.
 */
function createSupervisorLoop({ nodes, edges }: WorkflowDefinition): WorkflowEdge[] {
  const incoming = Map.groupBy(edges, ({ targetNodeId }) => targetNodeId);
  const drawn = new Map(nodes.map((node) => [node.id, { node, incoming: incoming.get(node.id) ?? [] }]));
  const hasEdge = (sourceNodeId: string, targetNodeId: string): boolean =>
    incoming.get(targetNodeId)?.some((edge) => edge.sourceNodeId === sourceNodeId) ?? false;
  const supervisor = nodes.find(({ typeId }) => typeId === SUPERVISOR);
  if (!supervisor) return [];
  const dispatches = nodes
    .filter(({ typeId }) => typeId === DISPATCH)
    .map(({ id }) => ({ id, supervisors: findSupervisorsOfNode(drawn, id) }));
  const dispatch =
    dispatches.find(({ id }) => hasEdge(supervisor.id, id)) ??
    dispatches.find(({ supervisors }) => supervisors.has(supervisor.id)) ??
    dispatches.find(({ supervisors }) => supervisors.size === 0);
  if (!dispatch) return [];
  const connect = (sourceNodeId: string, targetNodeId: string): WorkflowEdge[] =>
    hasEdge(sourceNodeId, targetNodeId)
      ? []
      : [{ id: `@${sourceNodeId}-${targetNodeId}`, sourceNodeId, targetNodeId }];
  return [...connect(supervisor.id, dispatch.id), ...connect(dispatch.id, supervisor.id)];
}

/** A node with the edges that lead to it, whether its graph is whole or not. */
type EnteredNode = Pick<GraphNode, "node"> & { readonly incoming: readonly WorkflowEdge[] };

/** Returns the ids of the supervisors that lead to a node without another supervisor between. */
export function findSupervisorsOfNode(
  nodes: ReadonlyMap<string, EnteredNode>,
  nodeId: string,
): ReadonlySet<string> {
  const supervisors = new Set<string>();
  const seen = new Set([nodeId]);
  for (const id of seen)
    for (const { sourceNodeId } of nodes.get(id)?.incoming ?? [])
      if (nodes.get(sourceNodeId)?.node.typeId === SUPERVISOR) supervisors.add(sourceNodeId);
      else seen.add(sourceNodeId);
  return supervisors;
}

function listDefinitionProblems({ nodes, edges, variables }: WorkflowDefinition): string[] {
  const ids = new Set(nodes.map(({ id }) => id));
  return [
    ...listRepeatedIds(nodes.map(({ id }) => id)).map((id) => `node ${id} is there more than once`),
    ...listRepeatedIds(edges.map(({ id }) => id)).map((id) => `edge ${id} is there more than once`),
    ...listRepeatedIds(variables.map(({ name }) => name)).map(
      (name) => `variable ${name} is there more than once`,
    ),
    ...edges.flatMap(({ id, sourceNodeId, targetNodeId }) =>
      [sourceNodeId, targetNodeId]
        .filter((nodeId) => !ids.has(nodeId))
        .map((nodeId) => `edge ${id} names the node ${nodeId}, which is not there`),
    ),
    ...edges.flatMap(({ id, condition }) => {
      const problem = condition && findConditionProblem(condition);
      return problem ? [`the condition of edge ${id}: ${problem}`] : [];
    }),
    ...nodes.flatMap(({ id, inputs }) =>
      Object.entries(inputs).flatMap(([port, value]) =>
        value.type === "connection" && !ids.has(value.nodeId)
          ? [`input ${port} of node ${id} names the node ${value.nodeId}, which is not there`]
          : [],
      ),
    ),
  ];
}

function listRepeatedIds(ids: readonly string[]): string[] {
  return [...new Set(ids.filter((id, index) => ids.indexOf(id) !== index))];
}

/** Finds the nodes that a loop starts again: where the edges that close loops lead, and all behind. */
function findLoopedNodes(outgoing: ReadonlyMap<string, readonly GraphEdge[]>): Set<string> {
  const looped = new Set<string>();
  const pending = [...outgoing.values()].flat().filter(({ closesLoop }) => closesLoop);
  for (let edge = pending.pop(); edge; edge = pending.pop()) {
    if (looped.has(edge.targetNodeId)) continue;
    looped.add(edge.targetNodeId);
    pending.push(...(outgoing.get(edge.targetNodeId) ?? []));
  }
  return looped;
}

/**
 * Finds the edges that lead back to a node on the way to their source. The walk takes the nodes in the order of the
 * definition.
 */
function findLoopEdges({ nodes, edges }: WorkflowDefinition): Set<string> {
  const outgoing = new Map<string, WorkflowEdge[]>();
  const targets = new Set<string>();
  for (const edge of edges) {
    outgoing.set(edge.sourceNodeId, [...(outgoing.get(edge.sourceNodeId) ?? []), edge]);
    if (edge.sourceNodeId !== edge.targetNodeId) targets.add(edge.targetNodeId);
  }
  const closing = new Set<string>();
  const state = new Map<string, "open" | "done">();
  const walk = (root: string): void => {
    if (state.has(root)) return;
    const way: { id: string; next: number }[] = [{ id: root, next: 0 }];
    state.set(root, "open");
    for (let at = way.at(-1); at; at = way.at(-1)) {
      const edge = (outgoing.get(at.id) ?? [])[at.next++];
      if (!edge) {
        state.set(at.id, "done");
        way.pop();
        continue;
      }
      const seen = state.get(edge.targetNodeId);
      if (seen === "open") closing.add(edge.id);
      if (seen !== undefined) continue;
      state.set(edge.targetNodeId, "open");
      way.push({ id: edge.targetNodeId, next: 0 });
    }
  };
  // Entries first, so that a loop is entered where the workflow enters it.
  for (const { id } of nodes) if (!targets.has(id)) walk(id);
  for (const { id } of nodes) walk(id);
  return closing;
}
