/** Owns: what the protocol's log says of questions to people. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactEvent, OpenWopDraft } from "../contracts/run-event.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type StepId } from "../contracts/ids.ts";
import type { OpenWopPayloads } from "../contracts/openwop-events.ts";
import type { KnownCoordination } from "../ledger/state.ts";
import { draftDispatchDecision, nameActor } from "./draft-decided.ts";

/** The fact that a question was put to people. */
export type EscalatedFact = FactEvent & { type: "coordination.escalated" };

/**
 * Drafts the OpenWOP events of a new question to people: a doubt about a decision, where it has one, then the
 * interrupt (G2). A question to another session has none yet.
 */
export function draftOpenedQuestion(state: KnownCoordination, fact: EscalatedFact): OpenWopDraft[] {
  return fact.payload.askedOf
    ? []
    : [...draftDecisionDoubt(state, fact), ...draftQuestionInterrupt(state, fact)];
}

/** Drafts the OpenWOP events of the interrupt for a question that goes to people now; none for an unknown question. */
export function draftForwardedQuestion(
  state: KnownCoordination,
  { eventId, payload }: FactEvent & { type: "escalation.forwarded" },
): OpenWopDraft[] {
  const question = state.escalations.get(payload.escalationId);
  return question ? draftQuestionInterrupt(state, { eventId, payload: question }) : [];
}

function draftQuestionInterrupt(
  state: KnownCoordination,
  question: Pick<EscalatedFact, "eventId" | "payload">,
): OpenWopDraft[] {
  const { escalationId, stepId, kind, deadlineAtMs } = question.payload;
  const nodeId = stepId ?? "orchestrator";
  const timeoutMs = Math.max(0, deadlineAtMs - state.changedAtMs);
  return [
    {
      type: "interrupt.requested",
      nodeId,
      causationId: question.eventId,
      payload: { kind, key: escalationId, data: createQuestionData(question.payload), timeoutMs },
    },
    {
      type: "node.suspended",
      nodeId,
      causationId: question.eventId,
      payload: {
        nodeId,
        interruptId: escalationId,
        kind,
        key: escalationId,
        ...createLowConfidenceFields(state, question),
      },
    },
  ];
}

/**
 * Drafts the OpenWOP event of a low confidence in a decision to dispatch (RFC 0039); none where the planner stated no
 * confidence, or for any other question. A doubt about a result is said with the suspension.
 */
export function draftDecisionDoubt(state: KnownCoordination, fact: EscalatedFact): OpenWopDraft[] {
  const { stepId, cause, kind, confidence } = fact.payload;
  if (cause !== "confidence" || confidence?.measured === undefined) return [];
  if ((confidence.of ?? "decision") !== "decision") return [];
  return [
    {
      type: "core.workflowChain.confidence-escalated",
      nodeId: stepId ?? "orchestrator",
      causationId: fact.eventId,
      payload: {
        confidence: confidence.measured / 10_000,
        floor: confidence.floor / 10_000,
        escalationKind: kind === "approval" ? "escalate" : "clarify",
        parentRunId: state.coordinationId,
        ...(stepId && { workerId: stepId }),
      },
    },
  ];
}

/**
 * Returns the fields by which OpenWOP's `node.suspended` tells a low or missing confidence in a step's result, of its
 * agent or a critic; an empty object for any other question.
 */
export function createLowConfidenceFields(
  state: KnownCoordination,
  { payload: { stepId, cause, confidence } }: Pick<EscalatedFact, "payload">,
): Partial<OpenWopPayloads["node.suspended"]> {
  if (cause !== "confidence" || !confidence || (confidence.of ?? "decision") === "decision") return {};
  return {
    reason: "low-confidence",
    agentId: nameActor(state, stepId),
    threshold: confidence.floor / 10_000,
    ...(confidence.measured !== undefined && { observed: confidence.measured / 10_000 }),
  };
}

/** Returns the data of a question's OpenWOP interrupt in the shape that its kind demands, free of content. */
export function createQuestionData({
  escalationId,
  stepId,
  cause,
  kind,
}: FactPayloads["coordination.escalated"]): OpenWopPayloads["interrupt.requested"]["data"] {
  const title = `${stepId ?? "the coordination"}: ${cause}`;
  return kind === "approval"
    ? {
        artifactId: stepId ?? escalationId,
        artifactType: "coordination.step",
        title,
        actions: ["accept", "reject"],
      }
    : { questions: [{ id: escalationId, question: title }] };
}

export const RESUMED = {
  approved: "accept",
  retried: "accept",
  continued: "accept",
  denied: "reject",
  answered: "answer",
  expired: "expired",
  cancelled: "cancelled",
} as const;

/**
 * Drafts the OpenWOP events that end a question's interrupt, and the decision that people approved by it; none where
 * no interrupt was drafted. A question of 0.1.0 had no counterpart when it was closed, and has none now (L4).
 */
export function draftClosedQuestion(
  state: KnownCoordination,
  fact: FactEvent & { type: "escalation.closed" },
): OpenWopDraft[] {
  const { escalationId, resolution } = fact.payload;
  const question = state.escalations.get(escalationId);
  const isInterrupt = question && (!question.askedOf || question.forwardedAtMs !== undefined);
  if (!question?.answers || !isInterrupt) return [];
  const { stepId, kind } = question;
  return [
    {
      type: "interrupt.resolved",
      nodeId: stepId ?? "orchestrator",
      causationId: fact.eventId,
      payload: {
        nodeId: stepId ?? "orchestrator",
        interruptId: escalationId,
        kind,
        resumeValue: { action: RESUMED[resolution] },
      },
    },
    ...draftApprovedDecision(state, fact),
  ];
}

/**
 * Drafts the OpenWOP events of a decision to dispatch that people have approved, split where it has too many steps;
 * none for any other question or answer (RFC 0006, CP-1).
 */
export function draftApprovedDecision(
  state: KnownCoordination,
  fact: FactEvent & { type: "escalation.closed" },
): OpenWopDraft[] {
  const { escalationId, resolution } = fact.payload;
  const { cause, confidence, stepId } = state.escalations.get(escalationId) ?? {};
  const isDecision = cause === "confidence" && (confidence?.of ?? "decision") === "decision";
  if (!isDecision || resolution !== "approved") return [];
  const stepIds = stepId ? [stepId] : listStepsAwaitingPlan(state);
  return splitForEvents(stepIds).map((part, index) =>
    draftDispatchDecision({ ...state, iterations: state.iterations + index }, part, fact.eventId),
  );
}

/**
 * Lists the waiting steps of a plan, without its delivery, that have no doubtful decision of their own: the approval
 * of the whole plan lets them go on.
 */
export function listStepsAwaitingPlan({ steps }: KnownCoordination): StepId[] {
  return steps
    .filter(({ spec, phase }) => spec.planned && !spec.decision && phase.status === "waiting")
    .keySeq()
    .filter((stepId) => stepId !== DELIVERY_STEP_ID)
    .toArray();
}

/**
 * Splits the ids of steps, in order, into lists that each fit into one event: a plan of 10,000 steps breaks its bound.
 */
export function splitForEvents(stepIds: readonly StepId[]): StepId[][] {
  const parts: StepId[][] = [];
  for (let from = 0; from < stepIds.length; from += BOUNDS.stepsPerAppendMax)
    parts.push(stepIds.slice(from, from + BOUNDS.stepsPerAppendMax));
  return parts;
}
