/** Owns: what becomes of an outcome or a verdict that no longer counts (D3). */
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { Step } from "../ledger/state.ts";
import { refuse, type Decision } from "./decision.ts";

/** A verdict on one of these is about something else. */
const OPEN: ReadonlySet<Step["phase"]["status"]> = new Set(["dispatched", "running", "held"]);

/** D3: an outcome that came too late changes nothing, and is recorded once. */
export function late(
  step: Step,
  { attempt, outcome }: Pick<FactPayloads["step.outcome_refused"], "attempt" | "outcome">,
): Decision {
  const { stepId } = step.spec;
  const isStale = attempt !== step.phase.attempt;
  const isElsewhere = !isStale && outcome === "verified" && OPEN.has(step.phase.status);
  const refusal = refusalOf(step, { attempt, isElsewhere });
  const known = step.late ?? [];
  const isKnown = known.includes(`${attempt}:${outcome}`) || known.length >= BOUNDS.lateOutcomesPerStepMax;
  if (isKnown || attempt < 1 || attempt > step.phase.attempt) return refusal;
  const because = isStale ? "stale_attempt" : isElsewhere ? "other_target" : "step_ended";
  return {
    ...refusal,
    facts: [{ type: "step.outcome_refused", payload: { stepId, attempt, outcome, because } }],
  };
}

function refusalOf(
  { spec: { stepId }, phase }: Step,
  { attempt, isElsewhere }: { readonly attempt: number; readonly isElsewhere: boolean },
): Decision & { readonly kind: "refused" } {
  if (attempt !== phase.attempt)
    return refuse("STALE_ATTEMPT", `attempt ${attempt} is not attempt ${phase.attempt} of step ${stepId}`);
  return isElsewhere
    ? refuse("NOT_HELD", `the verdict is not about what step ${stepId} is held for`)
    : refuse("STEP_ENDED", `step ${stepId} is ${phase.status}`);
}
