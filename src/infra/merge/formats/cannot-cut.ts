/** Owns: giving up on a text in the middle of cutting it. */
import type { TextCut } from "../pieces/text-format.ts";

export class CannotCut extends Error {
  readonly why: "unsure" | "broken";

  constructor(why: "unsure" | "broken") {
    super(`The text is not merged by its format: it is ${why}.`);
    this.why = why;
  }
}

/**
 * Runs a function that cuts a text into pieces, and returns the pieces, or `unsure` or `broken` where it threw
 * `CannotCut`. A text that is nested too deep for the stack is `unsure`.
 */
export function tryCut(cut: () => TextCut): TextCut | "unsure" | "broken" {
  try {
    return cut();
  } catch (error) {
    if (error instanceof CannotCut) return error.why;
    if (error instanceof RangeError) return "unsure";
    throw error;
  }
}

/**
 * Throws `CannotCut` unless the condition holds, which gives up cutting a text: because the cut would be unsure, or
 * the text is broken. @throws CannotCut
 */
export function assertCanCut(condition: boolean, why: "unsure" | "broken" = "unsure"): asserts condition {
  if (!condition) throw new CannotCut(why);
}
