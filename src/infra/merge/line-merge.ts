/**
 * Owns: merging texts by line. Does not own: whether a merge is wanted, or what is done where none can be made.
 *
 * 1. A line has its end: a text without a newline at its end, or with CRLF, stays so unless a side changed it.
 * 2. Two changes of the same lines are clean when they are the same. Changes of lines next to each other are not clean:
 *    neither side knows what the other made of the line beside its own.
 * 3. Exchanging the sides changes nothing.
 * 4. A merge is bounded by what differs: a large file with small changes is merged, while many changes of many lines
 *    that are alike are too large.
 */
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import type { TextMerge, TextMerged } from "../../agents/coordination/ports/text-merge.ts";
import { findChangedRange } from "./changed-range.ts";
import { mergeLines } from "./merge-lines.ts";
import { numberLines } from "./numbered-lines.ts";

/** In the three texts together, from the first change to the last. So many take 30 ms; nobody else has a turn meanwhile. */
const LINES_MAX = 60_000;
/** Steps of the comparisons of what has no anchor in it: 20 ms. */
const WORK_MAX = 50_000_000;

/** The text of the base and of both sides. */
interface TextSides {
  readonly base: string;
  readonly left: string;
  readonly right: string;
}

/**
 * Creates the merge of three texts line by line. Texts that are too large, and changes that overlap, are not merged;
 * the result names the obstacle.
 */
export function createLineMerge(): TextMerge {
  return {
    merge: ({ base, current, proposed }) => {
      if (current === base || current === proposed) return createCleanMerge(proposed);
      if (proposed === base) return createCleanMerge(current);
      if ([base, current, proposed].some(isTooLarge)) return { kind: "obstacle", obstacle: "too_large" };
      const [left, right] = current < proposed ? [current, proposed] : [proposed, current];
      return mergeRanges({ base, left, right });
    },
  };
}

function createCleanMerge(text: string): TextMerged {
  return { kind: "clean", text };
}

function isTooLarge(text: string): boolean {
  return text.length > BOUNDS.mergeBytesMax || Buffer.byteLength(text) > BOUNDS.mergeBytesMax;
}

/**
 * Merges two sides of which each changed one range. Both are taken where a line lies between them, else their lines
 * are compared.
 */
function mergeRanges({ base, left, right }: TextSides): TextMerged {
  const inLeft = findChangeOfSide(base, left);
  const inRight = findChangeOfSide(base, right);
  const [first, second] = inLeft.start <= inRight.start ? [inLeft, inRight] : [inRight, inLeft];
  if (first.end < second.start) {
    const between = base.slice(first.end, second.start);
    return createCleanMerge(
      base.slice(0, first.start) + first.made + between + second.made + base.slice(second.end),
    );
  }
  const start = first.start;
  const end = Math.max(first.end, second.end);
  const block = (text: string): string => text.slice(start, text.length - (base.length - end));
  const merged = mergeLineBlocks({ base: block(base), left: block(left), right: block(right) });
  if (merged.kind === "obstacle") return merged;
  return createCleanMerge(base.slice(0, start) + merged.text + base.slice(end));
}

/** Finds the range of the base that a side changed, and what it made of it. */
function findChangeOfSide(base: string, side: string): { start: number; end: number; made: string } {
  const { start, end, otherEnd } = findChangedRange(base, side);
  return { start, end, made: side.slice(start, otherEnd) };
}

function mergeLineBlocks(blocks: TextSides): TextMerged {
  const numbered = numberLines([blocks.base, blocks.left, blocks.right], LINES_MAX);
  if (!numbered) return { kind: "obstacle", obstacle: "too_large" };
  const [base = [], left = [], right = []] = numbered.texts;
  const merged = mergeLines({ base, left, right }, numbered.lines.length, WORK_MAX);
  if (typeof merged === "string") return { kind: "obstacle", obstacle: merged };
  return createCleanMerge(merged.lines.map((line) => numbered.lines[line] ?? "").join(""));
}
