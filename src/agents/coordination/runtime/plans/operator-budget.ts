/**
 * Owns: what the operator's budget of a coordination of spawns leaves to a plan that one of its children submits. Where the child
 * could spawn nobody, it can plan nothing either; else the plan may use what neither sessions nor other plans there may use.
 */
import type { StepId } from "../../contracts/ids.ts";
import type { UsageTotals } from "../../contracts/usage.ts";
import { explainBudgetStop, findReachedBudget } from "../../dispatch/decide-budget.ts";
import { isAnyKindUsedUp, cutBudget, mapBudget } from "../../dispatch/plan-rules.ts";
import { countTokens, NO_USAGE } from "../../ledger/bill.ts";
import { findSessionAgent } from "../../ledger/evolve-usage.ts";
import { addSpent, NOTHING_SPENT, spentFromUsage } from "../../ledger/plan-progress.ts";
import type { KnownCoordination, SpentBudget } from "../../ledger/state.ts";
import { nameNestedPlanReference } from "../../ledger/summary.ts";
import type { NestedDependencies } from "../attempts/nested-plans.ts";
import { createNowhere, type PlanPlace } from "./plan-place.ts";

/** The newest plans of one step that are counted. */
const PLANS_MAX = 20;

/**
 * Returns the place of a nested plan with its budget cut to what the operator's leaves there, as far as the log says
 * what was used; a place of the kind `nowhere` where nothing is left, and any other place as it is.
 */
export async function limitByOperatorBudget(
  dependencies: NestedDependencies,
  place: PlanPlace,
): Promise<PlanPlace> {
  if (place.kind !== "inside") return place;
  const { coordinationId, stepId } = place.parent;
  const state = await dependencies.runs.state(coordinationId);
  if (state.kind === "unopened" || !state.created.budget) return place;
  const reached = findReachedBudget(state, { stepId, stopped: "spawn" });
  if (reached) return createNowhere("NESTED_BUDGET", explainBudgetStop(reached));
  const plans = await listPlansInside(dependencies, state);
  const budget = cutBudget(computeLeftOfBudget(state, plans), computeLeftToAgent(state, plans, stepId)) ?? {};
  if (isAnyKindUsedUp(budget)) return createNowhere("NESTED_BUDGET", LENT);
  return { ...place, left: cutBudget(place.left, budget) ?? {} };
}

const LENT =
  "the operator's budget of this coordination is used up, or plans of other children may use the rest; do the work in this session";

/** Lists the newest plan of each attempt of each step, which says what those before it used. */
async function listPlansInside(
  { store, runs }: NestedDependencies,
  { coordinationId, steps }: KnownCoordination,
): Promise<KnownCoordination[]> {
  const newest = new Map<string, KnownCoordination>();
  for (const stepId of steps.keys())
    for (const runId of await store.holders(nameNestedPlanReference(coordinationId, stepId), PLANS_MAX)) {
      const state = await runs.state(runId);
      if (state.kind === "unopened") continue;
      const attempt = `${stepId} ${state.created.parent?.attempt ?? 1}`;
      if (!newest.has(attempt)) newest.set(attempt, state);
    }
  return [...newest.values()];
}

/** The amounts that are left of each limit that a budget sets. */
type RemainingBudget = ReturnType<typeof mapBudget>;

function computeLeftOfBudget(
  { created, bill }: KnownCoordination,
  plans: readonly KnownCoordination[],
): RemainingBudget {
  const used = addSpent(createSpent(bill.total, bill.spawnCount), sumUseOfPlans(plans));
  return mapBudget(created.budget, (limit, name) => limit - used[name]);
}

/** Computes what is left of the part of the agent whose session submits the plan. */
function computeLeftToAgent(
  state: KnownCoordination,
  plans: readonly KnownCoordination[],
  submitter: StepId,
): RemainingBudget {
  const { created, bill } = state;
  const agentId = findSessionAgent(state, submitter);
  if (agentId === undefined) return {};
  const limits = created.budget?.agents?.[agentId];
  if (!limits) return {};
  const ofAgent = plans.filter(
    ({ created: { parent } }) => parent && findSessionAgent(state, parent.stepId) === agentId,
  );
  const bySessions = createSpent(bill.agents.get(agentId) ?? NO_USAGE, bill.spawns.get(agentId) ?? 0);
  const used = addSpent(bySessions, sumUseOfPlans(ofAgent));
  return mapBudget(limits, (limit, name) => limit - used[name]);
}

function createSpent(totals: UsageTotals, spawns: number): SpentBudget {
  return { spawns, tokens: countTokens(totals), costMicroUsd: totals.costMicroUsd };
}

function sumUseOfPlans(plans: readonly KnownCoordination[]): SpentBudget {
  return plans.map(countUseOfPlan).reduce(addSpent, NOTHING_SPENT);
}

/** Counts what a plan and those before it used; of one at work, what it may use since people last allowed it to go on. */
function countUseOfPlan({ kind, created, plan }: KnownCoordination): SpentBudget {
  const before = spentFromUsage(created.parent?.usedBefore);
  const used = plan?.spent ?? NOTHING_SPENT;
  if (kind === "ended") return addSpent(before, used);
  const most = addSpent(plan?.allowedFrom ?? NOTHING_SPENT, spentFromUsage(created.plan?.budget));
  return addSpent(before, {
    spawns: Math.max(used.spawns, most.spawns),
    tokens: Math.max(used.tokens, most.tokens),
    costMicroUsd: Math.max(used.costMicroUsd, most.costMicroUsd),
  });
}
