/**
 * Owns: what a ledger keeps beside the log to find and list coordinations without folding them. Both are functions of
 * the log; `verify` recomputes them.
 */
import type { SessionKey } from "../contracts/ids.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { Reference, Summary } from "../contracts/summary.ts";
import type { Coordination } from "./state.ts";

export function summarize(state: Exclude<Coordination, { kind: "unopened" }>): Summary {
  const { failed, timed_out: timedOut } = state.endedSteps;
  return {
    status: state.kind === "ended" ? state.status : "running",
    ownerSession: state.created.ownerSession,
    objective: state.created.objective,
    createdAtMs: state.createdAtMs,
    steps: { total: state.steps.size, open: state.openSteps.size, failed: failed + timedOut },
  };
}

export function referencesOf(event: RunEvent): Reference[] {
  if (event.type === "coordination.created" && event.payload.trace.traceId) {
    return [{ name: traceName(event.payload.ownerSession, event.payload.trace.traceId) }];
  }
  if (event.type === "step.acknowledged") {
    return [{ name: childName(event.payload.childSessionKey), stepId: event.payload.stepId }];
  }
  return [];
}

/** The coordination that a session's spawns on one W3C trace belong to. */
export function traceName(ownerSession: SessionKey, traceId: string): string {
  return `trace:${traceId}:${ownerSession}`;
}

/** H3: the step that a child session works on. */
export function childName(childSessionKey: SessionKey): string {
  return `child:${childSessionKey}`;
}
