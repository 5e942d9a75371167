/** Owns: the coordination envelope of a step as the ledger records it. */
import { UNBOUND_TARGET, type CoordinationEnvelope } from "../contracts/envelope.ts";
import type { SessionKey, StepId } from "../contracts/ids.ts";
import { findSessionOfPhase, type Coordination } from "../ledger/state.ts";

/**
 * Returns the envelope of the step's current attempt, which says who works for whom, until when and in which trace
 * (H3); `undefined` for an unknown step or an unopened coordination.
 */
export function buildEnvelope(state: Coordination, stepId: StepId): CoordinationEnvelope | undefined {
  if (state.kind === "unopened") return undefined;
  const step = state.steps.get(stepId);
  if (!step) return undefined;
  const { spec, phase } = step;
  const isAtWork = phase.status === "dispatched" || phase.status === "running";
  return {
    coordinationId: state.coordinationId,
    stepId,
    ...(spec.parentStepId && { parentStepId: spec.parentStepId }),
    sourceSession: spec.sourceSession,
    targetSession: findSessionOfPhase(phase) ?? (UNBOUND_TARGET as SessionKey),
    intent: spec.runner === "owner" ? "report" : "execute",
    priority: spec.priority,
    deliveryMode: spec.deliveryMode,
    ...(isAtWork && { deadlineMs: phase.deadlineAtMs }),
    createdAtMs: step.admittedAtMs,
    trace: {
      ...(spec.call.runId && { runId: spec.call.runId }),
      ...(spec.call.spanId && { spanId: spec.call.spanId }),
      causalRef: step.lastFactId,
    },
  };
}
