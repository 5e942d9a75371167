/** Owns: whether what the bindings name is there: the step, before this one, with such an output. */
import type { CoordinationStep } from "../contracts/plan.ts";
import { formatProblemPath } from "../contracts/validation.ts";
import { canHaveOutput } from "./declares.ts";
import type { NodeOrder } from "./order-nodes.ts";
import { quoteName, type ProblemList } from "./plan-problem.ts";
import { listReferences } from "./read-bindings.ts";
import type { InputBinding, OutputReference, PathSegment } from "./step-graph.ts";
import type { Wiring } from "./wire-steps.ts";

interface BindingCheck {
  readonly steps: readonly CoordinationStep[];
  readonly wiring: Wiring;
  readonly order: NodeOrder;
  readonly problems: ProblemList;
}

/** The use of another step's output by a step. */
interface OutputUse {
  readonly node: number;
  readonly source: number;
  readonly path: readonly PathSegment[];
}

const SOURCES_PER_PASS = 32;

/**
 * Adds a problem to the plan's list for each input binding to an unknown step, to an output that the step excludes, or
 * to a step that need not have run before; returns nothing.
 */
export function checkBindings(check: BindingCheck, bindings: readonly (readonly InputBinding[])[]): void {
  const indirect: OutputUse[] = [];
  for (const [node, nodeBindings] of bindings.entries()) {
    const direct = new Set(check.wiring.dependencies[node]);
    for (const { at, value } of nodeBindings) {
      const path = ["steps", node, "input", ...at];
      for (const reference of listReferences(value)) {
        const source = checkReference(check, reference, path);
        if (source !== undefined && !direct.has(source)) indirect.push({ node, source, path });
      }
    }
  }
  checkIndirectUses(check, indirect);
}

/** Reports a reference to an unknown step or an excluded output, and returns the index of the step that is named. */
function checkReference(
  { steps, wiring, problems }: BindingCheck,
  { stepId, path: output }: OutputReference,
  path: readonly PathSegment[],
): number | undefined {
  const source = wiring.indexOf.get(stepId);
  if (source === undefined) {
    const message = `no step has the id ${quoteName(stepId)}; correct the id or add the step`;
    problems.add("BINDING_UNKNOWN_STEP", path, message);
    return undefined;
  }
  const schema = steps[source]?.outputSchema;
  if (schema && !canHaveOutput(schema, output))
    problems.add(
      "BINDING_UNDECLARED_OUTPUT",
      path,
      `the outputSchema of ${quoteName(stepId)} excludes ${quoteName(formatProblemPath(output))}; declare it there or name another output`,
    );
  return source;
}

/**
 * Reports each use of a step that does not come before its user through any number of steps. Each pass carries 32
 * sources along the edges, one bit each; on and behind circles, which are refused anyway, nothing is said.
 */
function checkIndirectUses(checked: BindingCheck, uses: readonly OutputUse[]): void {
  if (uses.length === 0) return;
  const edges = sortEdgesByRank(checked);
  const rankOf = (node: number): number => edges.ranks[node] ?? STUCK;
  const bySource = Map.groupBy(
    uses.filter(({ node, source }) => rankOf(node) !== STUCK && rankOf(source) !== STUCK),
    ({ source }) => source,
  );
  const sources = [...bySource.keys()].sort((a, b) => rankOf(a) - rankOf(b));
  const wrong: OutputUse[] = [];
  for (let from = 0; from < sources.length; from += SOURCES_PER_PASS) {
    const carried = sources.slice(from, from + SOURCES_PER_PASS);
    const behind = computeReachBits(edges, carried.map(rankOf));
    for (const [bit, source] of carried.entries())
      for (const use of bySource.get(source) ?? [])
        if (use.node === source || ((behind[rankOf(use.node)] ?? 0) & (1 << bit)) === 0) wrong.push(use);
  }
  for (const use of wrong.sort((a, b) => a.node - b.node)) reportNotDependency(checked, use);
}

const STUCK = -1;

/** The edges in one array, ordered as the steps run: a tenth of the time of an array for each step. */
interface EdgesByRank {
  /** By node: its place in the order. */
  readonly ranks: Int32Array;
  /** By rank: where its dependencies begin in `targets`; one more at the end. */
  readonly starts: Int32Array;
  readonly targets: Int32Array;
}

function sortEdgesByRank({ steps, wiring, order: { order } }: BindingCheck): EdgesByRank {
  const ranks = new Int32Array(steps.length).fill(STUCK);
  for (const [rank, node] of order.entries()) ranks[node] = rank;
  const starts = new Int32Array(order.length + 1);
  const targets: number[] = [];
  for (const [rank, node] of order.entries()) {
    for (const dependency of wiring.dependencies[node] ?? []) targets.push(ranks[dependency] ?? STUCK);
    starts[rank + 1] = targets.length;
  }
  return { ranks, starts, targets: Int32Array.from(targets) };
}

/** Computes, by rank, a bit for every source that is this step or comes before it. The sources are in order. */
function computeReachBits({ starts, targets }: EdgesByRank, sources: readonly number[]): Uint32Array {
  const [first = 0] = sources;
  const bits = new Uint32Array(starts.length - 1);
  for (const [bit, rank] of sources.entries()) bits[rank] = 1 << bit;
  for (let rank = first + 1; rank < bits.length; rank += 1) {
    const end = starts[rank + 1] ?? 0;
    let rowBits = bits[rank] ?? 0;
    for (let at = starts[rank] ?? 0; at < end; at += 1) rowBits |= bits[targets[at] ?? 0] ?? 0;
    bits[rank] = rowBits;
  }
  return bits;
}

function reportNotDependency({ steps, problems }: BindingCheck, { node, source, path }: OutputUse): void {
  const name = quoteName(steps[source]?.stepId ?? "");
  const message =
    node === source
      ? "a step cannot use its own outputs; name another step"
      : `step ${name} need not have run before this one; add ${name} to dependsOn`;
  problems.add("BINDING_NOT_DEPENDENCY", path, message);
}
