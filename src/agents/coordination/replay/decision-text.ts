/** Owns: a decision in words: what was decided, and why it would have been another. */
import type { AfterFailure } from "../dispatch/next-try.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { formatTimestamp, type EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import type { Gate } from "../contracts/verification.ts";
import { mustHold } from "../gates/verifier-gate.ts";

/** Describes a decision: two with the same words let the same work happen. Empty for facts that decide nothing. */
export function describeDecision(fact: FactDraft): string {
  switch (fact.type) {
    case "step.dispatched":
      return `attempt ${fact.payload.attempt} begins`;
    case "step.completed":
      return fact.payload.released === "replaced"
        ? "the result counts, replaced by people"
        : "the result counts";
    case "step.failed":
      return `${fact.payload.cancelled ? "cancelled" : "failed"}${describeRetry(fact.payload)}`;
    case "step.timed_out":
      return `timed out${describeRetry(fact.payload)}`;
    case "step.skipped":
      return `skipped (${fact.payload.because})`;
    case "step.retry_granted":
      return "one attempt more";
    case "result.held":
      return "the result is held";
    case "result.revised":
      return `sent back for revision ${fact.payload.revision}`;
    case "coordination.escalated":
      return `people are asked (${fact.payload.cause}) until ${timeOf(fact.payload.deadlineAtMs)}`;
    case "escalation.answered":
      return fact.payload.refused
        ? `the answer does not count (${fact.payload.refused})`
        : "the answer counts";
    case "escalation.closed":
      return `the question is closed: ${fact.payload.resolution}`;
    case "conflict.resolved":
      return describeRuling(fact.payload);
    case "budget.reached":
      return fact.payload.stopped === "spawn"
        ? "the budget refuses a spawn"
        : `the budget stops its next ${fact.payload.stopped}`;
    case "coordination.terminal":
      return `the coordination ends as ${fact.payload.status}`;
    default:
      return "";
  }
}

/** Describes the decisions that facts hold, in their order. */
export function describeDecisions(facts: readonly FactDraft[]): string {
  return facts.map(describeDecision).filter(Boolean).join("; ");
}

function describeRetry({ retryAtMs, escalated }: AfterFailure): string {
  if (retryAtMs !== undefined) return `, tried again at ${timeOf(retryAtMs)}`;
  return escalated ? ", people are asked" : "";
}

function describeRuling({ winner, winnerCoordinationId, losers }: FactPayloads["conflict.resolved"]): string {
  if (winner === undefined) return `nobody gets it, ${losers.join(", ")} must not write`;
  return winnerCoordinationId ? `${winner} of ${winnerCoordinationId} keeps it` : `${winner} gets it`;
}

export function timeOf(atMs: EpochMs): string {
  return formatTimestamp(atMs);
}

interface Deciding {
  readonly recorded: readonly FactDraft[];
  readonly derived: readonly FactDraft[];
  /** The step's fixed part, under the policy. */
  readonly spec: StepAdmitted | undefined;
}

/** Explains which part of the policy made the difference. */
export function explainDecision({ recorded, derived, spec }: Deciding): string {
  const heldPayload = payloadOf(derived, "result.held");
  if (heldPayload) return explainHold(heldPayload, spec);
  if (payloadOf(recorded, "result.held")) return explainPass(payloadOf(recorded, "result.held"), spec);
  const failed = payloadOf(derived, "step.failed") ?? payloadOf(derived, "step.timed_out");
  if (failed) return explainRetries(failed, spec);
  const escalation = payloadOf(derived, "coordination.escalated");
  if (escalation?.confidence)
    return describeShortfall(escalation.confidence.measured, escalation.confidence.floor);
  return payloadOf(recorded, "coordination.escalated")?.confidence
    ? "the confidence meets the floor"
    : "follows from the policy";
}

function payloadOf<T extends FactDraft["type"]>(
  facts: readonly FactDraft[],
  type: T,
): FactPayloads[T] | undefined {
  return facts.find((fact) => fact.type === type)?.payload as FactPayloads[T] | undefined;
}

const OPEN_GATE: Gate = { threshold: 0 };

function explainHold(heldPayload: FactPayloads["result.held"], spec: StepAdmitted | undefined): string {
  const { gate = OPEN_GATE, isolate } = spec ?? {};
  const { confidence, confidenceUnreadable } = heldPayload;
  if (gate.checks?.length) return `to be checked first: ${gate.checks.join(", ")}`;
  if (confidenceUnreadable) return "the confidence that it states cannot be read";
  return isolate && !mustHold(gate, confidence === undefined ? {} : { confidence })
    ? explainMerge(confidence, gate)
    : describeShortfall(confidence, gate.threshold);
}

function explainMerge(confidence: number | undefined, { threshold }: Gate): string {
  const merge = "its worktree is merged first";
  return confidence === undefined ? merge : `${describeMet(confidence, threshold)}; ${merge}`;
}

function describeMet(measured: number, threshold: number): string {
  return `confidence ${share(measured)} meets ${share(threshold)}`;
}

function describeShortfall(measured: number | undefined, floor: number): string {
  return measured === undefined
    ? "it states no confidence, and one is demanded"
    : `confidence ${share(measured)} is below ${share(floor)}`;
}

function explainPass(
  heldPayload: FactPayloads["result.held"] | undefined,
  spec: StepAdmitted | undefined,
): string {
  const { gate } = spec ?? {};
  if (!gate) return "nothing holds its results";
  if (heldPayload?.confidence === undefined) return "nothing is checked, and no confidence is demanded";
  return describeMet(heldPayload.confidence, gate.threshold);
}

function explainRetries(
  { retryAtMs, escalated, attempt }: FactPayloads["step.failed"] | FactPayloads["step.timed_out"],
  spec: StepAdmitted | undefined,
): string {
  const budget = `a retry budget of ${spec?.retryBudget ?? 0}, attempt ${attempt}`;
  if (retryAtMs !== undefined) return `${budget}, backoff ${spec?.planned?.backoffMs ?? 0} ms`;
  return escalated ? `${budget}, then people` : budget;
}

function share(basisPoints: number): string {
  return String(basisPoints / 10_000);
}
