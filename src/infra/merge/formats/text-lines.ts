/** Owns: the lines that a thing in a text covers, for formats in which every entry has lines of its own. */
import { assertCanCut } from "./cannot-cut.ts";

/** Returns the offset at which the line that contains an offset of a text begins. */
export function findLineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
}

/**
 * Returns the offset behind the line break of the line that contains an offset; an offset at the start of a line
 * counts as the end of the line before it, and is returned as it is.
 */
export function findLineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === "\n") return at;
  const newline = text.indexOf("\n", at);
  return newline === -1 ? text.length : newline + 1;
}

/**
 * Returns a part of a text unchanged, once it is known to have only empty lines and comments that begin with `#`.
 * @throws CannotCut for anything else
 */
export function readComments(text: string, from: number, to: number): string {
  assertCanCut(from <= to);
  const between = text.slice(from, to);
  assertCanCut(between.split("\n").every((line) => /^\s*(?:#[^\n]*)?$/u.test(line)));
  return between;
}
