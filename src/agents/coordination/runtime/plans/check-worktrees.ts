/** Owns: whether the steps of a plan that ask for a worktree can have one. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { PlanProblem } from "../../plan/plan-problem.ts";
import type { CoordinationPlan } from "../../contracts/plan.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/**
 * Returns a problem for each step that asks for a worktree and cannot have one, `planProblemsMax` at most; empty for a
 * plan in the ledger already, as folders may have changed since. A folder is looked at once.
 */
export async function checkWorktrees(
  { worktrees, folderOf, runs }: RuntimeDependencies,
  { coordinationId, steps }: CoordinationPlan,
): Promise<PlanProblem[]> {
  if (!steps.some(({ isolate }) => isolate)) return [];
  if ((await runs.state(coordinationId)).kind !== "unopened") return [];
  const obstacles = new Map<string, string | undefined>();
  const problems: PlanProblem[] = [];
  for (const [index, { agent, isolate }] of steps.entries()) {
    if (!isolate || problems.length >= BOUNDS.planProblemsMax) continue;
    const folder = folderOf(agent);
    if (!obstacles.has(folder)) obstacles.set(folder, await worktrees.findObstacle(folder));
    const message = obstacles.get(folder);
    if (message !== undefined)
      problems.push({ path: `steps[${index}].isolate`, code: "WORKTREE_UNAVAILABLE", message });
  }
  return problems;
}
