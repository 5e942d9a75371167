/**
 * Owns: what is known of the work that a gate stood behind: what nobody has settled yet, and whether a run that ended reached
 * what it was for (RFC 0090 §C).
 */
import type { InterruptAnswer, Review, WorkflowRun } from "./workflow-state.ts";

/** True when people's answer accepts the work, edited or not. Anything else is a no. */
export function isAgreedAnswer({ resumeValue }: Pick<InterruptAnswer, "resumeValue">): boolean {
  if (typeof resumeValue !== "object" || resumeValue === null || !("action" in resumeValue)) return false;
  return resumeValue.action === "accept" || resumeValue.action === "edit-accept";
}

type ReviewedRun = Pick<WorkflowRun, "reviews">;

/** Lists the reviews of workers whose work did not pass, and was neither merged nor ruled on by people. */
export function listUnresolvedReviews({ reviews }: ReviewedRun): Review[] {
  return [...reviews.values()].filter(
    ({ verdict, isMerged, ruling }) =>
      verdict !== undefined && verdict.verdict !== "pass" && !isMerged && ruling === undefined,
  );
}

/**
 * Returns what a supervisor's model is told of each review: the worker, the verdict with its criteria, whether the
 * work was merged, and how people ruled; nothing of the work itself.
 */
export function summarizeReviews({ reviews }: ReviewedRun): Readonly<Record<string, unknown>>[] {
  return [...reviews.values()].map(({ workerId, verdict, isMerged, ruling }) => ({
    worker: workerId,
    ...(verdict && { verdict: verdict.verdict, criteria: verdict.criteria ?? [] }),
    merged: isMerged,
    ...(ruling && { people: ruling }),
  }));
}

export interface Convergence {
  readonly goalSatisfied: boolean;
  /** Keys of the supervisor's criteria that it said are not met. */
  readonly unmet: readonly string[];
  /** Workers whose work was not accepted. */
  readonly notAccepted: readonly string[];
}

/**
 * Returns whether a completed run reached its goal, with the unmet criteria and the workers whose work was not
 * accepted; `undefined` for other runs, and where no criteria are stated and all work was accepted.
 */
export function assessConvergence({
  phase,
  orchestrator: { last },
  reviews,
}: WorkflowRun): Convergence | undefined {
  if (phase.kind !== "completed") return undefined;
  const decision = last?.decision;
  const criteria = decision?.kind === "terminate" ? (decision.successCriteria ?? []) : [];
  const unmet = criteria.filter(({ met }) => !met).map(({ key }) => key);
  const notAccepted = [...reviews.values()].filter(isNotAccepted).map(({ workerId }) => workerId);
  if (criteria.length === 0 && notAccepted.length === 0) return undefined;
  return { goalSatisfied: unmet.length === 0 && notAccepted.length === 0, unmet, notAccepted };
}

function isNotAccepted({ verdict, ruling, isMerged }: Review): boolean {
  if (isMerged || ruling === "accepted") return false;
  return ruling === "rejected" || verdict?.verdict !== "pass";
}
