/** Owns: the rules about a running plan that both deciding and planning use. */
import { laneSchema } from "../contracts/envelope.ts";
import type { SpendingLimit } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { OpenCoordination, PlanProgress, Spent, Step } from "../ledger/state.ts";
import { isDelivery } from "../ledger/plan-progress.ts";

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
  const { spent, allowedFrom, allowedFromMs } = state.plan;
  const used: Spent = {
    spawns: spent.spawns - allowedFrom.spawns,
    tokens: spent.tokens - allowedFrom.tokens,
    costMicroUsd: spent.costMicroUsd - allowedFrom.costMicroUsd,
  };
  if (budget.wallMs !== undefined && now - allowedFromMs >= budget.wallMs) return "wallMs";
  return limitIn(used, budget);
}

/** Returns the first limit of a budget that was reached. */
export function limitIn(
  used: Spent,
  budget: Partial<Record<keyof Spent, number | undefined>>,
): keyof Spent | undefined {
  const limits = ["spawns", "tokens", "costMicroUsd"] as const;
  return limits.find((name) => used[name] >= (budget[name] ?? Number.POSITIVE_INFINITY));
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
  const { plan, openSteps, created, tellings, worktrees } = state;
  const isLeftBehind = plan.strays.size > 0 || worktrees.size > 0;
  const isDone = openSteps.size === 0 && !isLeftBehind && tellings.size === 0;
  return plan.admitted === created.plan?.steps && isDone;
}

/** True when the plan has stopped, has spent its budget or waits for people: then only its delivery begins. */
export function hasStoppedBeginning(state: PlannedCoordination, now: EpochMs): boolean {
  const { budgetQuestion, decisionQuestion } = state.plan;
  const isAsked = budgetQuestion !== undefined || decisionQuestion !== undefined;
  return isAsked || stopOf(state, now) !== undefined || findReachedLimit(state, now) !== undefined;
}
