/** Owns: the tokens of JSON, without layout and comments. */
import { createScanner } from "jsonc-parser";
import { CannotCut } from "./cannot-cut.ts";

/** The numbers of jsonc-parser, which declares them in a way that cannot be imported. */
export const TOKEN = {
  openBrace: 1,
  closeBrace: 2,
  openBracket: 3,
  closeBracket: 4,
  comma: 5,
  colon: 6,
  null: 7,
  true: 8,
  false: 9,
  string: 10,
  number: 11,
} as const;
const LINE_COMMENT = 12;
const BLOCK_COMMENT = 13;
const END = 17;

export interface JsonToken {
  readonly kind: number;
  readonly start: number;
  readonly end: number;
  /** The text that a string stands for. */
  readonly value: string;
  /** Comments stand before it. */
  readonly isCommented: boolean;
}

/**
 * Returns the tokens of a JSON text without spaces and comments, each with whether a comment comes before it. @throws
 * CannotCut `broken` for what is no token
 */
export function readJsonTokens(text: string): JsonToken[] {
  const scanner = createScanner(text);
  const tokens: JsonToken[] = [];
  let isCommented = false;
  for (let kind: number = scanner.scan(); kind !== END; kind = scanner.scan()) {
    if (hasError(scanner.getTokenError())) throw new CannotCut("broken");
    if (kind === LINE_COMMENT || kind === BLOCK_COMMENT) isCommented = true;
    if (kind >= LINE_COMMENT && kind < END && kind !== UNKNOWN) continue;
    if (kind === UNKNOWN) throw new CannotCut("broken");
    const start = scanner.getTokenOffset();
    const end = start + scanner.getTokenLength();
    tokens.push({ kind, start, end, value: scanner.getTokenValue(), isCommented });
    isCommented = false;
  }
  return tokens;
}

const UNKNOWN = 16;

/** True for any error: the number of none is 0. */
function hasError(error: number): boolean {
  return error !== 0;
}
