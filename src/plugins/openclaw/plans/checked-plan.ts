/** Owns: what is told of a plan that was checked: everything that is wrong with it, or its size and shape. */
import { laneSchema } from "../../../agents/coordination/contracts/envelope.ts";
import { checkNewPlan } from "../../../agents/coordination/plan/check-new-plan.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { StepGraph } from "../../../agents/coordination/plan/step-graph.ts";

type CheckedPlan =
  | { readonly ok: true; readonly problems: readonly []; readonly summary: PlanSummary }
  | { readonly ok: false; readonly problems: readonly PlanProblem[] };

type PlanSummary = ReturnType<typeof summarizePlan>;

/**
 * Checks a plan without running it, and returns its size and shape, or what is wrong with it, up to a bound.
 * `timeoutMs` is for steps to which the plan gives none.
 */
export function checkPlanInput(plan: unknown, timeoutMs?: number): CheckedPlan {
  const checked = checkNewPlan(plan, timeoutMs === undefined ? {} : { timeoutMs });
  if (checked.kind === "refused") return { ok: false, problems: checked.problems };
  return { ok: true, problems: [], summary: summarizePlan(checked.graph) };
}

/**
 * Returns the size and shape of a checked plan: its steps, dependencies, depth, critical path, and steps for each
 * lane.
 */
export function summarizePlan({ coordinationId, steps, depth, criticalPathMs, criticalPath }: StepGraph) {
  const lanes = Object.fromEntries(
    laneSchema.options.map((lane) => [lane, steps.filter((step) => step.lane === lane).length]),
  );
  const dependencies = steps.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
  return { coordinationId, steps: steps.length, dependencies, depth, criticalPathMs, criticalPath, lanes };
}
