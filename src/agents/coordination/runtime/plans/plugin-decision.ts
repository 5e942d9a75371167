/**
 * Owns: whether plugins of other authors let a plan begin, and how sure they are of it. Fails closed: who is late or fails says no.
 *
 * A plan that is in the ledger already was decided on: it is not asked about again.
 */
import { addMs } from "../../contracts/ids.ts";
import type { PlanProblem } from "../../plan/plan-problem.ts";
import type { StepGraph } from "../../plan/step-graph.ts";
import { waitWithin } from "../../std/wait-for.ts";
import type { PlanSubmission } from "./plan-requests.ts";
import type { DecisionAnswer, PluginDecision } from "../environment/plugin-hooks.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/** A plugin's own budget is at most this. */
const DECIDE_MS = 10_000;

/** A plugin that was loaded again meanwhile is waited for a little longer. */
const GRACE_MS = 4_000;

type PluginDecisionDependencies = Pick<RuntimeDependencies, "hooks" | "clock" | "runs">;

export type PlanDecided =
  | { readonly kind: "allowed"; readonly confidence?: number }
  | { readonly kind: "denied"; readonly problem: PlanProblem };

/**
 * Asks the plugins whether a plan may begin, and returns that it is allowed, with their confidence, or the problem for
 * which it is denied. A plan that is in the ledger already is allowed without asking, as is any plan where no plugin
 * decides.
 */
export async function askPluginsAboutPlan(
  dependencies: PluginDecisionDependencies,
  { ownerAgent }: PlanSubmission,
  graph: StepGraph,
): Promise<PlanDecided> {
  const { coordinationId, ownerSession, confidence, steps } = graph;
  if (!dependencies.hooks?.hasAny("decide")) return { kind: "allowed" };
  if ((await dependencies.runs.state(coordinationId)).kind !== "unopened") return { kind: "allowed" };
  const answer = await awaitPluginDecision(dependencies, {
    kind: "plan",
    agentId: ownerAgent,
    sourceSession: ownerSession,
    coordinationId,
    steps: steps.length,
    agents: [...new Set(steps.map(({ agent }) => agent))],
    ...(confidence !== undefined && { confidence }),
  });
  if (answer?.action === "deny")
    return {
      kind: "denied",
      problem: { path: "(root)", code: "DENIED_BY_PLUGIN", message: answer.reason },
    };
  return { kind: "allowed", ...(answer?.confidence !== undefined && { confidence: answer.confidence }) };
}

/**
 * Returns the lower of two confidences, of the planner and of the plugins; the one that is given where the other is
 * not.
 */
export function takeLowerConfidence(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

async function awaitPluginDecision(
  { hooks, clock }: PluginDecisionDependencies,
  decision: PluginDecision,
): Promise<DecisionAnswer | undefined> {
  const deny = (reason: string): DecisionAnswer => ({ action: "deny", reason });
  const late = deny("the plugins that decide about plans did not answer in time");
  try {
    const answer = Promise.resolve(hooks?.decide(decision, addMs(clock.now(), DECIDE_MS)));
    return await waitWithin(clock, DECIDE_MS + GRACE_MS, answer, late);
  } catch {
    return deny("a plugin that decides about plans failed");
  }
}
