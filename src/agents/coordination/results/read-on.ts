/** Owns: the words that stand for what a session is not shown of a long text, and say how to read on. */
import type { CoordinationId, StepId } from "../contracts/ids.ts";

/** A text that is kept whole in the ledger. */
export interface KeptText {
  readonly sha256: string;
  readonly chars: number;
  /** Whose words they are. */
  readonly of: { readonly coordinationId: CoordinationId; readonly stepId: StepId };
}

/** Says at which character the reader goes on. */
export type ReadOn = (from: number) => string;

/** Where this stands, something is left out. */
export const SHORTENED = "[[coordination: this is shortened from ";

/**
 * Returns a function that, given a character, formats the hint by which a model reads a kept text on from there. The
 * hint has no quotes and nothing else that JSON escapes: it also stands inside of JSON.
 */
export function createReadOn({ sha256, chars, of }: KeptText): ReadOn {
  const where = `coordinationId ${of.coordinationId}, stepId ${of.stepId}, sha256 ${sha256}`;
  return (from) =>
    `${SHORTENED}${chars} characters, sha256 ${sha256}. Read on with the tool coordination_result: ${where}, from ${from}.]]`;
}
