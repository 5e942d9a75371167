/** Owns: refusing and recording an outcome or a verdict that no longer counts (D3). */
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { Step } from "../ledger/state.ts";
import { refuse, type Decision } from "./decision.ts";

/** A verdict that is refused in one of these states is about another result. */
const OPEN: ReadonlySet<Step["phase"]["status"]> = new Set(["dispatched", "running", "held"]);

/**
 * Returns the refusal of an outcome, report or verdict that came too late, with the fact that records it; without one
 * where that is recorded, the step's bound is reached or there is no such attempt (D3).
 */
export function refuseAndRecordLate(
  step: Step,
  { attempt, outcome }: Pick<FactPayloads["step.outcome_refused"], "attempt" | "outcome">,
): Decision {
  const { stepId } = step.spec;
  const isStale = attempt !== step.phase.attempt;
  const isOtherTarget = !isStale && outcome === "verified" && OPEN.has(step.phase.status);
  const refusal = createLateRefusal(step, { attempt, isOtherTarget });
  const lateOutcomes = step.late ?? [];
  const isKnown =
    lateOutcomes.includes(`${attempt}:${outcome}`) || lateOutcomes.length >= BOUNDS.lateOutcomesPerStepMax;
  if (isKnown || attempt < 1 || attempt > step.phase.attempt) return refusal;
  const because = isStale ? "stale_attempt" : isOtherTarget ? "other_target" : "step_ended";
  return {
    ...refusal,
    facts: [{ type: "step.outcome_refused", payload: { stepId, attempt, outcome, because } }],
  };
}

function createLateRefusal(
  { spec: { stepId }, phase }: Step,
  { attempt, isOtherTarget }: { readonly attempt: number; readonly isOtherTarget: boolean },
): Decision & { readonly kind: "refused" } {
  if (attempt !== phase.attempt)
    return refuse(
      "STALE_ATTEMPT",
      `attempt ${attempt} of step ${stepId} is not the current attempt, which is ${phase.attempt}`,
    );
  return isOtherTarget
    ? refuse("NOT_HELD", `the verdict is about another result than the one that step ${stepId} is held for`)
    : refuse("STEP_ENDED", `step ${stepId} is ${phase.status}`);
}
