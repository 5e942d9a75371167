/**
 * Owns: turning a plan into a step graph, or saying everything that is wrong with it. Does not own: the fields of a plan
 * (`contracts/plan.ts`), running the graph (`dispatch/`).
 *
 * P1 the graph does not depend on the order of steps in the plan. P2 a plan that is refused has at least one problem, and one
 * that is compiled none. P3 no depth or width of a plan makes it throw.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { SpendingLimit } from "../contracts/fact-fields.ts";
import type { StepId } from "../contracts/ids.ts";
import type { Budget, CoordinationPlan, CoordinationStep } from "../contracts/plan.ts";
import type { Privilege } from "../contracts/privilege.ts";
import { nameFile, parseFileResource } from "../contracts/resource-names.ts";
import { convertToMicroUsd } from "../contracts/usage.ts";
import { checkBindings } from "./check-bindings.ts";
import { checkSuccessCriteria, checkVerify } from "./check-verify.ts";
import { checkReach } from "./check-reach.ts";
import { checkDeadline, checkRetries, isSentOnce } from "./check-timing.ts";
import { orderNodes, reverseEdges, type NodeOrder } from "./order-nodes.ts";
import { checkOutputSchema } from "./output-schema.ts";
import { createProblemList, type PlanProblem } from "./plan-problem.ts";
import { readBindings } from "./read-bindings.ts";
import type { CompiledStep, InputBinding, RetryRule, StepGraph } from "./step-graph.ts";
import { addSizeProblems, wireSteps, type Wiring } from "./wire-steps.ts";

export type Compilation =
  | {
      readonly kind: "compiled";
      readonly graph: StepGraph;
      /** As its author wrote it: the paths of problems found later are those of its steps. */
      readonly plan: CoordinationPlan;
    }
  | { readonly kind: "refused"; readonly problems: readonly PlanProblem[] };

export interface CompileOptions {
  /** For steps to which the plan gives no timeout: the host's `stepTimeoutMs`. */
  readonly timeoutMs?: number;
}

const DEFAULTS = {
  priority: "normal",
  lane: "data",
  deliveryMode: "at_least_once",
  timeoutMs: 24 * 3_600_000,
  backoffMs: 1_000,
} as const;

/**
 * Compiles a plan to its step graph, or returns everything that is wrong with it. Problems come by kind, the causes
 * before what follows from them, and at most `BOUNDS.planProblemsMax`.
 */
export function compilePlan(plan: CoordinationPlan, options: CompileOptions = {}): Compilation {
  const problems = createProblemList();
  const { steps } = plan;
  if (addSizeProblems(steps, problems)) return { kind: "refused", problems: problems.problems };
  const wiring = wireSteps(steps, problems);
  const order = orderNodes(wiring.dependencies);
  checkReach({ steps, wiring, problems }, order);
  checkRetries(plan, problems);
  checkDeadline(plan, { wiring, order, problems });
  for (const [index, { outputSchema }] of steps.entries())
    if (outputSchema) checkOutputSchema(outputSchema, ["steps", index, "outputSchema"], problems);
  for (const [index, step] of steps.entries()) if (step.verify) checkVerify(step, index, problems);
  checkSuccessCriteria(plan, problems);
  const bindings = steps.map(({ input }, index) => (input ? readBindings(input, index, problems) : []));
  checkBindings({ steps, wiring, order, problems }, bindings);
  if (problems.problems.length > 0) return { kind: "refused", problems: problems.problems };
  return { kind: "compiled", graph: buildGraph({ plan, wiring, order, bindings, options }), plan };
}

interface GraphInputs {
  readonly plan: CoordinationPlan;
  readonly wiring: Wiring;
  readonly order: NodeOrder;
  readonly bindings: readonly (readonly InputBinding[])[];
  readonly options: CompileOptions;
}

function buildGraph(parts: GraphInputs): StepGraph {
  const { plan, wiring, order } = parts;
  const { coordinationId, objective, ownerSession, conflictPolicy, failurePolicy, deadlineMs } = plan;
  const nodes = sortNodesByDepth(plan.steps, order.depths);
  const dependents = reverseEdges(wiring.dependencies);
  const timeouts = plan.steps.map((step) => chooseTimeoutMs(step, parts));
  const weights = computePathWeights(nodes, dependents, timeouts);
  const rankOf = new Map(nodes.map((node, rank) => [node, rank]));
  const sortByRank = (some: readonly number[] = []): StepId[] =>
    some
      .toSorted((a, b) => (rankOf.get(a) ?? 0) - (rankOf.get(b) ?? 0))
      .flatMap((node) => plan.steps[node]?.stepId ?? []);
  const steps = nodes.flatMap((node): CompiledStep[] => {
    const step = plan.steps[node];
    const fanIn = wiring.fanIns[node];
    if (!step || !fanIn) return [];
    return [
      {
        ...compileOwnFields(step, plan.defaults, plan.failurePolicy.retryBudget),
        dependsOn: sortByRank(wiring.dependencies[node]),
        dependents: sortByRank(dependents[node]),
        fanIn,
        depth: order.depths[node] ?? 0,
        criticalPathMs: weights[node] ?? 0,
        timeoutMs: timeouts[node] ?? DEFAULTS.timeoutMs,
        bindings: parts.bindings[node] ?? [],
      },
    ];
  });
  const path = findHeaviestPath(nodes, dependents, weights);
  const budget = createSpendingLimit(plan.budget);
  return {
    coordinationId,
    objective,
    ownerSession,
    conflictPolicy,
    failurePolicy,
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(budget && { budget }),
    ...(plan.confidence !== undefined && { confidence: plan.confidence }),
    ...(plan.successCriteria && { successCriteria: plan.successCriteria }),
    steps,
    depth: order.depths.reduce((deepest, depth) => Math.max(deepest, depth + 1), 0),
    criticalPathMs: weights[path[0] ?? 0] ?? 0,
    criticalPath: path.flatMap((node) => plan.steps[node]?.stepId ?? []),
  };
}

/** Returns the limit that a budget sets; `undefined` when it limits nothing. */
function createSpendingLimit(budget: Budget | undefined): SpendingLimit | undefined {
  if (!budget) return undefined;
  const { spawns, tokens, costUsd, wallMs } = budget;
  const limit: SpendingLimit = {
    ...(spawns !== undefined && { spawns }),
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costMicroUsd: convertToMicroUsd(costUsd) }),
    ...(wallMs !== undefined && { wallMs }),
  };
  return Object.keys(limit).length > 0 ? limit : undefined;
}

type OwnField = "stepId" | "agent" | "task" | "lane" | "priority" | "deliveryMode" | "retry" | "resources";

/** Compiles what can be known of a step without looking at another one. */
function compileOwnFields(
  step: CoordinationStep,
  defaults: CoordinationPlan["defaults"] = {},
  retryBudget: number,
): Pick<
  CompiledStep,
  OwnField | "input" | "outputSchema" | "verify" | "confidence" | "budget" | "privilege" | "isolate"
> {
  const { stepId, agent, task, input = {}, outputSchema, verify, confidence, isolate } = step;
  const budget = createSpendingLimit(step.budget);
  return {
    stepId,
    agent,
    task,
    input,
    lane: chooseFirst(step.lane, defaults.lane, DEFAULTS.lane),
    priority: chooseFirst(step.priority, defaults.priority, DEFAULTS.priority),
    deliveryMode: chooseFirst(step.deliveryMode, defaults.deliveryMode, DEFAULTS.deliveryMode),
    retry: chooseRetryRule(step, defaults, retryBudget),
    resources: normalizeResources(step.resources),
    ...(outputSchema && { outputSchema }),
    ...(verify && { verify }),
    ...(confidence !== undefined && { confidence }),
    ...(budget && { budget }),
    ...pickPrivilege(step),
    ...(isolate && { isolate }),
  };
}

/**
 * Returns the names of a step's resources sorted, each once and in one spelling, none where it names none. Only on the
 * machine of a file is it known where its path really leads.
 */
export function normalizeResources(resources: readonly string[] = []): readonly string[] {
  return [...new Set(resources.map(normalizeResource))].sort();
}

function normalizeResource(resource: string): string {
  const name = resource.normalize("NFC");
  const file = parseFileResource(name);
  if (!file) return name;
  const { path, machine } = file;
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return nameFile((path.startsWith("/") ? "/" : "") + parts.join("/"), machine);
}

function pickPrivilege({ tools, write }: CoordinationStep): { readonly privilege?: Privilege } {
  if (!tools && !write) return {};
  return { privilege: { ...(tools && { tools }), ...(write && { write }) } };
}

function chooseRetryRule(
  step: CoordinationStep,
  defaults: NonNullable<CoordinationPlan["defaults"]>,
  retryBudget: number,
): RetryRule {
  const { budget, backoffMs } = { ...defaults.retry, ...step.retry };
  return {
    budget: isSentOnce(step, defaults) ? 0 : (budget ?? retryBudget),
    backoffMs: backoffMs ?? DEFAULTS.backoffMs,
  };
}

function chooseFirst<T>(ofStep: T | undefined, planValue: T | undefined, otherwise: T): T {
  return ofStep ?? planValue ?? otherwise;
}

/** Returns the timeout of a step in milliseconds. One that the plan does not state is cut to the plan's deadline. */
function chooseTimeoutMs({ timeoutMs }: CoordinationStep, { plan, options }: GraphInputs): number {
  const stated = timeoutMs ?? plan.defaults?.timeoutMs;
  return stated ?? Math.min(options.timeoutMs ?? DEFAULTS.timeoutMs, plan.deadlineMs ?? BOUNDS.durationMsMax);
}

function sortNodesByDepth(steps: readonly CoordinationStep[], depths: readonly number[]): number[] {
  const idOf = (node: number): string => steps[node]?.stepId ?? "";
  const compareIds = (a: number, b: number): number => (idOf(a) < idOf(b) ? -1 : 1);
  return steps.map((_, node) => node).sort((a, b) => (depths[a] ?? 0) - (depths[b] ?? 0) || compareIds(a, b));
}

/** Returns, by node, how many milliseconds the longest path from it on takes by its timeouts. */
function computePathWeights(
  nodes: readonly number[],
  dependents: readonly (readonly number[])[],
  timeouts: readonly number[],
): number[] {
  const weights = timeouts.map(() => 0);
  for (const node of nodes.toReversed()) {
    let behind = 0;
    for (const dependent of dependents[node] ?? []) behind = Math.max(behind, weights[dependent] ?? 0);
    weights[node] = behind + (timeouts[node] ?? 0);
  }
  return weights;
}

/** Returns the path with the greatest weight; among equals the first in the order of the graph. */
function findHeaviestPath(
  nodes: readonly number[],
  dependents: readonly (readonly number[])[],
  weights: readonly number[],
): number[] {
  const rankOf = new Map(nodes.map((node, rank) => [node, rank]));
  const weightOf = (node: number): number => weights[node] ?? 0;
  const pickHeavier = (a: number, b: number): number => {
    const isFirst =
      weightOf(a) === weightOf(b) ? (rankOf.get(a) ?? 0) < (rankOf.get(b) ?? 0) : weightOf(a) > weightOf(b);
    return isFirst ? a : b;
  };
  const path: number[] = [];
  for (let choices = nodes; ;) {
    const [first] = choices;
    if (first === undefined) return path;
    const next = choices.reduce(pickHeavier, first);
    path.push(next);
    choices = dependents[next] ?? [];
  }
}
