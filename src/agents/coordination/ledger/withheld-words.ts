/** Owns: which words of a gated agent are kept back from others, besides its result. */
import type { SessionKey } from "../contracts/ids.ts";
import type { Gate } from "../contracts/verification.ts";
import { sessionOf, type Escalation, type Step } from "./state.ts";

/** More than a threshold for what is stated: then every text is kept back, and a runner that cannot do so must not be used. */
export function isStrict({ checks = [], requireConfidence }: Gate): boolean {
  return checks.length > 0 || requireConfidence === true;
}

/** True when every text of the session is kept back, whatever it states; what an earlier attempt said was refused. */
export function isEverythingWithheld(step: Step, session: SessionKey | undefined): boolean {
  const { gate } = step.spec;
  const isEarlier = session !== undefined && sessionOf(step.phase) !== session;
  if (!gate || (isReleased(step) && !isEarlier)) return false;
  return isStrict(gate) || isEarlier || isHeldBack(step);
}

/** A result that counts is nothing to keep back any more, and neither is what its agent says later. */
export function isReleased({ phase }: Step): boolean {
  return phase.status === "completed" && phase.released !== "replaced";
}

/**
 * True while the words of a step are kept back: whoever remembers a held or withheld result could be asked for it again. Results of a
 * child that did not run as asked are held.
 */
function isHeldBack({ phase, withheld, spec, differences = [] }: Step): boolean {
  const isMismatch = spec.gate?.holdMismatch === true && differences.length > 0;
  return withheld !== undefined || phase.status === "held" || isMismatch;
}

/** True when what an agent asks people may tell its result before that is ruled on. */
export function isQuestionWithheld(
  steps: { get(stepId: NonNullable<Escalation["stepId"]>): Step | undefined },
  { cause, stepId, askedBy }: Pick<Escalation, "cause" | "stepId" | "askedBy">,
): boolean {
  const step = cause === "agent" && stepId !== undefined ? steps.get(stepId) : undefined;
  return step !== undefined && isEverythingWithheld(step, askedBy);
}
