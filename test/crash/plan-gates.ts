/** Owns: what schedules have of gates: which steps are checked or doubted, how checks rule, and what people answer, by a seed. */
import type { AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import type { CheckAnswer, CheckRequest } from "../../src/agents/coordination/ports/verifier.ts";
import { diceOf, deriveSeed, type Dice } from "./plan-dice.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Long enough for all checks of one result in a schedule. */
export const VERIFY_MS = 20_000;

export const LINT = { kind: "pattern", pattern: "n" } as const;

/** Half of the schedules have none. */
export function addGates(seed: number, plan: Fields): Fields {
  const dice = diceOf(seed ^ 0x6a7e);
  if (dice.chance(0.5)) return plan;
  const steps = (plan["steps"] as readonly Fields[]).map((step) => ({
    ...step,
    ...(dice.chance(0.5) && { verify: verifyOf(dice) }),
    ...(dice.chance(0.1) && { confidence: 0.4 }),
  }));
  return {
    ...plan,
    steps,
    ...(dice.chance(0.05) && { confidence: 0.3 }),
    ...(dice.chance(0.3) && { successCriteria: [{ key: "all" }] }),
  };
}

function verifyOf(dice: Dice): Fields {
  return {
    ...(dice.chance(0.8) && {
      checks: { lint: LINT, ...(dice.chance(0.4) && { critic: LINT }) },
      revisionsMax: dice.int(0, 2),
    }),
    ...(dice.chance(0.3) && { requireConfidence: true }),
  };
}

export type Ruler = (request: CheckRequest) => Promise<CheckAnswer>;

/** The same check of the same attempt rules the same way, whichever process asks. */
export function rulerOf(seed: number): Ruler {
  return ({ key, result: { stepId, attempt } }) => {
    const dice = diceOf(deriveSeed(seed, `${stepId}:${attempt}:${key}`));
    const verdict = dice.oneOf(["pass", "pass", "pass", "revise", "fail"]);
    const ruling = dice.oneOf(["rules", "rules", "rules", "rules", "doubts", "throws", "hangs", "none"]);
    if (ruling === "throws") return Promise.reject(new Error("the check broke"));
    if (ruling === "hangs") return new Promise(() => undefined);
    if (ruling === "none") return Promise.resolve({ kind: "none", because: "unavailable", message: "gone" });
    const confidence = ruling === "doubts" ? 0.2 : 0.9;
    return Promise.resolve({
      kind: "verdict",
      verdict,
      criteria: [key],
      confidence,
      agentId: `check:${key}`,
    });
  };
}

export const rulePassing: Ruler = ({ key }) =>
  Promise.resolve({ kind: "verdict", verdict: "pass", criteria: [], agentId: `check:${key}` });

/** People's answers to open questions, and when they come. */
export function answersOf(
  seed: number,
): readonly { readonly afterMs: number; readonly answer: AnswerKind }[] {
  const dice = diceOf(seed ^ 0xa25e);
  return Array.from({ length: dice.oneOf([0, 1, 2, 5]) }, () => ({
    afterMs: dice.oneOf([500, 5_000, dice.int(0, 60_000), dice.int(0, 150_000)]),
    answer: dice.oneOf(["approve", "approve", "deny", "answer"] as const),
  }));
}
