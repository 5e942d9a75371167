/** Owns: giving up on a text in the middle of cutting it. */
import type { Cut } from "../pieces/text-format.ts";

export class CannotCut extends Error {
  readonly why: "unsure" | "broken";

  constructor(why: "unsure" | "broken") {
    super(`The text is not merged by its format: it is ${why}.`);
    this.why = why;
  }
}

/** Cuts a text. One that is nested deeper than the stack is unsure. */
export function tryCut(cut: () => Cut): Cut | "unsure" | "broken" {
  try {
    return cut();
  } catch (error) {
    if (error instanceof CannotCut) return error.why;
    if (error instanceof RangeError) return "unsure";
    throw error;
  }
}

/** @throws CannotCut unless the condition holds. */
export function demand(condition: boolean, why: "unsure" | "broken" = "unsure"): asserts condition {
  if (!condition) throw new CannotCut(why);
}
