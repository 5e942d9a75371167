/** Owns: what the protocol's log says of questions to people. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactEvent, OpenWopDraft } from "../contracts/run-event.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, type StepId } from "../contracts/ids.ts";
import type { OpenWopPayloads } from "../contracts/openwop-events.ts";
import type { KnownCoordination } from "../ledger/state.ts";
import { draftDecided, actorOf } from "./draft-decided.ts";

export type Escalated = FactEvent & { type: "coordination.escalated" };

/** G2: the event that records the doubt, then the interrupt. A question to another session interrupts nothing yet. */
export function projectEscalated(state: KnownCoordination, fact: Escalated): OpenWopDraft[] {
  return fact.payload.askedOf ? [] : [...draftDoubted(state, fact), ...draftInterrupt(state, fact)];
}

/** The interrupt of a question that goes to people now. */
export function projectForwarded(
  state: KnownCoordination,
  { eventId, payload }: FactEvent & { type: "escalation.forwarded" },
): OpenWopDraft[] {
  const question = state.escalations.get(payload.escalationId);
  return question ? draftInterrupt(state, { eventId, payload: question }) : [];
}

function draftInterrupt(
  state: KnownCoordination,
  question: Pick<Escalated, "eventId" | "payload">,
): OpenWopDraft[] {
  const { escalationId, stepId, kind, deadlineAtMs } = question.payload;
  const nodeId = stepId ?? "orchestrator";
  const timeoutMs = Math.max(0, deadlineAtMs - state.changedAtMs);
  return [
    {
      type: "interrupt.requested",
      nodeId,
      causationId: question.eventId,
      payload: { kind, key: escalationId, data: questionOf(question.payload), timeoutMs },
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
        ...describeLowConfidence(state, question),
      },
    },
  ];
}

/** RFC 0039: of a decision to dispatch; what an agent doubts of its own result is said with the suspension. */
export function draftDoubted(state: KnownCoordination, fact: Escalated): OpenWopDraft[] {
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

export function describeLowConfidence(
  state: KnownCoordination,
  { payload: { stepId, cause, confidence } }: Pick<Escalated, "payload">,
): Partial<OpenWopPayloads["node.suspended"]> {
  if (cause !== "confidence" || !confidence || (confidence.of ?? "decision") === "decision") return {};
  return {
    reason: "low-confidence",
    agentId: actorOf(state, stepId),
    threshold: confidence.floor / 10_000,
    ...(confidence.measured !== undefined && { observed: confidence.measured / 10_000 }),
  };
}

/** Returns the question in the shape that OpenWOP demands for its kind, free of content. */
export function questionOf({
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

/** A question of 0.1.0 had no counterpart when it was closed, and has none now (L4). */
export function projectClosed(
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

/** RFC 0006, CP-1: the one decision, once people let it be carried out. */
export function draftApprovedDecision(
  state: KnownCoordination,
  fact: FactEvent & { type: "escalation.closed" },
): OpenWopDraft[] {
  const { escalationId, resolution } = fact.payload;
  const { cause, confidence, stepId } = state.escalations.get(escalationId) ?? {};
  const isDecision = cause === "confidence" && (confidence?.of ?? "decision") === "decision";
  if (!isDecision || resolution !== "approved") return [];
  const stepIds = stepId ? [stepId] : listUndoubted(state);
  return splitIntoParts(stepIds).map((part, index) =>
    draftDecided({ ...state, iterations: state.iterations + index }, part, fact.eventId),
  );
}

/** Lists the steps that wait for nothing but the decision about the whole plan. */
export function listUndoubted({ steps }: KnownCoordination): StepId[] {
  return steps
    .filter(({ spec, phase }) => spec.planned && !spec.decision && phase.status === "waiting")
    .keySeq()
    .filter((stepId) => stepId !== DELIVERY_STEP_ID)
    .toArray();
}

/** An event has its bound, and a plan of 10,000 steps breaks it. */
export function splitIntoParts(stepIds: readonly StepId[]): StepId[][] {
  const parts: StepId[][] = [];
  for (let from = 0; from < stepIds.length; from += BOUNDS.stepsPerAppendMax)
    parts.push(stepIds.slice(from, from + BOUNDS.stepsPerAppendMax));
  return parts;
}
