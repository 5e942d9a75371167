/** Owns: matching a result with the pattern of a check, in time that is linear in its length and bounded. */
import { readPattern } from "../../agents/coordination/plan/pattern-syntax.ts";
import type { CheckAnswer, CheckRequest } from "../../agents/coordination/ports/verifier.ts";
import { createNoVerdict, passOrFail, type CheckOf } from "./check-answer.ts";

export async function checkPattern(
  { pattern, absent = false }: CheckOf<"pattern">,
  { key, result: { text } }: CheckRequest,
): Promise<CheckAnswer> {
  if (readPattern(pattern).problem !== undefined)
    return createNoVerdict("failed", "the check's pattern cannot be matched in linear time, or is too large");
  // Loaded with the first such check.
  const { createLinearPattern: linearPattern } = await import("../json-schema/linear-pattern.ts");
  const { createWork } = await import("../json-schema/work-meter.ts");
  try {
    return passOrFail(key, linearPattern(pattern, createWork().meter).test(text) !== absent);
  } catch {
    return createNoVerdict("failed", "matching the check's pattern takes too long for so long a result");
  }
}
