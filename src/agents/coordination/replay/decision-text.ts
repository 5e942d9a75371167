/** Owns: a decision in words: what was decided, and why it would have been another. */
import { OPEN_GATE } from "../dispatch/decide-held.ts";
import type { AfterFailure } from "../dispatch/next-attempt.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { formatTimestamp, type EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import type { Gate } from "../contracts/verification.ts";
import { mustHold } from "../gates/verifier-gate.ts";

/**
 * Returns the text of the decision that a fact records, empty for facts that decide nothing: two with the same text
 * let the same work happen.
 */
export function describeDecision(fact: FactDraft): string {
  switch (fact.type) {
    case "step.dispatched":
      return `attempt ${fact.payload.attempt} begins`;
    case "step.completed":
      return fact.payload.released === "replaced"
        ? "the result counts, replaced by people"
        : "the result counts";
    case "step.failed":
      return `${fact.payload.cancelled ? "cancelled" : "failed"}${describeAfterFailure(fact.payload)}`;
    case "step.timed_out":
      return `timed out${describeAfterFailure(fact.payload)}`;
    case "step.skipped":
      return `skipped (${fact.payload.because})`;
    case "step.retry_granted":
      return "one attempt more";
    case "result.held":
      return "the result is held";
    case "result.revised":
      return `sent back for revision ${fact.payload.revision}`;
    case "coordination.escalated":
      return `people are asked (${fact.payload.cause}) until ${formatDecisionTime(fact.payload.deadlineAtMs)}`;
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

/**
 * Returns the texts of the decisions that facts record, in their order, joined by semicolons; empty where they decide
 * nothing.
 */
export function describeDecisions(facts: readonly FactDraft[]): string {
  return facts.map(describeDecision).filter(Boolean).join("; ");
}

/** Says what follows a failed attempt; empty where nothing does. */
function describeAfterFailure({ retryAtMs, escalated }: AfterFailure): string {
  if (retryAtMs !== undefined) return `, tried again at ${formatDecisionTime(retryAtMs)}`;
  return escalated ? ", people are asked" : "";
}

function describeRuling({ winner, winnerCoordinationId, losers }: FactPayloads["conflict.resolved"]): string {
  if (winner === undefined) return `nobody gets it, ${losers.join(", ")} must not write`;
  return winnerCoordinationId ? `${winner} of ${winnerCoordinationId} keeps it` : `${winner} gets it`;
}

/** Formats a time as texts of decisions have it, in ISO 8601. */
export function formatDecisionTime(atMs: EpochMs): string {
  return formatTimestamp(atMs);
}

/** The facts of a decision as recorded, and as derived under the policy. */
interface ComparedDecision {
  readonly recorded: readonly FactDraft[];
  readonly derived: readonly FactDraft[];
  /** The step's fixed part, under the policy. */
  readonly spec: StepAdmitted | undefined;
}

/** Returns the text that says which part of a policy made the decision under it differ from the recorded one. */
export function explainPolicyDifference({ recorded, derived, spec }: ComparedDecision): string {
  const heldPayload = findPayload(derived, "result.held");
  if (heldPayload) return explainHeldResult(heldPayload, spec);
  if (findPayload(recorded, "result.held"))
    return explainPassedResult(findPayload(recorded, "result.held"), spec);
  const failed = findPayload(derived, "step.failed") ?? findPayload(derived, "step.timed_out");
  if (failed) return explainRetryBudget(failed, spec);
  const escalation = findPayload(derived, "coordination.escalated");
  if (escalation?.confidence)
    return describeShortfall(escalation.confidence.measured, escalation.confidence.floor);
  return findPayload(recorded, "coordination.escalated")?.confidence
    ? "the confidence meets the floor"
    : "follows from the policy";
}

/** Returns the payload of the first fact of a type; `undefined` where there is none. */
function findPayload<T extends FactDraft["type"]>(
  facts: readonly FactDraft[],
  type: T,
): FactPayloads[T] | undefined {
  return facts.find((fact) => fact.type === type)?.payload as FactPayloads[T] | undefined;
}

function explainHeldResult(heldPayload: FactPayloads["result.held"], spec: StepAdmitted | undefined): string {
  const { gate = OPEN_GATE, isolate } = spec ?? {};
  const { confidence, confidenceUnreadable } = heldPayload;
  if (gate.checks?.length) return `to be checked first: ${gate.checks.join(", ")}`;
  if (confidenceUnreadable) return "the confidence that it states cannot be read";
  return isolate && !mustHold(gate, confidence === undefined ? {} : { confidence })
    ? explainHoldForMerge(confidence, gate)
    : describeShortfall(confidence, gate.threshold);
}

function explainHoldForMerge(confidence: number | undefined, { threshold }: Gate): string {
  const merge = "its worktree is merged first";
  return confidence === undefined ? merge : `${describeMetThreshold(confidence, threshold)}; ${merge}`;
}

function describeMetThreshold(measured: number, threshold: number): string {
  return `confidence ${formatConfidence(measured)} meets ${formatConfidence(threshold)}`;
}

function describeShortfall(measured: number | undefined, floor: number): string {
  return measured === undefined
    ? "it states no confidence, and one is demanded"
    : `confidence ${formatConfidence(measured)} is below ${formatConfidence(floor)}`;
}

function explainPassedResult(
  heldPayload: FactPayloads["result.held"] | undefined,
  spec: StepAdmitted | undefined,
): string {
  const { gate } = spec ?? {};
  if (!gate) return "nothing holds its results";
  if (heldPayload?.confidence === undefined) return "nothing is checked, and no confidence is demanded";
  return describeMetThreshold(heldPayload.confidence, gate.threshold);
}

function explainRetryBudget(
  { retryAtMs, escalated, attempt }: FactPayloads["step.failed"] | FactPayloads["step.timed_out"],
  spec: StepAdmitted | undefined,
): string {
  const budget = `a retry budget of ${spec?.retryBudget ?? 0}, attempt ${attempt}`;
  if (retryAtMs !== undefined) return `${budget}, backoff ${spec?.planned?.backoffMs ?? 0} ms`;
  return escalated ? `${budget}, then people` : budget;
}

/** Formats a confidence in ten-thousandths as a number from 0 to 1. */
function formatConfidence(basisPoints: number): string {
  return String(basisPoints / 10_000);
}
