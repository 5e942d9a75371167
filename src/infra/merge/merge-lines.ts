/** Owns: what two sides made of the same lines, taken together. Does not own: texts. */
import { diff3MergeRegions } from "node-diff3";
import { findAnchors } from "./anchors.ts";

/** The lines of a text, by numbers that are the same for equal lines. */
export type LineIds = readonly number[];

export interface ThreeTexts {
  readonly base: number[];
  readonly left: number[];
  readonly right: number[];
}

export type LinesMerged = { readonly lines: LineIds } | "overlapping_changes" | "too_large";

/**
 * Merges the numbered lines of two sides with their base, gap by gap between unchanged lines, and returns the merged
 * lines; `overlapping_changes` where both changed the same place, `too_large` where comparing would take more than
 * `workMax` steps.
 */
export function mergeLines(texts: ThreeTexts, kinds: number, workMax: number): LinesMerged {
  const merged: number[] = [];
  let workLeft = workMax;
  for (const gap of splitAtAnchors(texts, kinds)) {
    const easy = mergeWithoutComparing(gap);
    workLeft -= easy ? 0 : estimateMergeSteps(gap.base, gap.left) + estimateMergeSteps(gap.base, gap.right);
    if (workLeft < 0) return "too_large";
    const lines = easy ?? mergeGap(gap);
    if (!lines) return "overlapping_changes";
    for (const line of lines) merged.push(line);
  }
  return { lines: merged };
}

/**
 * Yields the parts of the texts between anchors. Each anchor is a part of its own, so that changes on both sides of it
 * do not touch.
 */
function* splitAtAnchors({ base, left, right }: ThreeTexts, kinds: number): Iterable<ThreeTexts> {
  let from = { base: 0, left: 0, right: 0 };
  for (const anchor of findAnchors({ base, left, right }, kinds)) {
    const gap = {
      base: base.slice(from.base, anchor.base),
      left: left.slice(from.left, anchor.left),
      right: right.slice(from.right, anchor.right),
    };
    if (gap.base.length + gap.left.length + gap.right.length > 0) yield gap;
    const line = base.slice(anchor.base, anchor.base + 1);
    yield { base: line, left: line, right: line };
    from = { base: anchor.base + 1, left: anchor.left + 1, right: anchor.right + 1 };
  }
  yield { base: base.slice(from.base), left: left.slice(from.left), right: right.slice(from.right) };
}

/** Returns the merged lines where at most one side changed, or both in the same way; else `undefined`. */
function mergeWithoutComparing({ base, left, right }: ThreeTexts): LineIds | undefined {
  if (isSameLines(left, base) || isSameLines(left, right)) return right;
  return isSameLines(right, base) ? left : undefined;
}

/**
 * Returns how many steps comparing two texts takes. The library compares each line, at all of its places, with as many
 * rows as the texts can have lines in common.
 */
function estimateMergeSteps(base: LineIds, side: LineIds): number {
  const places = new Map<number, number>();
  for (const line of side) places.set(line, (places.get(line) ?? 0) + 1);
  const rows = Math.min(base.length, side.length);
  let work = base.length + side.length;
  for (const line of base) work += (places.get(line) ?? 0) * rows;
  return work;
}

/** Merges the lines of one gap; `undefined` where both sides changed the same or adjoining lines otherwise. */
function mergeGap({ base, left, right }: ThreeTexts): LineIds | undefined {
  const merged: number[] = [];
  for (const region of diff3MergeRegions(left, base, right)) {
    const lines = region.stable ? region.bufferContent : pickSameLines(region.aContent, region.bContent);
    if (!lines) return undefined;
    for (const line of lines) merged.push(line);
  }
  return merged;
}

function pickSameLines(left: LineIds, right: LineIds): LineIds | undefined {
  return isSameLines(left, right) ? left : undefined;
}

function isSameLines(a: LineIds, b: LineIds): boolean {
  return a.length === b.length && a.every((line, at) => line === b[at]);
}
