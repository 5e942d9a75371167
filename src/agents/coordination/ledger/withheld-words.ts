/** Owns: which words of a gated agent are kept back from others, besides its result. */
import type { SessionKey } from "../contracts/ids.ts";
import type { Gate } from "../contracts/verification.ts";
import { findSessionOfPhase, type Escalation, type Step } from "./state.ts";

/**
 * True when a gate has checks or demands a stated confidence. Then every text is kept back, and a runner that cannot
 * do so must not be used.
 */
export function isStrictGate({ checks = [], requireConfidence }: Gate): boolean {
  return checks.length > 0 || requireConfidence === true;
}

/**
 * True when a gate keeps back every text of a session of the step: one of an earlier attempt always; else, until its
 * result is released, by strict rules or while its words are held back.
 */
export function isEverythingWithheld(step: Step, session: SessionKey | undefined): boolean {
  const { gate } = step.spec;
  const isEarlier = session !== undefined && findSessionOfPhase(step.phase) !== session;
  if (!gate || (isResultReleased(step) && !isEarlier)) return false;
  return isStrictGate(gate) || isEarlier || hasWordsHeldBack(step);
}

/**
 * True when a step completed with its agent's own result, not with a text of people. Then neither that result nor what
 * the agent says later is kept back.
 */
export function isResultReleased({ phase }: Step): boolean {
  return phase.status === "completed" && phase.released !== "replaced";
}

/**
 * True while the words of a step are kept back. Whoever remembers a held or withheld result could be asked for it
 * again. Results of a child that did not run as asked are held.
 */
function hasWordsHeldBack({ phase, withheld, spec, differences = [] }: Step): boolean {
  const isMismatch = spec.gate?.holdMismatch === true && differences.length > 0;
  return withheld !== undefined || phase.status === "held" || isMismatch;
}

/** True when the words of an agent's question are kept back because they may tell a result that is not ruled on yet. */
export function isQuestionWithheld(
  steps: { get(stepId: NonNullable<Escalation["stepId"]>): Step | undefined },
  { cause, stepId, askedBy }: Pick<Escalation, "cause" | "stepId" | "askedBy">,
): boolean {
  const step = cause === "agent" && stepId !== undefined ? steps.get(stepId) : undefined;
  return step !== undefined && isEverythingWithheld(step, askedBy);
}
