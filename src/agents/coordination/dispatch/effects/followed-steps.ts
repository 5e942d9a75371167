/** Owns: which attempts are started and followed to their ends here, rather than by the host whose model spawned them. */
import type { Step } from "../../ledger/state.ts";

/** True for a step whose run the dispatcher itself follows to its end: one of a plan, or a spawn under revision. */
export function isFollowedByUs(step: Step): boolean {
  return step.spec.planned !== undefined || isContinuedByUs(step);
}

/**
 * True while a child that a model spawned is at work in a run that the host follows. A turn of ours would replace that
 * run in the host's records.
 */
export function isAtWorkForHost(step: Step): boolean {
  if (isFollowedByUs(step)) return false;
  return step.phase.status === "dispatched" || step.phase.status === "running";
}

/** True while a spawn has a revision under way or to come: its later attempts we start and follow ourselves (D2). */
export function isContinuedByUs({ spec, phase, revisions = 0 }: Step): boolean {
  if (spec.planned || revisions === 0) return false;
  return (
    phase.status === "backoff" ||
    ((phase.status === "dispatched" || phase.status === "running") && phase.attempt > 1)
  );
}
