/** Owns: the questions about a running plan that both deciding and planning ask. */
import { laneSchema } from "../contracts/envelope.ts";
import type { SpendingLimit } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { OpenCoordination, PlanProgress, Spent, Step } from "../ledger/state.ts";
import { isDelivery } from "../ledger/plan-progress.ts";

export type PlannedCoordination = OpenCoordination & { readonly plan: PlanProgress };

export function isPlanned(state: OpenCoordination): state is PlannedCoordination {
  return state.plan !== undefined;
}

export type StopReason = Exclude<FactPayloads["step.skipped"]["because"], "dependency">;

/** Why nothing more of the plan begins. Its delivery does begin then. */
export function stopOf(
  { cancelledBy, plan, created }: PlannedCoordination,
  now: EpochMs,
): StopReason | undefined {
  if (cancelledBy) return "cancelled";
  if (plan.stop) return plan.stop;
  const deadlineAtMs = created.plan?.deadlineAtMs;
  return deadlineAtMs !== undefined && now >= deadlineAtMs ? "deadline" : undefined;
}

/** Whether a stopped plan stops the work under way, too; at its deadline the attempts time out by themselves. */
export function stopsRunning(reason: StopReason | undefined): boolean {
  return reason === "cancelled" || reason === "fail_fast";
}

/** Whether the step, rather than the whole plan, is to be stopped while it runs. */
export function isToStop(state: PlannedCoordination, step: Step, now: EpochMs): boolean {
  if (isDelivery(step)) return false;
  return step.cancelledBy !== undefined || stopsRunning(stopOf(state, now));
}

/** Which limit of the plan's budget is reached, as far as something waits to begin. */
export function reachedLimit(state: PlannedCoordination, now: EpochMs): keyof SpendingLimit | undefined {
  const budget = state.created.plan?.budget;
  if (!budget || !wantsToBegin(state)) return undefined;
  const { spent, allowedFrom, allowedFromMs } = state.plan;
  const used: Spent = {
    spawns: spent.spawns - allowedFrom.spawns,
    tokens: spent.tokens - allowedFrom.tokens,
    costMicroUsd: spent.costMicroUsd - allowedFrom.costMicroUsd,
  };
  if (budget.wallMs !== undefined && now - allowedFromMs >= budget.wallMs) return "wallMs";
  return limitIn(used, budget);
}

export function limitIn(
  used: Spent,
  budget: Partial<Record<keyof Spent, number | undefined>>,
): keyof Spent | undefined {
  const limits = ["spawns", "tokens", "costMicroUsd"] as const;
  return limits.find((name) => used[name] >= (budget[name] ?? Number.POSITIVE_INFINITY));
}

/** Whether a step of the plan is idle and would be skipped when the plan stops. */
export function hasIdleSteps({ plan, steps }: PlannedCoordination): boolean {
  const isOfPlan = (stepId: StepId): boolean =>
    stepId !== DELIVERY_STEP_ID && steps.get(stepId)?.spec.planned !== undefined;
  return plan.waits.some((_, stepId) => isOfPlan(stepId)) || plan.timed.some(isOfPlan);
}

/** Telling the owner costs the plan nothing, and no limit holds it back. */
export function wantsToBegin({ plan, steps }: PlannedCoordination): boolean {
  const isWork = (stepId: StepId): boolean => stepId !== DELIVERY_STEP_ID;
  return (
    laneSchema.options.some((lane) => plan.ready[lane].some((_, stepId) => isWork(stepId))) ||
    plan.timed.some((stepId) => isWork(stepId) && steps.get(stepId)?.phase.status === "backoff")
  );
}

/** All steps of the plan are admitted and have ended, whatever came of them, and nobody waits to be told something. */
export function isWorkedOff({ plan, openSteps, created, tellings }: PlannedCoordination): boolean {
  const isDone = openSteps.size === 0 && plan.strays.size === 0 && tellings.size === 0;
  return plan.admitted === created.plan?.steps && isDone;
}

/** Whether the plan has stopped, or waits for people: then nothing of it begins but its delivery. */
export function beginsNothing(state: PlannedCoordination, now: EpochMs): boolean {
  const { budgetQuestion, decisionQuestion } = state.plan;
  const isAsked = budgetQuestion !== undefined || decisionQuestion !== undefined;
  return isAsked || stopOf(state, now) !== undefined || reachedLimit(state, now) !== undefined;
}
