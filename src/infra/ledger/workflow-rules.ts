/** Owns: which appends to the log of a workflow run break its rules: those of its origin and of the ids of its events. */
import { InvariantViolation } from "../../agents/coordination/contracts/errors.ts";
import { findEventId } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowAppend } from "../../agents/coordination/ports/workflow-store.ts";
import { createUnreadableOriginError, parseStoredOrigin } from "./stored-origin.ts";

/**
 * Returns the error of an append to a workflow's run that brings an origin although the run has begun, or events with
 * wrong ids; `undefined` where nothing is wrong. Returned and not thrown, so that the appends that wait with it are
 * not broken.
 */
export function findBrokenWorkflowRule(
  { runId, events, origin: originGiven }: WorkflowAppend,
  head: { readonly origin: string | null } | undefined,
): Error | undefined {
  if (head && originGiven) return new InvariantViolation(`${runId} has begun; it cannot be given an origin`);
  const stored = parseStoredOrigin(head?.origin);
  if (stored.kind === "unreadable") return createUnreadableOriginError(runId, stored);
  const origin = stored.kind === "known" ? stored.origin : originGiven;
  const wrong = events.find(({ eventId, sequence }) => eventId !== findEventId(runId, origin, sequence));
  return wrong && new InvariantViolation(`the event at ${runId}:${wrong.sequence} is not ${wrong.eventId}`);
}
