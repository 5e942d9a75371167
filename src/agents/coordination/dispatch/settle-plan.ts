/** Owns: how a plan ends: its owner is told, as a step like any other, and then the coordination ends (D5). */
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isDelivery } from "../ledger/plan-progress.ts";
import { openStepsOf, type Step } from "../ledger/state.ts";
import { endOfClaims } from "./decide-claims.ts";
import { openQuestionsClosed } from "./decide-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import type { PlannedCoordination } from "./plan-rules.ts";

/** How often and how long an owner is tried to be told. */
const DELIVERY = { timeoutMs: 600_000, retryBudget: 5, backoffMs: 2_000 } as const;

/** First the owner is told, as a step like any other; then the coordination ends. */
export function settlePlan(state: PlannedCoordination): Decision {
  const open = whatIsOpen(state);
  if (open) return refuse("STEPS_OPEN", open);
  const delivery = state.steps.get(DELIVERY_STEP_ID);
  if (delivery) return ending(state, terminalOf(state, delivery));
  if (state.created.plan?.successCriteria && !state.successCriteria)
    return refuse("NOT_READY", "how far the plan reached what it is for is not judged yet");
  // The session that would be told was stopped with the step that it worked on: it must not be woken.
  if (state.cancelledBy === "parent")
    return ending(state, { ...verdictOn(state), delivery: "not_delivered" });
  const admitted: FactDraft = { type: "step.admitted", payload: deliverySpec(state) };
  return accept([...openQuestionsClosed(state), admitted], DELIVERY_STEP_ID);
}

function whatIsOpen(state: PlannedCoordination): string | undefined {
  const { plan, created, tellings, cancelledBy } = state;
  const [open] = openStepsOf(state);
  if (open) return `step ${open.spec.stepId} is ${open.phase.status}`;
  if (plan.admitted < (created.plan?.steps ?? 0)) return "not all steps are admitted";
  if (plan.strays.size > 0) return "the child of an earlier attempt may still be at work";
  return tellings.size > 0 && cancelledBy !== "parent"
    ? "a session is still to be told something"
    : undefined;
}

function ending(state: PlannedCoordination, payload: Terminal): Decision {
  return accept([
    ...openQuestionsClosed(state),
    ...endOfClaims(state, "coordination_ended"),
    { type: "coordination.terminal", payload },
  ]);
}

function deliverySpec({ created }: PlannedCoordination): FactPayloads["step.admitted"] {
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

type Terminal = FactPayloads["coordination.terminal"];

function terminalOf(state: PlannedCoordination, delivery: Step): Terminal {
  return { ...verdictOn(state), delivery: deliveryState(delivery) };
}

/** How the plan ended, or would end with what is known now. */
export function verdictOn(
  state: PlannedCoordination,
): Pick<Terminal, "status" | "steps" | "successCriteria"> {
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
    status: terminalStatus(state, steps),
    steps,
    ...(successCriteria && { successCriteria: [...successCriteria] }),
  };
}

function terminalStatus(
  { cancelledBy, plan, successCriteria = [] }: PlannedCoordination,
  { total, completed }: Terminal["steps"],
): Terminal["status"] {
  // RFC 0090: an end that does not reach what the plan is for is a give-up, however well its steps went.
  if (completed === total) return successCriteria.every(({ met }) => met) ? "success" : "partial";
  if (cancelledBy) return "cancelled";
  if (plan.hasExpired) return "escalated";
  return plan.stop === "fail_fast" || completed === 0 ? "failed" : "partial";
}

/** A time-out says that the host could not tell, and so does a turn that it no longer knows; it is never sent again. */
function deliveryState({ phase }: Step): NonNullable<Terminal["delivery"]> {
  if (phase.status === "completed") return "delivered";
  const isLost = phase.status === "failed" && phase.error?.code === "child_lost";
  return phase.status === "timed_out" || isLost ? "unknown" : "not_delivered";
}
