/** Owns: whether a session works for nobody any more: its own attempt was given up, or one above it. */
import type { SessionKey, StepId } from "../contracts/ids.ts";
import { findSessionOfPhase, type KnownCoordination } from "./state.ts";

/**
 * True when a session is the child of an attempt that is over without having completed, unless a later one is held or
 * has completed; of a spawn that a model made, only when it was cancelled.
 */
function isSessionGivenUp({ children, steps }: KnownCoordination, session: SessionKey): boolean {
  const stepId = children.get(session);
  const step = stepId === undefined ? undefined : steps.get(stepId);
  if (!step) return false;
  // An agent that a model spawned goes on until somebody cancels it; a plan says how its steps end.
  if (!step.spec.planned) return step.phase.status === "cancelled";
  const { phase } = step;
  switch (phase.status) {
    case "running":
      return phase.childSessionKey !== session;
    case "dispatched":
      return phase.targetSession !== session;
    case "backoff":
      // A result that goes back to its agent goes on in the same session.
      return phase.revision === undefined;
    case "blocked":
    case "cancelled":
    case "failed":
    case "timed_out":
      return true;
    case "waiting":
    case "held":
    case "completed":
    case "skipped":
      return false;
  }
}

/** True when a session worked on an attempt of a plan's step, and a later attempt has an agent of its own. */
function isReplaced({ children, steps }: KnownCoordination, session: SessionKey): boolean {
  const stepId = children.get(session);
  const step = stepId === undefined ? undefined : steps.get(stepId);
  const newest = step?.spec.planned && findSessionOfPhase(step.phase);
  return newest !== undefined && newest !== session;
}

/**
 * True when a session, or one that spawned it or spawned its parents, was given up or replaced by a later attempt: nobody waits for
 * what it does.
 */
export function isWorkingForNobody(state: KnownCoordination, worker: SessionKey): boolean {
  const visited = new Set<SessionKey>();
  let session: SessionKey | undefined = worker;
  while (session !== undefined && !visited.has(session)) {
    if (isSessionGivenUp(state, session) || isReplaced(state, session)) return true;
    visited.add(session);
    const stepId: StepId | undefined = state.children.get(session);
    session = stepId && state.steps.get(stepId)?.spec.sourceSession;
  }
  return false;
}
