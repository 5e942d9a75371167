/** Owns: the rules about a running plan that both deciding and planning use. */
import { laneSchema } from "../contracts/envelope.ts";
import type { SpendingLimit, Usage } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { OpenCoordination, PlanProgress, Spent, Step } from "../ledger/state.ts";
import { addSpent, isDelivery, NOTHING_SPENT, spentFromUsage } from "../ledger/plan-progress.ts";

export type PlannedCoordination = OpenCoordination & { readonly plan: PlanProgress };

/** True when the coordination runs a plan, rather than observing spawns. */
export function isPlanned(state: OpenCoordination): state is PlannedCoordination {
  return state.plan !== undefined;
}

export type StopReason = Exclude<FactPayloads["step.skipped"]["because"], "dependency">;

/** Returns why no further step of the plan begins; its delivery still does. `undefined` while the plan runs. */
export function stopOf(
  { cancelledBy, plan, created }: PlannedCoordination,
  now: EpochMs,
): StopReason | undefined {
  if (cancelledBy) return "cancelled";
  if (plan.stop) return plan.stop;
  const deadlineAtMs = created.plan?.deadlineAtMs;
  return deadlineAtMs !== undefined && now >= deadlineAtMs ? "deadline" : undefined;
}

/** True when the stop also stops attempts under way. At the deadline of the plan the attempts time out by themselves. */
export function canStopRunning(reason: StopReason | undefined): boolean {
  return reason === "cancelled" || reason === "fail_fast";
}

/**
 * True for the delivery, which reports how the plan was stopped. Only the end of the attempt whose agent submitted the plan stops
 * it: that agent must be told nothing any more.
 */
export function isBeyondStop({ cancelledBy }: PlannedCoordination, step: Step): boolean {
  return isDelivery(step) && cancelledBy !== "parent";
}

/** True when the step must be stopped while it runs, alone or with the whole plan. */
export function mustStop(state: PlannedCoordination, step: Step, now: EpochMs): boolean {
  if (isBeyondStop(state, step)) return false;
  return step.cancelledBy !== undefined || canStopRunning(stopOf(state, now));
}

/** Finds the limit of the plan's budget that is reached. `undefined` where no step waits to begin. */
export function findReachedLimit(state: PlannedCoordination, now: EpochMs): keyof SpendingLimit | undefined {
  const budget = state.created.plan?.budget;
  if (!budget || !hasWorkToBegin(state)) return undefined;
  const { allowedFromMs } = state.plan;
  if (budget.wallMs !== undefined && now - allowedFromMs >= budget.wallMs) return "wallMs";
  return limitIn(countUsed(state.plan), budget);
}

/** Counts what the plan used since people last allowed it to go on. */
export function countUsed({ spent, allowedFrom }: PlanProgress): Spent {
  return {
    spawns: spent.spawns - allowedFrom.spawns,
    tokens: spent.tokens - allowedFrom.tokens,
    costMicroUsd: spent.costMicroUsd - allowedFrom.costMicroUsd,
  };
}

/** The kinds of use that are counted; time is none of them. */
const COUNTED = ["spawns", "tokens", "costMicroUsd"] as const;

/** Returns the first limit of a budget that was reached. */
export function limitIn(used: Spent, budget: Usage): keyof Spent | undefined {
  return COUNTED.find((name) => used[name] >= (budget[name] ?? Number.POSITIVE_INFINITY));
}

/** Computes an amount of each kind that the budget counts. */
export function mapBudget(
  budget: Usage | undefined,
  compute: (limit: number, name: keyof Spent) => number,
): Usage {
  const amounts: Usage = {};
  for (const name of COUNTED) {
    const limit = budget?.[name];
    if (limit !== undefined) amounts[name] = compute(limit, name);
  }
  return amounts;
}

/** A budget within another one: no more than either allows. */
export function limitBudget(
  budget: SpendingLimit | undefined,
  left: SpendingLimit,
): SpendingLimit | undefined {
  const cut: SpendingLimit = { ...budget };
  for (const name of COUNTED) {
    const most = Math.min(cut[name] ?? Infinity, left[name] ?? Infinity);
    if (most < Infinity) cut[name] = most;
  }
  return Object.keys(cut).length > 0 ? cut : undefined;
}

/** Lists what is set aside for plans inside. The end of an attempt books what they used, so its loan counts until then. */
export function listLoans({ plan, steps }: PlannedCoordination): FactPayloads["budget.lent"][] {
  return plan.running.toArray().flatMap((stepId) => {
    const { loan, phase } = steps.get(stepId) ?? {};
    return loan && loan.attempt === phase?.attempt ? [{ stepId, ...loan }] : [];
  });
}

/** Sums what is set aside for plans inside, but for those of one step. */
export function sumLent(state: PlannedCoordination, except?: StepId): Spent {
  return listLoans(state)
    .filter(({ stepId }) => stepId !== except)
    .reduce((sum, { budget }) => addSpent(sum, spentFromUsage(budget)), NOTHING_SPENT);
}

/**
 * True while plans inside may use the rest of the budget: nothing begins until one of their attempts has ended, or gives budget back.
 * It may be used or not, so nobody is asked and the plan is not stopped.
 */
export function isRestLent(state: PlannedCoordination): boolean {
  const budget = state.created.plan?.budget;
  if (!budget) return false;
  const lent = sumLent(state);
  return (
    COUNTED.some((name) => lent[name] > 0) &&
    limitIn(addSpent(countUsed(state.plan), lent), budget) !== undefined
  );
}

/** Returns what the budgets of the step and of its plan leave to a plan inside, whose loan replaces the one before it. */
export function computeBudgetLeft(
  state: OpenCoordination,
  { spec, spent = NOTHING_SPENT }: Step,
  usedBefore: Spent,
): SpendingLimit {
  const ofStep = subtractUsed(spec.planned?.budget, addSpent(spent, usedBefore));
  if (!isPlanned(state)) return ofStep;
  const used = addSpent(countUsed(state.plan), addSpent(usedBefore, sumLent(state, spec.stepId)));
  return limitBudget(ofStep, subtractUsed(state.created.plan?.budget, used)) ?? {};
}

function subtractUsed(budget: Usage | undefined, used: Spent): Usage {
  return mapBudget(budget, (limit, name) => limit - used[name]);
}

/** True where nothing is left of a kind. */
export function isNothingLeft(left: Usage): boolean {
  return limitIn(NOTHING_SPENT, left) !== undefined;
}

/** True when a step of the plan is idle and would be skipped when the plan stops. */
export function hasIdleSteps({ plan, steps }: PlannedCoordination): boolean {
  const isOfPlan = (stepId: StepId): boolean =>
    stepId !== DELIVERY_STEP_ID && steps.get(stepId)?.spec.planned !== undefined;
  return plan.waits.some((_, stepId) => isOfPlan(stepId)) || plan.timed.some(isOfPlan);
}

/** True when a step waits to begin. The delivery does not count: it costs the plan nothing, and no limit holds it back. */
export function hasWorkToBegin({ plan, steps }: PlannedCoordination): boolean {
  const isWork = (stepId: StepId): boolean => stepId !== DELIVERY_STEP_ID;
  return (
    laneSchema.options.some((lane) => plan.ready[lane].some((_, stepId) => isWork(stepId))) ||
    plan.timed.some((stepId) => isWork(stepId) && steps.get(stepId)?.phase.status === "backoff")
  );
}

/** True when all steps of the plan are admitted and have ended, with any outcome, nothing of them is left and no session waits to be told something. */
export function isWorkedOff(state: PlannedCoordination): boolean {
  const { plan, openSteps, created, worktrees } = state;
  const isLeftBehind = plan.strays.size > 0 || worktrees.size > 0;
  const isDone = openSteps.size === 0 && !isLeftBehind && !isTelling(state);
  return plan.admitted === created.plan?.steps && isDone;
}

/** True while sessions wait to be told something. Nobody waits any more for what ends with the attempt whose agent submitted the plan. */
export function isTelling({ tellings, cancelledBy }: PlannedCoordination): boolean {
  return tellings.size > 0 && cancelledBy !== "parent";
}

/** True while people are asked about the whole plan. */
export function isAsked({ plan }: PlannedCoordination): boolean {
  return plan.budgetQuestion !== undefined || plan.decisionQuestion !== undefined;
}

/** True while the plan waits for people, or for plans inside that may use the rest of its budget: then only its delivery begins. */
export function isHeldBack(state: PlannedCoordination): boolean {
  return isAsked(state) || isRestLent(state);
}

/** True when the plan has stopped, has spent its budget or waits: then only its delivery begins. */
export function hasStoppedBeginning(state: PlannedCoordination, now: EpochMs): boolean {
  return isHeldBack(state) || stopOf(state, now) !== undefined || findReachedLimit(state, now) !== undefined;
}
