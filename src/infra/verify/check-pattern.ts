/**
 * Owns: matching a result with the pattern of a check, in time that is linear in its length and bounded.
 *
 * The last words of an agent and the outputs that it reported are both its result, and both count: a pattern that must be absent
 * is in neither.
 */
import { createNoVerdict } from "../../agents/coordination/contracts/verification.ts";
import { readPattern } from "../../agents/coordination/plan/pattern-syntax.ts";
import type { CheckAnswer, CheckRequest, VerifiedResult } from "../../agents/coordination/ports/verifier.ts";
import { createPassOrFailVerdict, type CheckOf } from "./check-answer.ts";

/**
 * Returns the verdict whether a text of a step's result matches the pattern of a check, or with `absent` whether none
 * does; no verdict for a pattern that cannot be matched in linear time, or takes too long.
 */
export async function checkPattern(
  { pattern, absent = false }: CheckOf<"pattern">,
  { key, result }: CheckRequest,
): Promise<CheckAnswer> {
  if (readPattern(pattern).problem !== undefined)
    return createNoVerdict("failed", "the check's pattern cannot be matched in linear time, or is too large");
  // Loaded with the first such check.
  const { createLinearPattern: linearPattern } = await import("../json-schema/linear-pattern.ts");
  const { createWorkBudget } = await import("../json-schema/work-meter.ts");
  try {
    const matcher = linearPattern(pattern, createWorkBudget().meter);
    return createPassOrFailVerdict(
      key,
      listResultTexts(result).some((text) => matcher.test(text)) !== absent,
    );
  } catch {
    return createNoVerdict("failed", "matching the check's pattern takes too long for so long a result");
  }
}

/** Lists the texts that a result can be read as: JSON hides quotes and line ends, so the outputs are read without it, too. */
function listResultTexts({ text, outputs }: VerifiedResult): string[] {
  if (!outputs || isOnlyLastWords(text, outputs)) return [text];
  const strings = listStrings(outputs).join("\n");
  return [...new Set([text, JSON.stringify(outputs), strings === "" ? text : strings])];
}

/** True for the outputs of an agent that gave none: they hold its last words. */
function isOnlyLastWords(text: string, outputs: Readonly<Record<string, unknown>>): boolean {
  return outputs["text"] === text && Object.keys(outputs).length === 1;
}

/** Lists the names and texts in a value, whose depth is bounded. */
function listStrings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => listStrings(item));
  return Object.entries(value).flatMap(([name, item]) => [name, ...listStrings(item)]);
}
