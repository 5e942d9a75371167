/** Owns: ending a coordination (D5): when nothing is open in it, and for a plan when its owner was told, as a step like any other. */
import type { FactPayloads, TerminalStatus } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import { listOpenSteps, type OpenCoordination, type Step } from "../ledger/state.ts";
import { draftEndOfClaims } from "./release-claims.ts";
import { draftOpenQuestionClosings } from "./decide-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { hasAwaitedTellings, type PlannedCoordination } from "./plan-rules.ts";

/** Limits of the delivery to the owner. */
const DELIVERY = { timeoutMs: 600_000, retryBudget: 5, backoffMs: 2_000 } as const;

/**
 * Decides on a plan whose work is done: accepted with the delivery to the owner, and once that has ended with the end
 * of the coordination; refused while work is open or success criteria are not judged. A plan whose owner was stopped
 * with its step ends undelivered.
 */
export function settlePlan(state: PlannedCoordination): Decision {
  const open = describeOpenWork(state);
  if (open) return refuse("STEPS_OPEN", open);
  const delivery = state.steps.get(DELIVERY_STEP_ID);
  if (delivery) return endCoordination(state, createTerminal(state, delivery));
  if (state.created.plan?.successCriteria && !state.successCriteria)
    return refuse("NOT_READY", "the success criteria of the plan have not been judged yet");
  // The owner's session was stopped together with the step that it worked on, so it must not be woken.
  if (state.cancelledBy === "parent")
    return endCoordination(state, { ...computePlanVerdict(state), delivery: "not_delivered" });
  const admitted: FactDraft = { type: "step.admitted", payload: createDeliverySpec(state) };
  return accept([...draftOpenQuestionClosings(state), admitted], DELIVERY_STEP_ID);
}

/** Says what of the plan is still open; `undefined` where nothing is. */
function describeOpenWork(state: PlannedCoordination): string | undefined {
  const { plan, created, worktrees } = state;
  const [open] = listOpenSteps(state);
  if (open) return `step ${open.spec.stepId} is ${open.phase.status}`;
  if (plan.admitted < (created.plan?.steps ?? 0)) return "not all steps are admitted";
  if (plan.strays.size > 0) return "the child of an earlier attempt may still be at work";
  if (!worktrees.isEmpty()) return "the worktree of an attempt has not been removed yet";
  return hasAwaitedTellings(state) ? "a session has not been told its result or answer yet" : undefined;
}

/** Ends the coordination: its open questions are closed and all claims released. */
function endCoordination(state: OpenCoordination, payload: TerminalPayload): Decision {
  return accept([
    ...draftOpenQuestionClosings(state),
    ...draftEndOfClaims(state, "coordination_ended"),
    { type: "coordination.terminal", payload },
  ]);
}

function createDeliverySpec({ created }: PlannedCoordination): FactPayloads["step.admitted"] {
  const { timeoutMs, retryBudget, backoffMs } = DELIVERY;
  return {
    stepId: DELIVERY_STEP_ID,
    lane: "control",
    runner: "owner",
    agentId: created.ownerAgent,
    sourceSession: created.ownerSession,
    deliveryMode: "at_least_once",
    priority: "high",
    input: created.objective,
    timeoutMs,
    retryBudget,
    collect: false,
    call: {},
    planned: { dependsOn: [], fanIn: 0, backoffMs, criticalPathMs: timeoutMs },
  };
}

/** The payload of the fact that ends a coordination. */
type TerminalPayload = FactPayloads["coordination.terminal"];

function createTerminal(state: PlannedCoordination, delivery: Step): TerminalPayload {
  return { ...computePlanVerdict(state), delivery: determineDeliveryOutcome(state, delivery) };
}

/**
 * Returns how the plan ended, or would if it ended now: its status, the counts of its steps by outcome, and which
 * success criteria are met.
 */
export function computePlanVerdict(
  state: PlannedCoordination,
): Pick<TerminalPayload, "status" | "steps" | "successCriteria"> {
  const steps = { total: 0, completed: 0, failed: 0, timedOut: 0, cancelled: 0, skipped: 0 };
  for (const step of state.steps.values()) {
    if (!step.spec.planned || isDelivery(step)) continue;
    steps.total += 1;
    const { status } = step.phase;
    if (status === "completed" || status === "failed" || status === "cancelled" || status === "skipped")
      steps[status] += 1;
    if (status === "timed_out") steps.timedOut += 1;
  }
  const { successCriteria } = state;
  return {
    status: computeTerminalStatus(state, steps),
    steps,
    ...(successCriteria && { successCriteria: [...successCriteria] }),
  };
}

function computeTerminalStatus(
  { cancelledBy, plan, successCriteria = [] }: PlannedCoordination,
  { total, completed }: TerminalPayload["steps"],
): TerminalPayload["status"] {
  // RFC 0090: an end that misses a success criterion is a give-up, even where all steps completed.
  if (completed === total) return successCriteria.every(({ met }) => met) ? "success" : "partial";
  if (cancelledBy) return "cancelled";
  if (plan.hasExpired) return "escalated";
  return plan.stop === "fail_fast" || completed === 0 ? "failed" : "partial";
}

/**
 * Returns whether the owner was told. `unknown` where it may have seen the message although its turn did not complete.
 */
function determineDeliveryOutcome(
  { cancelledBy }: PlannedCoordination,
  { phase }: Step,
): NonNullable<TerminalPayload["delivery"]> {
  if (phase.status === "completed") return "delivered";
  const isStopped =
    cancelledBy === "parent" && phase.status === "cancelled" && phase.error?.code === "child_cancelled";
  const isLost = phase.status === "failed" && phase.error?.code === "child_lost";
  return phase.status === "timed_out" || isStopped || isLost ? "unknown" : "not_delivered";
}

/**
 * Decides on the end of a coordination of observed spawns without a plan: accepted, or refused while a step or telling
 * is open, or a question, for which a cancelled one does not wait.
 */
export function settleObservedSpawns(state: OpenCoordination): Decision {
  const [open] = listOpenSteps(state);
  if (open) return refuse("STEPS_OPEN", `step ${open.spec.stepId} is ${open.phase.status}`);
  if (state.tellings.size > 0)
    return refuse("STEPS_OPEN", "a session has not been told its result or answer yet");
  // A cancelled coordination does not wait for answers.
  if (state.openQuestions.size > 0 && !state.cancelledBy)
    return refuse("QUESTIONS_OPEN", "people were asked and have not answered yet");
  const { completed, failed, cancelled, timed_out: timedOut } = state.endedSteps;
  const steps = { total: state.steps.size, completed, failed, timedOut, cancelled };
  return endCoordination(state, {
    status: state.cancelledBy ? "cancelled" : computeObservedStatus(steps),
    steps,
  });
}

/** Returns how a coordination of observed spawns ended, by how many of its steps completed. */
function computeObservedStatus({ total, completed, cancelled }: TerminalPayload["steps"]): TerminalStatus {
  if (completed === total) return "success";
  if (completed > 0) return "partial";
  return cancelled === total ? "cancelled" : "failed";
}
