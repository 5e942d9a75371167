/** Owns: the answers that checks give. */
import type { Check, Verdict } from "../../agents/coordination/contracts/verification.ts";
import type { CheckAnswer } from "../../agents/coordination/ports/verifier.ts";

export type CheckOf<Kind extends Check["kind"]> = Extract<Check, { readonly kind: Kind }>;

/** Creates the verdict of a check that no model makes; its key names all that it looked at. */
export function createCheckVerdict(key: string, verdict: Verdict): CheckAnswer {
  return { kind: "verdict", verdict, criteria: [key], agentId: `check:${key}` };
}

export function passOrFail(key: string, isMet: boolean): CheckAnswer {
  return createCheckVerdict(key, isMet ? "pass" : "fail");
}

/** The system's own name of an error, such as `ENOENT`; its message may hold paths. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z][A-Z0-9_]*$/u.test(code) ? code : "unknown reason";
}
