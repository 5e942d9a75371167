/** Owns: what two sides made of the same lines, taken together. Does not own: texts. */
import { diff3MergeRegions } from "node-diff3";
import { anchorsOf } from "./anchors.ts";

export type Lines = readonly number[];

export interface ThreeTexts {
  readonly base: number[];
  readonly left: number[];
  readonly right: number[];
}

export type LinesMerged = { readonly lines: Lines } | "overlapping_changes" | "too_large";

/** `workMax`: steps that the comparisons may take. Between anchors they grow with the cube of the lines, if all are the same. */
export function mergeLines(texts: ThreeTexts, kinds: number, workMax: number): LinesMerged {
  const merged: number[] = [];
  let left = workMax;
  for (const gap of gapsOf(texts, kinds)) {
    const easy = withoutComparing(gap);
    left -= easy ? 0 : workOf(gap.base, gap.left) + workOf(gap.base, gap.right);
    if (left < 0) return "too_large";
    const lines = easy ?? merge(gap);
    if (!lines) return "overlapping_changes";
    for (const line of lines) merged.push(line);
  }
  return { lines: merged };
}

/** Yields the gaps. Each anchor is a gap of its own, so that changes on both sides of it do not touch. */
function* gapsOf({ base, left, right }: ThreeTexts, kinds: number): Iterable<ThreeTexts> {
  let from = { base: 0, left: 0, right: 0 };
  for (const anchor of anchorsOf({ base, left, right }, kinds)) {
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

function withoutComparing({ base, left, right }: ThreeTexts): Lines | undefined {
  if (isSame(left, base) || isSame(left, right)) return right;
  return isSame(right, base) ? left : undefined;
}

/** The library compares each line, at all of its places, with as many rows as the texts can have lines in common. */
function workOf(base: Lines, side: Lines): number {
  const places = new Map<number, number>();
  for (const line of side) places.set(line, (places.get(line) ?? 0) + 1);
  const rows = Math.min(base.length, side.length);
  let work = base.length + side.length;
  for (const line of base) work += (places.get(line) ?? 0) * rows;
  return work;
}

/** `undefined` where both changed the same lines, or lines next to each other, and not to the same. */
function merge({ base, left, right }: ThreeTexts): Lines | undefined {
  const merged: number[] = [];
  for (const region of diff3MergeRegions(left, base, right)) {
    const lines = region.stable ? region.bufferContent : findMadeByBoth(region.aContent, region.bContent);
    if (!lines) return undefined;
    for (const line of lines) merged.push(line);
  }
  return merged;
}

function findMadeByBoth(left: Lines, right: Lines): Lines | undefined {
  return isSame(left, right) ? left : undefined;
}

function isSame(a: Lines, b: Lines): boolean {
  return a.length === b.length && a.every((line, at) => line === b[at]);
}
