/** Owns: circles, and steps that can never run because of what they wait for. */
import type { CoordinationStep } from "../contracts/plan.ts";
import { findCircle, findComponents, type NodeOrder } from "./order-nodes.ts";
import { formatChain, quoteName, type ProblemList } from "./plan-problem.ts";
import type { Wiring } from "./wire-steps.ts";

interface ReachCheck {
  readonly steps: readonly CoordinationStep[];
  readonly wiring: Wiring;
  readonly problems: ProblemList;
}

/**
 * Adds a problem to the plan's list for one circle in each knot of dependencies, and each step that can never run
 * because of what it waits for. An unknown dependency counts as able to complete.
 */
export function checkReach(checked: ReachCheck, { order, stuck }: NodeOrder): void {
  const { wiring } = checked;
  const components = stuck.length === 0 ? [] : findComponents(stuck, wiring.dependencies);
  const dead = new Set<number>();
  for (const knot of components) {
    if (knot.length === 1) continue;
    reportCircle(checked, findCircle(knot, wiring.dependencies));
    for (const node of knot) dead.add(node);
  }
  const onCircle = new Set(dead);
  for (const node of [...order, ...components.flat()]) {
    if (onCircle.has(node) || canStepRun(checked, node, dead)) continue;
    dead.add(node);
    if (isFanInPossible(checked, node)) reportUnreachable(checked, node, { dead, onCircle });
  }
}

function reportCircle({ steps, wiring, problems }: ReachCheck, circle: readonly number[]): void {
  const [first = 0, second = first] = circle;
  const names = [...circle, first].map((node) => readStepId(steps, node));
  const position = steps[first]?.dependsOn?.findIndex((name) => wiring.indexOf.get(name) === second) ?? 0;
  problems.add(
    "DEPENDENCY_CYCLE",
    ["steps", first, "dependsOn", position],
    `these steps wait for each other in a circle: ${formatChain(names)}; remove one of these dependencies`,
  );
}

/** True when enough dependencies of the step are not among the dead ones. */
function canStepRun({ steps, wiring }: ReachCheck, node: number, dead: ReadonlySet<number>): boolean {
  const { count } = wiring.fanIns[node] ?? { count: 0 };
  const named = steps[node]?.dependsOn?.length ?? 0;
  if (named === 0) return true;
  const deadDependencies = (wiring.dependencies[node] ?? []).reduce(
    (sum, each) => sum + (dead.has(each) ? 1 : 0),
    0,
  );
  return named - deadDependencies >= count;
}

/** True when the step has as many dependencies as its fan-in demands; otherwise `wireSteps` has said so. */
function isFanInPossible({ steps, wiring }: ReachCheck, node: number): boolean {
  return (wiring.fanIns[node]?.count ?? 0) <= (steps[node]?.dependsOn?.length ?? 0);
}

function reportUnreachable(
  { steps, wiring, problems }: ReachCheck,
  node: number,
  { dead, onCircle }: { readonly dead: ReadonlySet<number>; readonly onCircle: ReadonlySet<number> },
): void {
  const cause = wiring.dependencies[node]?.find((each) => dead.has(each)) ?? node;
  const why = onCircle.has(cause) ? "is part of a circle" : "can never run";
  const position = steps[node]?.dependsOn?.findIndex((name) => wiring.indexOf.get(name) === cause) ?? 0;
  problems.add(
    "STEP_UNREACHABLE",
    ["steps", node, "dependsOn", position],
    `step ${quoteName(readStepId(steps, node))} can never run because it waits for ${quoteName(readStepId(steps, cause))}, which ${why}; correct that step or remove this dependency`,
  );
}

function readStepId(steps: readonly CoordinationStep[], node: number): string {
  return steps[node]?.stepId ?? "";
}
