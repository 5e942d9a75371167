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

type Opening = FactPayloads["coordination.created"];

export function summarize(state: KnownCoordination): Summary {
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

/** Telling the owner is no step of the plan that it tells of. */
function countSteps({ steps, openSteps, endedSteps }: KnownCoordination): Summary["steps"] {
  const delivery = steps.get(DELIVERY_STEP_ID)?.phase;
  const isUntold = delivery?.status === "failed" || delivery?.status === "timed_out";
  return {
    total: steps.size - (delivery ? 1 : 0),
    open: openSteps.size - (delivery && !isEnded(delivery) ? 1 : 0),
    failed: endedSteps.failed + endedSteps.timed_out - (isUntold ? 1 : 0),
  };
}

export function referencesOf(event: RunEvent): Reference[] {
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
    return targetSession ? [{ name: nameOfChild(targetSession), stepId }] : [];
  }
  // A runner's acknowledgement follows a dispatch that named the session.
  return event.payload.via === "runner" ? [] : [{ name: nameOfChild(event.payload.childSessionKey), stepId }];
}

/** A question of 0.1.0 has none. */
function listQuestionReferences({ answers }: FactPayloads["coordination.escalated"]): Reference[] {
  return answers ? [{ name: QUESTIONS_NAME }] : [];
}

function listContestReferences(
  event: RunEvent & { type: "resource.changed" | "conflict.detected" },
): Reference[] {
  if (event.type === "resource.changed") {
    const { resource, stepId } = event.payload;
    return [{ name: nameOfChanged(resource), stepId }];
  }
  const { contest } = event.payload;
  return contest ? [{ name: CONFLICTS_NAME, stepId: contest.requester }] : [];
}

/** A plan is not found by its owner's trace: what the owner's model spawns meanwhile is no part of it. */
function listOpeningReferences({ origin, ownerSession, trace, parent, gateway }: Opening): Reference[] {
  const traced =
    origin === "observed" && trace.traceId
      ? [{ name: formatTraceName({ session: ownerSession, gateway }, trace.traceId) }]
      : [];
  return parent ? [...traced, { name: nameOfNested(parent.coordinationId, parent.stepId) }] : traced;
}

/** The coordination that a session's spawns on one W3C trace belong to. */
export function formatTraceName({ session, gateway }: PlacedSession, traceId: string): string {
  return gateway === undefined ? `trace:${traceId}:${session}` : `trace@${gateway}:${traceId}:${session}`;
}

/** H3: the step that a child session works on. */
export function nameOfChild(childSessionKey: SessionKey): string {
  return `child:${childSessionKey}`;
}

/** The plans that children of a step submitted. */
export function nameOfNested(coordinationId: CoordinationId, stepId: StepId): string {
  return `nested:${coordinationId}:${stepId}`;
}

/** Names who changed a resource last. */
export function nameOfChanged(resource: string): string {
  return `changed:${resource}`;
}
