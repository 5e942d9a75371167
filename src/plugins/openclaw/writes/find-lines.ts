/**
 * Owns: the lines of a text, and finding them: a run of them, in time that grows with both and not with their product,
 * and the one at a place. And how much all searches of one call in a text may cost together: a call that needs more is
 * given up.
 */
import type { ChangeProposal } from "../../../agents/coordination/runtime/arbiter/write-call.ts";

/** Returns the lines of a text, each with its ending: CR, LF or both; none for an empty text. */
export function listLines(text: string): readonly string[] {
  return text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+/gu) ?? [];
}

/**
 * Returns the index of the only place at or after `from` where the lines `wanted` follow each other; `several` where
 * there are more, also overlapping ones, and `undefined` where there is none.
 */
export function findOnlyRun(
  lines: readonly string[],
  wanted: readonly string[],
  from: number,
): number | "several" | undefined {
  const fallback = computeFallbacks(wanted);
  let firstAt: number | undefined;
  let matched = 0;
  for (let at = from; at < lines.length; at += 1) {
    while (matched > 0 && lines[at] !== wanted[matched]) matched = fallback[matched - 1] ?? 0;
    if (lines[at] === wanted[matched]) matched += 1;
    if (matched < wanted.length) continue;
    if (firstAt !== undefined) return "several";
    firstAt = at - wanted.length + 1;
    matched = fallback[matched - 1] ?? 0;
  }
  return firstAt;
}

/** Computes, for each prefix of `wanted`, the longest shorter prefix that it ends with (Knuth, Morris and Pratt). */
function computeFallbacks(wanted: readonly string[]): readonly number[] {
  const lengths: number[] = [0];
  let length = 0;
  for (let at = 1; at < wanted.length; at += 1) {
    while (length > 0 && wanted[at] !== wanted[length]) length = lengths[length - 1] ?? 0;
    if (wanted[at] === wanted[length]) length += 1;
    lengths.push(length);
  }
  return lengths;
}

/** Returns the index of the last line that begins at or before a character position; 0 where none does. */
export function findLineIndex(lines: readonly { readonly start: number }[], place: number): number {
  let low = 0;
  let high = lines.length;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((lines[middle]?.start ?? Infinity) <= place) low = middle;
    else high = middle;
  }
  return low;
}

class SearchTooLong extends Error {}

/** Takes what a search costs off what is left, before it is made, and throws where that is too little. */
export type SpendSearch = (cost: number) => void;

/**
 * Creates the function that subtracts the cost of a search from one tool call's budget, and throws `SearchTooLong`
 * once it is used up.
 */
export function createSearchBudget(most: number): SpendSearch {
  let left = most;
  return (cost) => {
    left -= cost;
    if (left < 0) throw new SearchTooLong();
  };
}

/**
 * Returns what `propose` returns about the text after a call, or `untold`, which does not say that the call fails,
 * where its search budget did not suffice; other errors are thrown on.
 */
export function proposeWithinBudget(propose: () => ChangeProposal): ChangeProposal {
  try {
    return propose();
  } catch (error) {
    if (error instanceof SearchTooLong) return { kind: "untold" };
    throw error;
  }
}

/** Returns the number of line endings in a text; CRLF counts once. */
export function countLineEnds(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10 || (code === 13 && text.charCodeAt(at + 1) !== 10)) count += 1;
  }
  return count;
}
