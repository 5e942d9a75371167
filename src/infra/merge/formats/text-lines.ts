/** Owns: the lines that a thing in a text covers, for formats in which every entry has lines of its own. */
import { demand } from "./cannot-cut.ts";

/** Returns where the line begins in which a place is. */
export function findLineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
}

/** Returns where the line behind a place begins; a place at the start of a line is in the line before it. */
export function findLineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === "\n") return at;
  const newline = text.indexOf("\n", at);
  return newline === -1 ? text.length : newline + 1;
}

/** @throws CannotCut unless there are only empty lines and lines of a comment. */
export function demandComments(text: string, from: number, to: number): string {
  demand(from <= to);
  const between = text.slice(from, to);
  demand(between.split("\n").every((line) => /^\s*(?:#[^\n]*)?$/u.test(line)));
  return between;
}
