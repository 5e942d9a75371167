/** Owns: whether timeouts, backoffs and retry budgets fit what the plan allows as a whole. */
import type { CoordinationPlan, CoordinationStep } from "../contracts/plan.ts";
import type { NodeOrder } from "./order-nodes.ts";
import { formatChain, type ProblemList } from "./plan-problem.ts";
import type { PathSegment } from "./step-graph.ts";
import type { Wiring } from "./wire-steps.ts";

/** How often a step is tried again, and how long it waits before that. */
interface RetryTiming {
  readonly budget: number;
  readonly backoffMs?: number | undefined;
}

/**
 * Adds a problem to the plan's list for each rule of retries that exceeds the plan's budget, each backoff that takes
 * all of its time, and each retry of a step that is sent once; returns nothing.
 */
export function checkRetries(plan: CoordinationPlan, problems: ProblemList): void {
  const { retryBudget } = plan.failurePolicy;
  const check = (retry: RetryTiming | undefined, path: readonly PathSegment[]): void => {
    if (!retry) return;
    if (retry.budget > retryBudget)
      problems.add(
        "RETRY_OVER_BUDGET",
        [...path, "budget"],
        `${retry.budget} retries are more than failurePolicy.retryBudget of ${retryBudget}; lower this or raise that`,
      );
    if (plan.deadlineMs !== undefined && (retry.backoffMs ?? 0) >= plan.deadlineMs)
      problems.add(
        "DEADLINE_IMPOSSIBLE",
        [...path, "backoffMs"],
        `waiting ${retry.backoffMs ?? 0} ms before a retry takes all of the plan's ${plan.deadlineMs} ms; shorten it or raise deadlineMs`,
      );
  };
  check(plan.defaults?.retry, ["defaults", "retry"]);
  for (const [index, step] of plan.steps.entries()) {
    const path = ["steps", index, "retry"];
    // One sentence for one budget: sent once is the narrower rule.
    if (isSentOnce(step, plan.defaults) && (step.retry?.budget ?? 0) > 0) {
      const message =
        "a best_effort step is sent once and never tried again; set budget to 0 or deliveryMode to at_least_once";
      problems.add("RETRY_OVER_BUDGET", [...path, "budget"], message);
    } else check(step.retry, path);
  }
}

/** True when the step is never tried again, because its delivery mode is `best_effort`. */
export function isSentOnce(step: CoordinationStep, defaults: CoordinationPlan["defaults"]): boolean {
  return (step.deliveryMode ?? defaults?.deliveryMode) === "best_effort";
}

/** A plan's wiring and order, and the list for the problems of its times. */
interface TimingCheck {
  readonly wiring: Wiring;
  readonly order: NodeOrder;
  readonly problems: ProblemList;
}

/**
 * Adds a problem to the plan's list for each chain of stated timeouts that does not fit the plan's deadline, each step
 * tried once; returns nothing. Timeouts that the plan does not state are cut to the deadline instead.
 */
export function checkDeadline(plan: CoordinationPlan, timed: TimingCheck): void {
  const { deadlineMs, steps } = plan;
  if (deadlineMs === undefined) return;
  const times = computeLatestTimes(plan, timed);
  for (const [node, { startMs, finishMs }] of times) {
    if (startMs > deadlineMs || finishMs <= deadlineMs) continue;
    if (timed.problems.isFull()) return;
    const chain = formatChain(traceChain(node, times).map((each) => steps[each]?.stepId ?? ""));
    timed.problems.add(
      "DEADLINE_IMPOSSIBLE",
      steps[node]?.timeoutMs === undefined ? ["defaults", "timeoutMs"] : ["steps", node, "timeoutMs"],
      `the timeouts of ${chain} add up to ${finishMs} ms, more than the plan's ${deadlineMs} ms; shorten them or raise deadlineMs`,
    );
  }
}

/** The latest times of a step, from the start of the plan, and the dependency it starts behind. */
interface StepTimes {
  /** The dependency that it starts behind. */
  readonly after: number | undefined;
  readonly startMs: number;
  readonly finishMs: number;
}

/** Returns when each step starts and ends at the latest if every step takes all of its stated timeout. */
function computeLatestTimes(
  { steps, defaults }: CoordinationPlan,
  { wiring, order }: TimingCheck,
): Map<number, StepTimes> {
  const times = new Map<number, StepTimes>();
  const finishOf = (node: number): number => times.get(node)?.finishMs ?? 0;
  for (const node of order.order) {
    const after = findLastNeededDependency(
      wiring.dependencies[node] ?? [],
      wiring.fanIns[node]?.count ?? 0,
      finishOf,
    );
    const startMs = after === undefined ? 0 : finishOf(after);
    const timeoutMs = steps[node]?.timeoutMs ?? defaults?.timeoutMs ?? 0;
    times.set(node, { after, startMs, finishMs: startMs + timeoutMs });
  }
  return times;
}

/** Finds, among the dependencies that suffice and finish first, the one that finishes last. */
function findLastNeededDependency(
  dependencies: readonly number[],
  count: number,
  finishOf: (node: number) => number,
): number | undefined {
  if (count >= dependencies.length) return findLatestNode(dependencies, finishOf);
  return dependencies.toSorted((a, b) => finishOf(a) - finishOf(b) || a - b)[Math.max(count, 1) - 1];
}

function findLatestNode(nodes: readonly number[], finishOf: (node: number) => number): number | undefined {
  const [first] = nodes;
  if (first === undefined) return undefined;
  return nodes.reduce((latest, node) => (finishOf(node) > finishOf(latest) ? node : latest), first);
}

/** Returns the steps that make the last one end so late, from the first on. */
function traceChain(end: number, times: ReadonlyMap<number, StepTimes>): number[] {
  const chain: number[] = [];
  for (let node: number | undefined = end; node !== undefined; node = times.get(node)?.after)
    chain.push(node);
  return chain.toReversed();
}
