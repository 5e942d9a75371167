/** Owns: whether a session works for nobody any more. */
import type { SessionKey } from "../contracts/ids.ts";
import type { OpenCoordination } from "./state.ts";

/** True when a session is the child of an attempt that is over without having completed. */
export function isGivenUp({ children, steps }: OpenCoordination, session: SessionKey): boolean {
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
