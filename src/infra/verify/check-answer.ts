/** Owns: the answers that checks give. */
import type { Check, Verdict } from "../../agents/coordination/contracts/verification.ts";
import type { CheckAnswer } from "../../agents/coordination/ports/verifier.ts";

export type CheckOf<Kind extends Check["kind"]> = Extract<Check, { readonly kind: Kind }>;

/**
 * Creates the answer of a check that no model makes: its verdict, with the check's key as the one criterion and as the
 * judge's name.
 */
export function createCheckVerdict(key: string, verdict: Verdict): CheckAnswer {
  return { kind: "verdict", verdict, criteria: [key], agentId: `check:${key}` };
}

/** Creates the answer of a check that no model makes: `pass` where the condition is met, else `fail`. */
export function createPassOrFailVerdict(key: string, isMet: boolean): CheckAnswer {
  return createCheckVerdict(key, isMet ? "pass" : "fail");
}
