/** Owns: the rules about a running plan that both deciding and planning use. */
import { laneSchema } from "../contracts/envelope.ts";
import type { SpendingLimit, Usage } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { OpenCoordination, PlanProgress, SpentBudget, Step } from "../ledger/state.ts";
import { addSpent, isDelivery, NOTHING_SPENT, spentFromUsage } from "../ledger/plan-progress.ts";

export type PlannedCoordination = OpenCoordination & { readonly plan: PlanProgress };

/** True when the coordination runs a plan, rather than observing spawns. */
export function isPlanned(state: OpenCoordination): state is PlannedCoordination {
  return state.plan !== undefined;
}

export type StopReason = Exclude<FactPayloads["step.skipped"]["because"], "dependency">;

/** Returns why no further step of the plan begins; its delivery still does. `undefined` while the plan runs. */
export function findStopReason(
  { cancelledBy, plan, created }: Pick<PlannedCoordination, "cancelledBy" | "plan" | "created">,
  now: EpochMs,
): StopReason | undefined {
  if (cancelledBy) return "cancelled";
  if (plan.stop) return plan.stop;
  const deadlineAtMs = created.plan?.deadlineAtMs;
  return deadlineAtMs !== undefined && now >= deadlineAtMs ? "deadline" : undefined;
}

/**
 * True when the reason for which a plan stopped also stops attempts under way: it was cancelled or fails fast. At the
 * deadline of the plan the attempts time out by themselves.
 */
export function mustStopRunningAttempts(reason: StopReason | undefined): boolean {
  return reason === "cancelled" || reason === "fail_fast";
}

/**
 * True for the step that delivers the plan's result, which begins even after a stop to report it. Only the end of the
 * attempt whose agent submitted the plan stops it: that agent must be told nothing any more.
 */
export function isBeyondStop({ cancelledBy }: PlannedCoordination, step: Step): boolean {
  return isDelivery(step) && cancelledBy !== "parent";
}

/** True when a step that runs is to be stopped, because it or the whole plan was cancelled or the plan fails fast. */
export function mustStopStep(state: PlannedCoordination, step: Step, now: EpochMs): boolean {
  if (isBeyondStop(state, step)) return false;
  return step.cancelledBy !== undefined || mustStopRunningAttempts(findStopReason(state, now));
}

/**
 * Returns the name of the limit of the plan's budget that is reached since people last allowed the plan to go on;
 * `undefined` where none is, or no step waits to begin.
 */
export function findReachedPlanLimit(
  state: PlannedCoordination,
  now: EpochMs,
): keyof SpendingLimit | undefined {
  const budget = state.created.plan?.budget;
  if (!budget || !hasWorkToBegin(state)) return undefined;
  const { allowedFromMs } = state.plan;
  if (budget.wallMs !== undefined && now - allowedFromMs >= budget.wallMs) return "wallMs";
  return findFirstReachedLimit(computeUseSinceAllowed(state.plan), budget);
}

/** Returns what the plan used since people last allowed it to go on. */
export function computeUseSinceAllowed({ spent, allowedFrom }: PlanProgress): SpentBudget {
  return {
    spawns: spent.spawns - allowedFrom.spawns,
    tokens: spent.tokens - allowedFrom.tokens,
    costMicroUsd: spent.costMicroUsd - allowedFrom.costMicroUsd,
  };
}

/** The kinds of use that are counted; time is none of them. */
const COUNTED = ["spawns", "tokens", "costMicroUsd"] as const;

/**
 * Returns the name of the first limit (spawns, tokens or cost) of a budget that the use has reached; `undefined` where
 * none is.
 */
export function findFirstReachedLimit(used: SpentBudget, budget: Usage): keyof SpentBudget | undefined {
  return COUNTED.find((name) => used[name] >= (budget[name] ?? Number.POSITIVE_INFINITY));
}

/**
 * Returns a new budget with a computed amount in place of each limit of spawns, tokens or cost that the given one
 * sets; a limit of time is left out.
 */
export function mapBudget(
  budget: Usage | undefined,
  compute: (limit: number, name: keyof SpentBudget) => number,
): Usage {
  const amounts: Usage = {};
  for (const name of COUNTED) {
    const limit = budget?.[name];
    if (limit !== undefined) amounts[name] = compute(limit, name);
  }
  return amounts;
}

/**
 * Returns a new budget whose limits of spawns, tokens and cost are cut to what is left, also those that it does not
 * set itself; `undefined` where nothing limits it.
 */
export function cutBudget(budget: SpendingLimit | undefined, left: SpendingLimit): SpendingLimit | undefined {
  const cut: SpendingLimit = { ...budget };
  for (const name of COUNTED) {
    const most = Math.min(cut[name] ?? Infinity, left[name] ?? Infinity);
    if (most < Infinity) cut[name] = most;
  }
  return Object.keys(cut).length > 0 ? cut : undefined;
}

/**
 * Lists the loans of budget that are set aside for plans of the agents of running attempts. The end of an attempt
 * books what they used, so its loan counts until then.
 */
export function listLoans({ plan, steps }: PlannedCoordination): FactPayloads["budget.lent"][] {
  return plan.running.toArray().flatMap((stepId) => {
    const { loan, phase } = steps.get(stepId) ?? {};
    return loan && loan.attempt === phase?.attempt ? [{ stepId, ...loan }] : [];
  });
}

/**
 * Returns the sum of all loans of budget to plans of running attempts' agents, without the loan of one step where
 * `except` names it.
 */
export function sumLoans(state: PlannedCoordination, except?: StepId): SpentBudget {
  return listLoans(state)
    .filter(({ stepId }) => stepId !== except)
    .reduce((sum, { budget }) => addSpent(sum, spentFromUsage(budget)), NOTHING_SPENT);
}

/**
 * True while plans of this plan's agents may use all that is left of some kind of its budget: nothing begins until one
 * of their attempts has ended, or gives budget back. It may be used or not, so nobody is asked and the plan is not
 * stopped.
 */
export function isBudgetRestLent(state: PlannedCoordination): boolean {
  const budget = state.created.plan?.budget;
  if (!budget) return false;
  const lent = sumLoans(state);
  return (
    COUNTED.some((name) => lent[name] > 0) &&
    findFirstReachedLimit(addSpent(computeUseSinceAllowed(state.plan), lent), budget) !== undefined
  );
}

/**
 * Returns what the budgets of a step and of its plan leave to a plan that the step's agent submits, whose loan
 * replaces the one before it; an empty object where nothing limits it.
 */
export function computeBudgetLeft(
  state: OpenCoordination,
  { spec, spent = NOTHING_SPENT }: Step,
  usedBefore: SpentBudget,
): SpendingLimit {
  const ofStep = subtractUseFromBudget(spec.planned?.budget, addSpent(spent, usedBefore));
  if (!isPlanned(state)) return ofStep;
  const used = addSpent(
    computeUseSinceAllowed(state.plan),
    addSpent(usedBefore, sumLoans(state, spec.stepId)),
  );
  return cutBudget(ofStep, subtractUseFromBudget(state.created.plan?.budget, used)) ?? {};
}

function subtractUseFromBudget(budget: Usage | undefined, used: SpentBudget): Usage {
  return mapBudget(budget, (limit, name) => limit - used[name]);
}

/** True when what is left of a budget is zero or less for at least one of the kinds that it limits. */
export function isAnyKindUsedUp(left: Usage): boolean {
  return findFirstReachedLimit(NOTHING_SPENT, left) !== undefined;
}

/**
 * True when a step of the plan, other than its delivery, waits for dependencies, people or a retry: it would be
 * skipped when the plan stops.
 */
export function hasIdleSteps({ plan, steps }: PlannedCoordination): boolean {
  const isOfPlan = (stepId: StepId): boolean =>
    stepId !== DELIVERY_STEP_ID && steps.get(stepId)?.spec.planned !== undefined;
  return plan.waits.some((_, stepId) => isOfPlan(stepId)) || plan.timed.some(isOfPlan);
}

/**
 * True when a step of the plan is ready to begin, or it or a spawn of an agent waits for its next attempt. The
 * delivery does not count: it costs the plan nothing, and no limit holds it back.
 */
export function hasWorkToBegin({ plan, steps }: PlannedCoordination): boolean {
  const isWork = (stepId: StepId): boolean => stepId !== DELIVERY_STEP_ID;
  return (
    laneSchema.options.some((lane) => plan.ready[lane].some((_, stepId) => isWork(stepId))) ||
    plan.timed.some((stepId) => isWork(stepId) && steps.get(stepId)?.phase.status === "backoff")
  );
}

/**
 * True when all steps of the plan are admitted and have ended, no stray child or worktree is left, and no session
 * waits to be told something.
 */
export function isWorkedOff(state: PlannedCoordination): boolean {
  const { plan, openSteps, created, worktrees } = state;
  const isLeftBehind = plan.strays.size > 0 || worktrees.size > 0;
  const isDone = openSteps.size === 0 && !isLeftBehind && !hasAwaitedTellings(state);
  return plan.admitted === created.plan?.steps && isDone;
}

/**
 * True while sessions of the plan wait to be told something; false once the plan was cancelled with the attempt whose
 * agent submitted it, for which nobody waits.
 */
export function hasAwaitedTellings({ tellings, cancelledBy }: PlannedCoordination): boolean {
  return tellings.size > 0 && cancelledBy !== "parent";
}

/** True while people are asked about the whole plan: about its budget, or whether to carry it out. */
export function hasQuestionAboutPlan({ plan }: PlannedCoordination): boolean {
  return plan.budgetQuestion !== undefined || plan.decisionQuestion !== undefined;
}

/**
 * True while the plan waits for people, or for plans of its agents that may use the rest of its budget: then only its
 * delivery begins.
 */
export function isPlanHeldBack(state: PlannedCoordination): boolean {
  return hasQuestionAboutPlan(state) || isBudgetRestLent(state);
}

/** True when the plan has stopped, has spent its budget or waits: then only its delivery begins. */
export function hasStoppedBeginning(state: PlannedCoordination, now: EpochMs): boolean {
  return (
    isPlanHeldBack(state) ||
    findStopReason(state, now) !== undefined ||
    findReachedPlanLimit(state, now) !== undefined
  );
}
