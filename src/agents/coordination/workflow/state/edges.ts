/** Owns: which node of a run is next, by the rules of the edges that lead to it. */
import type { GraphEdge, GraphNode, NodeGraph } from "./node-graph.ts";
import { isAtWork, type NodeRun, type WorkflowRun } from "./workflow-state.ts";
import { isHolding } from "./values.ts";

export type NextNode =
  { readonly kind: "start"; readonly node: GraphNode } | { readonly kind: "skip"; readonly node: GraphNode };

type Signal = "success" | "failed" | "skipped";

/** Lists the nodes to start or skip now, in the order of the definition. */
export function listNextNodes(run: WorkflowRun, graph: NodeGraph): NextNode[] {
  const next: NextNode[] = [];
  for (const node of graph.nodes.values()) {
    const kind = findDueStep(run, node);
    if (kind) next.push({ kind, node });
  }
  if (!next.some(({ node }) => node.isLooped)) return next;
  const behind = findNodesBehindWork(run, graph, next);
  return next.filter(({ node }) => !node.isLooped || !behind.has(node.node.id));
}

/** True when an edge waits for a failure of the node. */
export function isHandlingFailure({ outgoing }: GraphNode): boolean {
  return outgoing.some(({ rule }) => rule === "any_failed" || rule === "all_complete");
}

function findDueStep(run: WorkflowRun, graphNode: GraphNode): NextNode["kind"] | undefined {
  const { node, incoming, isLooped } = graphNode;
  const nodeRun = run.nodes.get(node.id);
  if (nodeRun && isAtWork(nodeRun)) return undefined;
  if (nodeRun === undefined) {
    const forward = incoming.filter(({ closesLoop }) => !closesLoop);
    return ruleOf(run, forward, -1);
  }
  // Where no loop leads here, a second edge that arrives is late, and nothing new.
  return isLooped ? findLoopStep(run, nodeRun, graphNode) : undefined;
}

/** A loop came round: something that leads here ended after this node was last started or skipped. */
function findLoopStep(
  run: WorkflowRun,
  nodeRun: NodeRun,
  { incoming, outgoing }: GraphNode,
): NextNode["kind"] | undefined {
  const isNews = (edge: GraphEdge): boolean => endOf(run, edge) > nodeRun.startedSequence;
  const closing = incoming.filter((edge) => edge.closesLoop && isNews(edge));
  if (closing.some((edge) => isFiring(run, edge))) return "start";
  const forward = incoming.filter(({ closesLoop }) => !closesLoop);
  if (!forward.some(isNews)) return undefined;
  const ruled = ruleOf(run, forward, nodeRun.startedSequence);
  // A node that is skipped again has something to say only to nodes that have not moved since the loop came round.
  const isKnown = ruled === "skip" && nodeRun.status === "skipped";
  const since = Math.max(...forward.map((edge) => endOf(run, edge)));
  return isKnown && !outgoing.some((edge) => isBehindSince(run, edge, since)) ? undefined : ruled;
}

/** True when the edge leads on to a node that was last started or skipped before this event. */
function isBehindSince(run: WorkflowRun, { closesLoop, targetNodeId }: GraphEdge, sequence: number): boolean {
  const target = run.nodes.get(targetNodeId);
  return !closesLoop && target !== undefined && target.startedSequence < sequence;
}

function endOf(run: WorkflowRun, { sourceNodeId }: GraphEdge): number {
  return run.nodes.get(sourceNodeId)?.endedSequence ?? -1;
}

function isFiring(run: WorkflowRun, edge: GraphEdge): boolean {
  const signal = signalOf(run, edge);
  switch (edge.rule) {
    case "any_failed":
      return signal === "failed";
    case "all_complete":
      return signal === "success" || signal === "failed";
    default:
      return signal === "success";
  }
}

/** Without edges a node is to start. `since`: an edge that settles for any needs one that ended after it. */
function ruleOf(run: WorkflowRun, edges: readonly GraphEdge[], since: number): NextNode["kind"] | undefined {
  const byRule = Map.groupBy(edges, ({ rule }) => rule);
  let open = false;
  let skip = false;
  for (const [rule, group] of byRule) {
    const ruled = RULES[rule](
      group.map((edge) => ({ signal: signalOf(run, edge), isNews: endOf(run, edge) > since })),
    );
    if (ruled === "start" && ANY.has(rule)) return "start";
    if (ruled === undefined) open = true;
    if (ruled === "skip") skip = true;
  }
  if (open) return undefined;
  return skip ? "skip" : "start";
}

interface Arrived {
  /** `undefined`: not yet. */
  readonly signal: Signal | undefined;
  readonly isNews: boolean;
}

type Rule = (arrived: readonly Arrived[]) => NextNode["kind"] | undefined;

/** Rules by which one edge is enough. */
const ANY: ReadonlySet<GraphEdge["rule"]> = new Set(["any_success", "any_failed"]);

const requireOne =
  (wanted: Signal): Rule =>
  (arrived) => {
    if (arrived.some(({ signal, isNews }) => signal === wanted && isNews)) return "start";
    return hasAll(arrived) ? "skip" : undefined;
  };

const RULES: Readonly<Record<GraphEdge["rule"], Rule>> = {
  all_success: (arrived) => {
    if (arrived.some(({ signal }) => signal === "failed" || signal === "skipped")) return "skip";
    return hasAll(arrived) ? "start" : undefined;
  },
  any_success: requireOne("success"),
  any_failed: requireOne("failed"),
  all_complete: (arrived) => (hasAll(arrived) ? "start" : undefined),
  none_failed: (arrived) => {
    if (arrived.some(({ signal }) => signal === "failed")) return "skip";
    if (!hasAll(arrived)) return undefined;
    return arrived.some(({ signal }) => signal === "success") ? "start" : "skip";
  },
};

function hasAll(arrived: readonly Arrived[]): boolean {
  return arrived.every(({ signal }) => signal !== undefined);
}

/** A condition that does not hold leaves its edge out, as if its source had been skipped. */
function signalOf(run: WorkflowRun, edge: GraphEdge): Signal | undefined {
  const source = run.nodes.get(edge.sourceNodeId);
  switch (source?.status) {
    case "completed":
      return !edge.condition || isHolding(edge.condition, source.outputs ?? {}) ? "success" : "skipped";
    case "failed":
      return "failed";
    case "skipped":
    case "cancelled":
      return "skipped";
    default:
      return undefined;
  }
}

/** Finds the nodes behind work that a loop may be about to do again; they wait. */
function findNodesBehindWork(
  run: WorkflowRun,
  graph: NodeGraph,
  next: readonly NextNode[],
): ReadonlySet<string> {
  const behind = new Set<string>();
  const pending = next.map(({ node }) => node.node.id);
  for (const node of run.nodes.values()) if (isAtWork(node)) pending.push(node.nodeId);
  for (let id = pending.pop(); id !== undefined; id = pending.pop())
    for (const { closesLoop, targetNodeId } of graph.nodes.get(id)?.outgoing ?? []) {
      if (closesLoop || behind.has(targetNodeId) || isPassed(run, graph, targetNodeId)) continue;
      behind.add(targetNodeId);
      pending.push(targetNodeId);
    }
  return behind;
}

/** True for a node that has begun and that no loop starts again: what leads to it starts nothing behind it any more. */
function isPassed(run: WorkflowRun, graph: NodeGraph, nodeId: string): boolean {
  return run.nodes.has(nodeId) && graph.nodes.get(nodeId)?.isLooped === false;
}
