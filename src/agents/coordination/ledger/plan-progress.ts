/**
 * Owns: what each event means for the progress of a plan. All of it follows from committed events (D6): a step is ready when
 * enough of its dependencies have completed, and doomed when too many never will.
 */
import { List, Map as ImmutableMap, OrderedMap, OrderedSet } from "immutable";
import type { Usage } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type EpochMs, type SessionKey, type StepId } from "../contracts/ids.ts";
import {
  isEnded,
  type OpenCoordination,
  type PlanProgress,
  type SpentBudget,
  type Step,
  type StrayRun,
} from "./state.ts";

export const NOTHING_SPENT: SpentBudget = { spawns: 0, tokens: 0, costMicroUsd: 0 };

/** Returns the progress of a plan of which no step is admitted and nothing is used; its time counts from `atMs`. */
export function createEmptyProgress(atMs: EpochMs): PlanProgress {
  return {
    admitted: 0,
    ready: { control: OrderedMap(), data: OrderedMap(), escalation: OrderedMap() },
    running: OrderedSet(),
    timed: OrderedSet(),
    doomed: OrderedSet(),
    waits: ImmutableMap(),
    dependents: ImmutableMap(),
    strays: OrderedMap(),
    hasExpired: false,
    spent: NOTHING_SPENT,
    allowedFrom: NOTHING_SPENT,
    allowedFromMs: atMs,
  };
}

/** True for the step that tells the owner how its plan ended. */
export function isDelivery({ spec }: Pick<Step, "spec">): boolean {
  return spec.stepId === DELIVERY_STEP_ID;
}

/**
 * Returns the plan's progress with an admitted step in it: ready, doomed, or waiting for its dependencies; unchanged
 * for a step of no plan.
 */
export function addAdmittedStep(
  plan: PlanProgress,
  { spec, admittedAtMs }: Step,
  steps: OpenCoordination["steps"],
): PlanProgress {
  const { stepId, planned } = spec;
  if (!planned) return plan;
  const wait = { met: 0, lost: 0 };
  let { dependents } = plan;
  for (const dependency of planned.dependsOn) {
    dependents = dependents.update(dependency, List<StepId>(), (others) => others.push(stepId));
    const phase = steps.get(dependency)?.phase;
    if (!phase || !isEnded(phase)) continue;
    if (phase.status === "completed") wait.met += 1;
    else wait.lost += 1;
  }
  const admitted = plan.admitted + (stepId === DELIVERY_STEP_ID ? 0 : 1);
  return placeWaitingStep({ ...plan, admitted, dependents }, { spec, planned, wait, atMs: admittedAtMs });
}

/**
 * Returns the state with a step no longer held by its planner's doubt (G2), because people approved it: ready where
 * enough of its dependencies are met.
 */
export function releaseApprovedStep(
  state: OpenCoordination,
  stepId: StepId,
  atMs: EpochMs,
): OpenCoordination {
  const step = state.steps.get(stepId);
  const wait = state.plan?.waits.get(stepId);
  if (!state.plan || !step?.spec.planned || !wait) return state;
  const { spec } = step;
  const approvedWaiting = { spec, planned: step.spec.planned, wait, atMs, isApproved: true };
  return { ...state, plan: placeWaitingStep(state.plan, approvedWaiting) };
}

interface WaitingStep {
  readonly spec: Step["spec"];
  readonly planned: NonNullable<Step["spec"]["planned"]>;
  readonly wait: { readonly met: number; readonly lost: number };
  readonly atMs: EpochMs;
  readonly isApproved?: boolean | undefined;
}

/** Puts a waiting step where it belongs: ready, doomed, or neither yet. */
function placeWaitingStep(
  plan: PlanProgress,
  { spec, planned, wait, atMs, isApproved }: WaitingStep,
): PlanProgress {
  const { stepId, lane } = spec;
  const waits = plan.waits.set(stepId, wait);
  if (wait.met >= planned.fanIn) {
    // G2: what its planner doubts is for people to begin.
    if (spec.decision && !isApproved) return { ...plan, waits };
    const ready = plan.ready[lane];
    if (ready.has(stepId)) return { ...plan, waits };
    return { ...plan, waits, ready: { ...plan.ready, [lane]: ready.set(stepId, atMs) } };
  }
  if (planned.dependsOn.length - wait.lost >= planned.fanIn) return { ...plan, waits };
  return { ...plan, waits, doomed: plan.doomed.add(stepId) };
}

/**
 * Returns the plan's progress after a step went from one phase to another: what waits for the step goes on or is
 * doomed, and a failure may stop the plan.
 */
export function updateAfterPhaseChange(
  state: OpenCoordination & { readonly plan: PlanProgress },
  { before, after, atMs }: { readonly before: Step; readonly after: Step; readonly atMs: EpochMs },
): PlanProgress {
  const { stepId } = after.spec;
  const moved = moveStepByPhase(state.plan, before, after);
  if (!isEnded(after.phase) || isEnded(before.phase)) return moved;
  const { status } = after.phase;
  const stopped = mustStopPlan(state, after)
    ? { ...moved, stop: moved.stop ?? ("fail_fast" as const) }
    : moved;
  const waitChange = status === "completed" ? { met: 1, lost: 0 } : { met: 0, lost: 1 };
  return (stopped.dependents.get(stepId) ?? List<StepId>()).reduce((plan, dependent) => {
    const wait = plan.waits.get(dependent);
    const waiting = state.steps.get(dependent);
    if (!wait || !waiting?.spec.planned) return plan;
    const { spec, isApproved } = waiting;
    const next = { met: wait.met + waitChange.met, lost: wait.lost + waitChange.lost };
    return placeWaitingStep(plan, { spec, planned: waiting.spec.planned, wait: next, atMs, isApproved });
  }, stopped);
}

/**
 * True when a step of the plan, other than its delivery, failed or timed out and the policy of the plan is to fail
 * fast.
 */
function mustStopPlan({ created }: OpenCoordination, { spec, phase }: Step): boolean {
  const isFailure = phase.status === "failed" || phase.status === "timed_out";
  return (
    isFailure &&
    spec.planned !== undefined &&
    spec.stepId !== DELIVERY_STEP_ID &&
    created.failurePolicy.timeoutPolicy === "fail_fast"
  );
}

/** Moves a step from the sets of its earlier phase to those of its new one. None goes back to waiting. */
function moveStepByPhase(
  plan: PlanProgress,
  { phase: before }: Step,
  { phase: after, spec }: Step,
): PlanProgress {
  const { stepId } = spec;
  const withoutWaiting =
    before.status === "waiting"
      ? {
          ...plan,
          ready: { ...plan.ready, [spec.lane]: plan.ready[spec.lane].remove(stepId) },
          doomed: plan.doomed.remove(stepId),
          waits: plan.waits.remove(stepId),
        }
      : plan;
  if (!spec.planned)
    return isEnded(after)
      ? { ...withoutWaiting, timed: withoutWaiting.timed.remove(stepId) }
      : withoutWaiting;
  const isAtWork = after.status === "dispatched" || after.status === "running";
  const isTimed = after.status === "backoff" || after.status === "blocked";
  return {
    ...withoutWaiting,
    running: isAtWork ? withoutWaiting.running.add(stepId) : withoutWaiting.running.remove(stepId),
    timed: isTimed ? withoutWaiting.timed.add(stepId) : withoutWaiting.timed.remove(stepId),
  };
}

/** Returns the sum of two amounts of spawns, tokens and cost. */
export function addSpent(a: SpentBudget, b: SpentBudget): SpentBudget {
  return {
    spawns: a.spawns + b.spawns,
    tokens: a.tokens + b.tokens,
    costMicroUsd: a.costMicroUsd + b.costMicroUsd,
  };
}

/** Returns the spawns, tokens and cost that a usage names, 0 for those that it does not name. */
export function spentFromUsage(usage: Usage | undefined): SpentBudget {
  return { spawns: usage?.spawns ?? 0, tokens: usage?.tokens ?? 0, costMicroUsd: usage?.costMicroUsd ?? 0 };
}

export const ONE_SPAWN: SpentBudget = { ...NOTHING_SPENT, spawns: 1 };

/**
 * Returns the state with what a step of the plan used added to the step and to the plan; unchanged for the delivery
 * and a step of no plan.
 */
export function addStepSpending(
  state: OpenCoordination,
  stepId: StepId,
  spent: SpentBudget,
): OpenCoordination {
  const step = state.steps.get(stepId);
  if (!state.plan || !step?.spec.planned || isDelivery(step)) return state;
  return {
    ...state,
    steps: state.steps.set(stepId, { ...step, spent: addSpent(step.spent ?? NOTHING_SPENT, spent) }),
    plan: { ...state.plan, spent: addSpent(state.plan.spent, spent) },
  };
}

/** Returns the plan's progress with use added that belongs to none of its steps. */
export function addPlanSpending(plan: PlanProgress, spent: SpentBudget): PlanProgress {
  return { ...plan, spent: addSpent(plan.spent, spent) };
}

/**
 * Returns the state with a spawn by a child of the plan added to the plan, and to the step that the child works on
 * where that is known. `count`: another amount than one spawn.
 */
export function addSpawnSpending(
  state: OpenCoordination & { readonly plan: PlanProgress },
  parentStepId: StepId | undefined,
  count = ONE_SPAWN,
): OpenCoordination {
  const parent = parentStepId && state.steps.get(parentStepId);
  if (parent?.spec.planned) return addStepSpending(state, parent.spec.stepId, count);
  return { ...state, plan: addPlanSpending(state.plan, count) };
}

/**
 * Returns the state without the spawn that its admission added to the plan, where the host made no child of it;
 * otherwise unchanged. Where people let the plan go on since, their budget counts from after that admission, and so
 * from one less now.
 */
export function takeSpawnOffPlan(
  state: OpenCoordination,
  { spec, admittedAtMs }: Step,
  { unspawned }: FactPayloads["step.failed"],
): OpenCoordination {
  if (!unspawned || !state.plan || spec.planned) return state;
  const counted = addSpawnSpending({ ...state, plan: state.plan }, spec.parentStepId, {
    ...NOTHING_SPENT,
    spawns: -1,
  });
  const { plan = state.plan } = counted;
  const { allowedFrom, allowedFromMs } = plan;
  if (allowedFrom.spawns === 0 || admittedAtMs > allowedFromMs) return counted;
  return { ...counted, plan: { ...plan, allowedFrom: { ...allowedFrom, spawns: allowedFrom.spawns - 1 } } };
}

/**
 * Returns the plan's progress with the child of an attempt that was given up at its deadline, which may still be at
 * work (D3); unchanged where no session of it is known.
 */
export function addStray(plan: PlanProgress, { spec, phase }: Step): PlanProgress {
  if (isDelivery({ spec }) || (phase.status !== "dispatched" && phase.status !== "running")) return plan;
  const session = phase.status === "running" ? phase.childSessionKey : phase.targetSession;
  if (!session) return plan;
  const { attempt, dispatchedAtMs, gateway } = phase;
  const stray: StrayRun = {
    stepId: spec.stepId,
    attempt,
    dispatchedAtMs,
    ...(phase.status === "running" && { childRunId: phase.childRunId }),
    ...(gateway !== undefined && { gateway }),
  };
  return { ...plan, strays: plan.strays.set(session, stray) };
}

/** Returns the plan's progress without a given-up attempt's child, once its session is stopped. */
export function removeStray(plan: PlanProgress, session: SessionKey): PlanProgress {
  return { ...plan, strays: plan.strays.remove(session) };
}

/**
 * Returns the plan's progress with an opened question about the whole plan noted, about its budget or whether to carry
 * it out; unchanged for any other question.
 */
export function updateAfterPlanQuestion(
  plan: PlanProgress,
  { escalationId, cause, stepId }: FactPayloads["coordination.escalated"],
): PlanProgress {
  if (stepId !== undefined) return plan;
  if (cause === "budget") return { ...plan, budgetQuestion: escalationId };
  return cause === "confidence" ? { ...plan, decisionQuestion: escalationId } : plan;
}

/**
 * Returns the plan's progress after a question was closed: one about the whole plan lets it go on or stops it; any
 * that expired is noted.
 */
export function updateAfterQuestionClosed(
  plan: PlanProgress,
  { escalationId, resolution }: FactPayloads["escalation.closed"],
  atMs: EpochMs,
): PlanProgress {
  const expired = resolution === "expired" ? { ...plan, hasExpired: true } : plan;
  if (plan.decisionQuestion === escalationId) {
    const { decisionQuestion: _, ...decided } = expired;
    // The time that people took to decide is none of the plan's.
    if (resolution === "approved") return { ...decided, allowedFromMs: atMs };
    return { ...decided, stop: decided.stop ?? "denied" };
  }
  if (plan.budgetQuestion !== escalationId) return expired;
  const { budgetQuestion: _, ...withoutQuestion } = expired;
  if (resolution === "continued" || resolution === "approved")
    return { ...withoutQuestion, allowedFrom: plan.spent, allowedFromMs: atMs };
  return { ...withoutQuestion, ...(!plan.stop && { stop: "budget" as const }) };
}
