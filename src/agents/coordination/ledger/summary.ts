/**
 * Owns: what a ledger keeps beside the log to find and list coordinations without folding them. Both are functions of
 * the log; `verify` recomputes them.
 */
import { DELIVERY_STEP_ID, type CoordinationId, type SessionKey, type StepId } from "../contracts/ids.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import {
  CONFLICTS_NAME,
  MISMATCHES_NAME,
  REFUSED_CALLS_NAME,
  QUESTIONS_NAME,
  type PlacedSession,
  type Reference,
  type Summary,
} from "../contracts/coordination-summary.ts";
import { isEnded, type KnownCoordination } from "./state.ts";

/** The payload of the fact that opened the coordination. */
type CreatedPayload = FactPayloads["coordination.created"];

/**
 * Returns what lists of coordinations show of one: its status, owner, objective, the counts of its steps and what it
 * used.
 */
export function summarizeCoordination(state: KnownCoordination): Summary {
  const { ownerSession, objective, forkedFrom, gateway } = state.created;
  return {
    status: state.kind === "ended" ? state.status : "running",
    ownerSession,
    objective,
    createdAtMs: state.createdAtMs,
    steps: countSteps(state),
    ...(state.bill.sum.tokens + state.bill.sum.costMicroUsd > 0 && { usage: state.bill.sum }),
    ...(forkedFrom && { forkedFrom }),
    ...(gateway !== undefined && { gateway }),
  };
}

/** Counts the steps without the delivery: telling the owner is no step of the plan that it tells of. */
function countSteps({ steps, openSteps, endedSteps }: KnownCoordination): Summary["steps"] {
  const delivery = steps.get(DELIVERY_STEP_ID)?.phase;
  const isUntold = delivery?.status === "failed" || delivery?.status === "timed_out";
  return {
    total: steps.size - (delivery ? 1 : 0),
    open: openSteps.size - (delivery && !isEnded(delivery) ? 1 : 0),
    failed: endedSteps.failed + endedSteps.timed_out - (isUntold ? 1 : 0),
  };
}

/**
 * Lists the reference names, each with its step where it has one, under which a ledger lists an event's coordination;
 * none for most events.
 */
export function listEventReferences(event: RunEvent): Reference[] {
  switch (event.type) {
    case "coordination.created":
      return listOpeningReferences(event.payload);
    case "resource.changed":
    case "conflict.detected":
      return listContestReferences(event);
    case "child.differed":
      return [{ name: MISMATCHES_NAME, stepId: event.payload.stepId }];
    case "coordination.escalated":
      return listQuestionReferences(event.payload);
    case "privilege.refused":
      return [{ name: REFUSED_CALLS_NAME, stepId: event.payload.stepId }];
    case "step.dispatched":
    case "step.acknowledged":
      return listChildReferences(event);
    default:
      return [];
  }
}

function listChildReferences(
  event: RunEvent & { type: "step.dispatched" | "step.acknowledged" },
): Reference[] {
  const { stepId } = event.payload;
  // The owner is told a result as a step of its own, but it is no child.
  if (stepId === DELIVERY_STEP_ID) return [];
  if (event.type === "step.dispatched") {
    const { targetSession } = event.payload;
    return targetSession ? [{ name: nameChildReference(targetSession), stepId }] : [];
  }
  // A runner's acknowledgement follows a dispatch that named the session.
  return event.payload.via === "runner"
    ? []
    : [{ name: nameChildReference(event.payload.childSessionKey), stepId }];
}

/**
 * Lists the reference of a question to people; none where it names no answers, as a recorded stop at a plan's budget
 * and a question of 0.1.0.
 */
function listQuestionReferences({ answers }: FactPayloads["coordination.escalated"]): Reference[] {
  return answers ? [{ name: QUESTIONS_NAME }] : [];
}

function listContestReferences(
  event: RunEvent & { type: "resource.changed" | "conflict.detected" },
): Reference[] {
  if (event.type === "resource.changed") {
    const { resource, stepId } = event.payload;
    return [{ name: nameChangeReference(resource), stepId }];
  }
  const { contest } = event.payload;
  return contest ? [{ name: CONFLICTS_NAME, stepId: contest.requester }] : [];
}

/**
 * Lists the references of a new coordination: by its trace, and as a plan inside. A plan is not found by its owner's
 * trace: what the owner's model spawns meanwhile is no part of it.
 */
function listOpeningReferences({
  origin,
  ownerSession,
  trace,
  parent,
  gateway,
}: CreatedPayload): Reference[] {
  const traced =
    origin === "observed" && trace.traceId
      ? [{ name: nameTraceReference({ session: ownerSession, gateway }, trace.traceId) }]
      : [];
  return parent
    ? [...traced, { name: nameNestedPlanReference(parent.coordinationId, parent.stepId) }]
    : traced;
}

/** Returns the reference name of the coordination that a session's spawns on one W3C trace belong to. */
export function nameTraceReference({ session, gateway }: PlacedSession, traceId: string): string {
  return gateway === undefined ? `trace:${traceId}:${session}` : `trace@${gateway}:${traceId}:${session}`;
}

/** Returns the reference name of the step that a child session works on (H3). */
export function nameChildReference(childSessionKey: SessionKey): string {
  return `child:${childSessionKey}`;
}

/** Returns the reference name of the plans that children of a step submitted. */
export function nameNestedPlanReference(coordinationId: CoordinationId, stepId: StepId): string {
  return `nested:${coordinationId}:${stepId}`;
}

/** Returns the reference name of the step that changed a resource last. */
export function nameChangeReference(resource: string): string {
  return `changed:${resource}`;
}
