/** Owns: the order of a graph of numbered nodes, and its knots. Nothing here recurses: a chain may be 10,000 long. */

/** By node: the nodes that it depends on. */
export type DependencyEdges = readonly (readonly number[])[];

/** The nodes of a graph in the order of their dependencies. */
export interface NodeOrder {
  /** Every node after its dependencies; without those that are on a circle or behind one. */
  readonly order: readonly number[];
  /** By node: the length of the longest chain before it. */
  readonly depths: readonly number[];
  /** On a circle or behind one. */
  readonly stuck: readonly number[];
}

/**
 * Returns the nodes ordered so that each comes after its dependencies, with their depths, and apart from them those
 * that a circle keeps out.
 */
export function orderNodes(dependencies: DependencyEdges): NodeOrder {
  const dependents = reverseEdges(dependencies);
  const openDependencyCounts = dependencies.map(({ length }) => length);
  const depths = dependencies.map(() => 0);
  const order = openDependencyCounts.flatMap((count, node) => (count === 0 ? [node] : []));
  // The list grows while it is walked.
  for (const node of order) {
    const depth = (depths[node] ?? 0) + 1;
    for (const dependent of dependents[node] ?? []) {
      depths[dependent] = Math.max(depths[dependent] ?? 0, depth);
      const left = (openDependencyCounts[dependent] ?? 0) - 1;
      openDependencyCounts[dependent] = left;
      if (left === 0) order.push(dependent);
    }
  }
  const stuck =
    order.length === dependencies.length
      ? []
      : openDependencyCounts.flatMap((left, node) => (left > 0 ? [node] : []));
  return { order, depths, stuck };
}

/** Returns, by the index of each node, the nodes that depend on it. */
export function reverseEdges(edges: DependencyEdges): number[][] {
  const back: number[][] = edges.map(() => []);
  for (const [from, targets] of edges.entries()) for (const to of targets) back[to]?.push(from);
  return back;
}

/**
 * Returns the strongly connected components of these nodes (Tarjan), each after the components that it depends on.
 * Each is a single node or a knot of circles.
 */
export function findComponents(nodes: readonly number[], dependencies: DependencyEdges): number[][] {
  const among = new Set(nodes);
  const walk = createWalk();
  for (const root of nodes) {
    if (!walk.numbers.has(root)) enterNode(walk, root);
    for (let visit = walk.visits.at(-1); visit; visit = walk.visits.at(-1)) {
      const target = dependencies[visit.node]?.[visit.next];
      visit.next += 1;
      if (target === undefined) leaveNode(walk, visit.node);
      else if (among.has(target)) followEdge(walk, visit.node, target);
    }
  }
  return walk.components;
}

/** A node on the path of the walk, and the next of its edges to follow. */
interface NodeVisit {
  readonly node: number;
  next: number;
}

/** The progress of a walk through a graph that finds its strongly connected components. */
interface ComponentWalk {
  readonly visits: NodeVisit[];
  /** In the order of their first visit. */
  readonly numbers: Map<number, number>;
  /** The lowest number that is known to be reached. */
  readonly lows: Map<number, number>;
  /** Visited and not in a component yet. */
  readonly open: number[];
  readonly isOpen: Set<number>;
  readonly components: number[][];
}

function createWalk(): ComponentWalk {
  return { visits: [], numbers: new Map(), lows: new Map(), open: [], isOpen: new Set(), components: [] };
}

function enterNode({ visits, numbers, lows, open, isOpen }: ComponentWalk, node: number): void {
  lows.set(node, numbers.size);
  numbers.set(node, numbers.size);
  open.push(node);
  isOpen.add(node);
  visits.push({ node, next: 0 });
}

function followEdge(walk: ComponentWalk, node: number, target: number): void {
  if (!walk.numbers.has(target)) enterNode(walk, target);
  else if (walk.isOpen.has(target)) lowerReach(walk, node, walk.numbers.get(target) ?? 0);
}

/** Ends the visit of a node, and closes the component that begins with it. */
function leaveNode(walk: ComponentWalk, node: number): void {
  const { visits, numbers, lows, open, isOpen, components } = walk;
  visits.pop();
  const parent = visits.at(-1);
  if (parent) lowerReach(walk, parent.node, lows.get(node) ?? 0);
  if (lows.get(node) !== numbers.get(node)) return;
  const component = open.splice(open.lastIndexOf(node));
  for (const member of component) isOpen.delete(member);
  components.push(component);
}

/** Lowers the earliest visit that a node is known to reach, where this one is earlier. */
function lowerReach({ lows }: ComponentWalk, node: number, low: number): void {
  lows.set(node, Math.min(lows.get(node) ?? low, low));
}

/**
 * Returns a shortest circle through the lowest node of a knot, that node first. Each node depends on the next, the
 * last on the first.
 */
export function findCircle(knot: readonly number[], dependencies: DependencyEdges): number[] {
  const start = knot.reduce((lowest, node) => Math.min(lowest, node));
  const members = new Set(knot);
  const cameFrom = new Map<number, number>();
  const queue = [start];
  for (const node of queue) {
    for (const target of dependencies[node] ?? []) {
      if (target === start) return findPathBack(start, node, cameFrom);
      if (!members.has(target) || cameFrom.has(target)) continue;
      cameFrom.set(target, node);
      queue.push(target);
    }
  }
  return [start];
}

function findPathBack(start: number, end: number, cameFrom: ReadonlyMap<number, number>): number[] {
  const path = [end];
  for (let node = end; node !== start;) {
    node = cameFrom.get(node) ?? start;
    path.push(node);
  }
  return path.toReversed();
}
