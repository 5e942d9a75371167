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
  type Spent,
  type Step,
  type Stray,
} from "./state.ts";

export const NOTHING_SPENT: Spent = { spawns: 0, tokens: 0, costMicroUsd: 0 };

export function createProgress(atMs: EpochMs): PlanProgress {
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

export function isDelivery({ spec }: Pick<Step, "spec">): boolean {
  return spec.stepId === DELIVERY_STEP_ID;
}

export function addAdmission(
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

/** G2: people let a step begin although its planner doubts it. */
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

/** A step of the plan went from one phase to another. */
export function updateAfterPhase(
  state: OpenCoordination & { readonly plan: PlanProgress },
  { before, after, atMs }: { readonly before: Step; readonly after: Step; readonly atMs: EpochMs },
): PlanProgress {
  const { stepId } = after.spec;
  const moved = moveStep(state.plan, before, after);
  if (!isEnded(after.phase) || isEnded(before.phase)) return moved;
  const { status } = after.phase;
  const stopped = mustStopPlan(state, after)
    ? { ...moved, stop: moved.stop ?? ("fail_fast" as const) }
    : moved;
  const change = status === "completed" ? { met: 1, lost: 0 } : { met: 0, lost: 1 };
  return (stopped.dependents.get(stepId) ?? List<StepId>()).reduce((plan, dependent) => {
    const wait = plan.waits.get(dependent);
    const waiting = state.steps.get(dependent);
    if (!wait || !waiting?.spec.planned) return plan;
    const { spec, isApproved } = waiting;
    const next = { met: wait.met + change.met, lost: wait.lost + change.lost };
    return placeWaitingStep(plan, { spec, planned: waiting.spec.planned, wait: next, atMs, isApproved });
  }, stopped);
}

function mustStopPlan({ created }: OpenCoordination, { spec, phase }: Step): boolean {
  const isFailure = phase.status === "failed" || phase.status === "timed_out";
  return (
    isFailure &&
    spec.planned !== undefined &&
    spec.stepId !== DELIVERY_STEP_ID &&
    created.failurePolicy.timeoutPolicy === "fail_fast"
  );
}

/** Takes the step from where its phase before had it to where the one after has it. None goes back to waiting. */
function moveStep(plan: PlanProgress, { phase: before }: Step, { phase: after, spec }: Step): PlanProgress {
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

/** Returns the sum of two uses. */
export function addSpent(a: Spent, b: Spent): Spent {
  return {
    spawns: a.spawns + b.spawns,
    tokens: a.tokens + b.tokens,
    costMicroUsd: a.costMicroUsd + b.costMicroUsd,
  };
}

export function spentFromUsage(usage: Usage | undefined): Spent {
  return { spawns: usage?.spawns ?? 0, tokens: usage?.tokens ?? 0, costMicroUsd: usage?.costMicroUsd ?? 0 };
}

export const ONE_SPAWN: Spent = { ...NOTHING_SPENT, spawns: 1 };

/** Books what a step used with the step and with the plan. */
export function addSpending(state: OpenCoordination, stepId: StepId, spent: Spent): OpenCoordination {
  const step = state.steps.get(stepId);
  if (!state.plan || !step?.spec.planned || isDelivery(step)) return state;
  return {
    ...state,
    steps: state.steps.set(stepId, { ...step, spent: addSpent(step.spent ?? NOTHING_SPENT, spent) }),
    plan: { ...state.plan, spent: addSpent(state.plan.spent, spent) },
  };
}

/** Books what is no step's of the plan with the plan. */
export function addPlanSpending(plan: PlanProgress, spent: Spent): PlanProgress {
  return { ...plan, spent: addSpent(plan.spent, spent) };
}

/** A child of the plan spawned: that counts for the step that it works on, too. */
export function countSpawn(
  state: OpenCoordination & { readonly plan: PlanProgress },
  parentStepId: StepId | undefined,
  count = ONE_SPAWN,
): OpenCoordination {
  const parent = parentStepId && state.steps.get(parentStepId);
  if (parent?.spec.planned) return addSpending(state, parent.spec.stepId, count);
  return { ...state, plan: addPlanSpending(state.plan, count) };
}

/**
 * Takes back what the admission of a spawn counted, where the host made no child of it. Where people let the plan go on since, their
 * budget counts from after that admission, and so from one less now.
 */
export function takeSpawnOffPlan(
  state: OpenCoordination,
  { spec, admittedAtMs }: Step,
  { unspawned }: FactPayloads["step.failed"],
): OpenCoordination {
  if (!unspawned || !state.plan || spec.planned) return state;
  const counted = countSpawn({ ...state, plan: state.plan }, spec.parentStepId, {
    ...NOTHING_SPENT,
    spawns: -1,
  });
  const { plan = state.plan } = counted;
  const { allowedFrom, allowedFromMs } = plan;
  if (allowedFrom.spawns === 0 || admittedAtMs > allowedFromMs) return counted;
  return { ...counted, plan: { ...plan, allowedFrom: { ...allowedFrom, spawns: allowedFrom.spawns - 1 } } };
}

/** D3: the child of an attempt that we gave up at its deadline may still be at work. */
export function addStray(plan: PlanProgress, { spec, phase }: Step): PlanProgress {
  if (isDelivery({ spec }) || (phase.status !== "dispatched" && phase.status !== "running")) return plan;
  const session = phase.status === "running" ? phase.childSessionKey : phase.targetSession;
  if (!session) return plan;
  const { attempt, dispatchedAtMs, gateway } = phase;
  const stray: Stray = {
    stepId: spec.stepId,
    attempt,
    dispatchedAtMs,
    ...(phase.status === "running" && { childRunId: phase.childRunId }),
    ...(gateway !== undefined && { gateway }),
  };
  return { ...plan, strays: plan.strays.set(session, stray) };
}

export function removeStray(plan: PlanProgress, session: SessionKey): PlanProgress {
  return { ...plan, strays: plan.strays.remove(session) };
}

/** A question about the budget was asked, or answered. */
export function updateAfterQuestion(
  plan: PlanProgress,
  { escalationId, cause, stepId }: FactPayloads["coordination.escalated"],
): PlanProgress {
  if (stepId !== undefined) return plan;
  if (cause === "budget") return { ...plan, budgetQuestion: escalationId };
  return cause === "confidence" ? { ...plan, decisionQuestion: escalationId } : plan;
}

export function updateAfterAnswer(
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
  const { budgetQuestion: _, ...rest } = expired;
  if (resolution === "continued" || resolution === "approved")
    return { ...rest, allowedFrom: plan.spent, allowedFromMs: atMs };
  return { ...rest, ...(!plan.stop && { stop: "budget" as const }) };
}
