/** Owns: which node of a run is next, by the rules of the edges that lead to it. */
import type { GraphEdge, GraphNode, NodeGraph } from "./node-graph.ts";
import {
  findExecutionEndedBefore,
  hasEnded,
  isAtWork,
  type EndedExecution,
  type NodeRun,
  type WorkflowRun,
} from "./workflow-state.ts";
import { isConditionHolding } from "./values.ts";

export type NextNode =
  { readonly kind: "start"; readonly node: GraphNode } | { readonly kind: "skip"; readonly node: GraphNode };

/** The signal that an edge carries from the node at its source. */
type EdgeSignal = "success" | "failed" | "skipped";

/** A run at one moment. */
interface RunMoment {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  /** The rounds of executions that were found so far: many edges ask for the same. */
  readonly rounds: Map<EndedExecution, number>;
}

/**
 * Lists the nodes of a run that are to be started or skipped now, each with which of both, in the order of the
 * definition; nodes of loops wait for work before them.
 */
export function listNextNodes(run: WorkflowRun, graph: NodeGraph): NextNode[] {
  const moment: RunMoment = { run, graph, rounds: new Map() };
  const next: NextNode[] = [];
  for (const node of graph.nodes.values()) {
    const kind = ruleOnNode(moment, node);
    if (kind) next.push({ kind, node });
  }
  if (!next.some(({ node }) => node.isLooped)) return next;
  const due = new Set(next.map(({ node }) => node.node.id));
  const working = [...due];
  for (const node of run.nodes.values()) if (isAtWork(node)) working.push(node.nodeId);
  const nodesBehindWork = findNodesBehindWork(run, graph, working);
  const isFree = ({ kind, node }: NextNode): boolean => {
    if (kind === "skip" || !isStartedByOne(moment, node)) return false;
    const { comingRound, beginnings } = findLoopsOfNode(graph, node);
    return (
      !working.some((id) => comingRound.has(id)) &&
      beginnings.every((id) => run.nodes.has(id) && !due.has(id))
    );
  };
  return next.filter(
    (each) => !each.node.isLooped || !nodesBehindWork.has(each.node.node.id) || isFree(each),
  );
}

/** True when an edge out of the node is followed after a failure of the node. */
export function isHandlingFailure({ outgoing }: GraphNode): boolean {
  return outgoing.some(({ rule }) => rule === "any_failed" || rule === "all_complete");
}

/** Returns whether the node is to be started or skipped now; `undefined`: neither. */
function ruleOnNode(moment: RunMoment, graphNode: GraphNode): NextNode["kind"] | undefined {
  const { run } = moment;
  const { node, incoming, isLooped } = graphNode;
  const nodeRun = run.nodes.get(node.id);
  if (nodeRun && isAtWork(nodeRun)) return undefined;
  if (nodeRun === undefined)
    return ruleOnEdges(run, listForwardEdges(incoming), createNewsTest(moment, graphNode));
  // Where no loop leads here, a second edge that arrives is late, and nothing new.
  return isLooped ? ruleOnLoopedNode(moment, graphNode) : undefined;
}

/**
 * Returns whether a loop that came round starts or skips the node again. Something that leads here must have ended
 * after this node was last started or skipped.
 */
function ruleOnLoopedNode(moment: RunMoment, graphNode: GraphNode): NextNode["kind"] | undefined {
  const { run } = moment;
  const { node, incoming, outgoing } = graphNode;
  const isNews = createNewsTest(moment, graphNode);
  const closing = incoming.filter((edge) => edge.closesLoop && isNews(edge));
  if (closing.some((edge) => isFiring(edge, run.nodes.get(edge.sourceNodeId)))) return "start";
  const forward = listForwardEdges(incoming);
  if (!forward.some(isNews)) return undefined;
  const ruled = ruleOnEdges(run, forward, isNews);
  // A node that is skipped again has something to say only to nodes that have not moved since the loop came round.
  const isKnown = ruled === "skip" && run.nodes.get(node.id)?.status === "skipped";
  const since = Math.max(...forward.map((edge) => findSourceEnd(run, edge)));
  return isKnown && !outgoing.some((edge) => isTargetOlder(run, edge, since)) ? undefined : ruled;
}

/** True when the edge leads on to a node that was last started or skipped before this event. */
function isTargetOlder(run: WorkflowRun, { closesLoop, targetNodeId }: GraphEdge, sequence: number): boolean {
  const target = run.nodes.get(targetNodeId);
  return !closesLoop && target !== undefined && findBeginning(target) < sequence;
}

function findSourceEnd(run: WorkflowRun, { sourceNodeId }: GraphEdge): number {
  return run.nodes.get(sourceNodeId)?.endedSequence ?? -1;
}

/** True when the outcome of its source is one for which the edge starts its target. */
function isFiring(edge: GraphEdge, source: SourceOutcome | undefined): boolean {
  const signal = readSignal(edge, source);
  switch (edge.rule) {
    case "any_failed":
      return signal === "failed";
    case "all_complete":
      return signal === "success" || signal === "failed";
    default:
      return signal === "success";
  }
}

type NewsTest = (edge: GraphEdge) => boolean;

/** Creates the test whether an edge brings something that came after its target last began or was skipped. */
function createNewsTest(moment: RunMoment, { node, incoming }: GraphNode): NewsTest {
  const { run } = moment;
  const nodeRun = run.nodes.get(node.id);
  if (!nodeRun) return () => true;
  const since = findBeginning(nodeRun);
  const isOneEnough = listForwardEdges(incoming).some(({ rule }) => ANY.has(rule));
  return ({ closesLoop, sourceNodeId }) => {
    const source = run.nodes.get(sourceNodeId);
    if (!source || !hasEnded(source) || source.endedSequence <= since) return false;
    // Where one edge was enough, the others of that round are late.
    return !isOneEnough || closesLoop || findRoundBeginning(moment, sourceNodeId, source) > since;
  };
}

/** Finds the beginning of the newest round of a loop that led to this execution of the node; -1 where none did. */
function findRoundBeginning(moment: RunMoment, nodeId: string, execution: EndedExecution): number {
  const cached = moment.rounds.get(execution);
  if (cached !== undefined) return cached;
  const began = findBeginning(execution);
  const causes = listCausingEdges(moment, nodeId, began);
  const before = findPreviousBeginning(moment.run.nodes.get(nodeId), began);
  const round = causes.some(
    ({ edge, source }) => edge.closesLoop && source.endedSequence > before && isFiring(edge, source),
  )
    ? began
    : Math.max(
        -1,
        ...causes
          .filter(({ edge }) => !edge.closesLoop)
          .map(({ edge, source }) => findRoundBeginning(moment, edge.sourceNodeId, source)),
      );
  moment.rounds.set(execution, round);
  return round;
}

/** Lists the edges to a node that began with this event, each with the execution that it came from; that need not be the newest one. */
function listCausingEdges({ run, graph }: RunMoment, nodeId: string, began: number) {
  return (graph.nodes.get(nodeId)?.incoming ?? []).flatMap((edge) => {
    const source = findExecutionEndedBefore(run.nodes.get(edge.sourceNodeId), began);
    return source ? [{ edge, source }] : [];
  });
}

/** Finds when the node began the time before. No loop leads to its first time. */
function findPreviousBeginning(nodeRun: NodeRun | undefined, began: number): number {
  const before = nodeRun?.earlierExecutions?.findLast((execution) => findBeginning(execution) < began);
  return before ? findBeginning(before) : Infinity;
}

/** Returns the sequence at which the node began, whatever retries followed, or was skipped. */
function findBeginning({
  status,
  startedSequence,
  enteredSequence,
}: Pick<NodeRun, "status" | "startedSequence" | "enteredSequence">): number {
  return status === "skipped" ? startedSequence : enteredSequence;
}

/** True where an edge that is enough by itself has brought something new. */
function isStartedByOne(moment: RunMoment, graphNode: GraphNode): boolean {
  const isNews = createNewsTest(moment, graphNode);
  return listForwardEdges(graphNode.incoming).some(
    (edge) => ANY.has(edge.rule) && isFiring(edge, moment.run.nodes.get(edge.sourceNodeId)) && isNews(edge),
  );
}

/**
 * Returns what a node's edges demand: start, skip or, as `undefined`, wait. Without edges a node is to start. Where
 * one edge is enough, it must be news.
 */
function ruleOnEdges(
  run: WorkflowRun,
  edges: readonly GraphEdge[],
  isNews: NewsTest,
): NextNode["kind"] | undefined {
  const byRule = Map.groupBy(edges, ({ rule }) => rule);
  let open = false;
  let skip = false;
  for (const [rule, group] of byRule) {
    const ruled = RULES[rule](
      group.map((edge) => ({
        signal: readSignal(edge, run.nodes.get(edge.sourceNodeId)),
        isNews: isNews(edge),
      })),
    );
    if (ruled === "start" && ANY.has(rule)) return "start";
    if (ruled === undefined) open = true;
    if (ruled === "skip") skip = true;
  }
  if (open) return undefined;
  return skip ? "skip" : "start";
}

/** The signal of an edge that leads to a node, and whether the node has not acted on it yet. */
interface ArrivedSignal {
  /** `undefined`: not yet. */
  readonly signal: EdgeSignal | undefined;
  readonly isNews: boolean;
}

/** Rules on a node by the signals of the edges that lead to it. */
type JoinRule = (arrived: readonly ArrivedSignal[]) => NextNode["kind"] | undefined;

/** Rules by which one edge is enough. */
const ANY: ReadonlySet<GraphEdge["rule"]> = new Set(["any_success", "any_failed"]);

const requireOne =
  (wanted: EdgeSignal): JoinRule =>
  (arrived) => {
    if (arrived.some(({ signal, isNews }) => signal === wanted && isNews)) return "start";
    return hasEverySignal(arrived) ? "skip" : undefined;
  };

const RULES: Readonly<Record<GraphEdge["rule"], JoinRule>> = {
  all_success: (arrived) => {
    if (arrived.some(({ signal }) => signal === "failed" || signal === "skipped")) return "skip";
    return hasEverySignal(arrived) ? "start" : undefined;
  },
  any_success: requireOne("success"),
  any_failed: requireOne("failed"),
  all_complete: (arrived) => (hasEverySignal(arrived) ? "start" : undefined),
  none_failed: (arrived) => {
    if (arrived.some(({ signal }) => signal === "failed")) return "skip";
    if (!hasEverySignal(arrived)) return undefined;
    return arrived.some(({ signal }) => signal === "success") ? "start" : "skip";
  },
};

function hasEverySignal(arrived: readonly ArrivedSignal[]): boolean {
  return arrived.every(({ signal }) => signal !== undefined);
}

/** The end of the node at an edge's source. */
type SourceOutcome = Pick<NodeRun, "status" | "outputs">;

/**
 * Returns how an edge's source ended; `undefined` while it has not. A condition that does not hold leaves its edge
 * out, as if its source had been skipped.
 */
function readSignal({ condition }: GraphEdge, source: SourceOutcome | undefined): EdgeSignal | undefined {
  switch (source?.status) {
    case "completed":
      return !condition || isConditionHolding(condition, source.outputs ?? {}) ? "success" : "skipped";
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
  working: readonly string[],
): ReadonlySet<string> {
  return findNodesFrom(graph, working, "outgoing", (nodeId) => isBegunForGood(run, graph, nodeId));
}

/** True for a node that has begun and that no loop starts again: what leads to it starts nothing behind it any more. */
function isBegunForGood(run: WorkflowRun, graph: NodeGraph, nodeId: string): boolean {
  return run.nodes.has(nodeId) && graph.nodes.get(nodeId)?.isLooped === false;
}

/** The loops that a node waits for, although one edge to it is enough. */
interface LoopsOfNode {
  /** The nodes before it from which a loop may still come round to it that it is not on the way of. */
  readonly comingRound: ReadonlySet<string>;
  /** Where the loops begin that it is on the way of. One that has not begun yet would not see that the node led back to it. */
  readonly beginnings: readonly string[];
}

/** Kept by node, because a graph does not change and this is asked with every step of a run. */
const loopsOfNodes = new WeakMap<GraphNode, LoopsOfNode>();

function findLoopsOfNode(graph: NodeGraph, graphNode: GraphNode): LoopsOfNode {
  const cached = loopsOfNodes.get(graphNode);
  if (cached) return cached;
  const { id } = graphNode.node;
  const before = findNodesFrom(graph, [id], "incoming").add(id);
  const after = findNodesFrom(graph, [id], "outgoing").add(id);
  const closing = [...before].flatMap((nodeId) =>
    (graph.nodes.get(nodeId)?.incoming ?? []).filter(({ closesLoop }) => closesLoop),
  );
  const ends = closing.map(({ sourceNodeId }) => sourceNodeId).filter((nodeId) => nodeId !== id);
  const returning = findNodesFrom(graph, ends, "incoming", (nodeId) => nodeId === id);
  const loops: LoopsOfNode = {
    comingRound: new Set([...ends, ...returning].filter((nodeId) => before.has(nodeId))),
    beginnings: closing
      .filter(({ sourceNodeId, targetNodeId }) => targetNodeId !== id && after.has(sourceNodeId))
      .map(({ targetNodeId }) => targetNodeId),
  };
  loopsOfNodes.set(graphNode, loops);
  return loops;
}

/** Finds the nodes that edges lead to, or from, step by step, without the edges that close loops. */
function findNodesFrom(
  graph: NodeGraph,
  nodeIds: readonly string[],
  direction: "incoming" | "outgoing",
  isLeftOut: (nodeId: string) => boolean = () => false,
): Set<string> {
  const reachedIds = new Set<string>();
  const pending = [...nodeIds];
  for (let id = pending.pop(); id !== undefined; id = pending.pop())
    for (const { closesLoop, sourceNodeId, targetNodeId } of graph.nodes.get(id)?.[direction] ?? []) {
      const nextId = direction === "incoming" ? sourceNodeId : targetNodeId;
      if (closesLoop || reachedIds.has(nextId) || isLeftOut(nextId)) continue;
      reachedIds.add(nextId);
      pending.push(nextId);
    }
  return reachedIds;
}

function listForwardEdges(edges: readonly GraphEdge[]): readonly GraphEdge[] {
  return edges.filter(({ closesLoop }) => !closesLoop);
}
