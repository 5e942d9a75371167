/** Owns: lines that three texts agree on, so that what is between two of them can be merged by itself. */

/** Where a line is in each of the texts. */
export interface Anchor {
  readonly base: number;
  readonly left: number;
  readonly right: number;
}

/**
 * Returns the places of the lines that occur exactly once in the base and in both sides, and come in the same order in
 * all three. `kinds`: one more than the highest number that stands for a line.
 */
export function findAnchors(
  texts: { readonly base: LineIds; readonly left: LineIds; readonly right: LineIds },
  kinds: number,
): readonly Anchor[] {
  const left = findPlacesOfSingles(texts.left, kinds);
  const right = findPlacesOfSingles(texts.right, kinds);
  const singles = findPlacesOfSingles(texts.base, kinds);
  const shared: Anchor[] = [];
  for (const [at, line] of texts.base.entries()) {
    const anchor = { base: at, left: left[line] ?? NONE, right: right[line] ?? NONE };
    if (singles[line] === at && anchor.left >= 0 && anchor.right >= 0) shared.push(anchor);
  }
  const alike = findLongestRise(shared, ({ left: place }) => place);
  return findLongestRise(alike, ({ right: place }) => place);
}

/** The lines of a text, by numbers that are the same for equal lines. */
type LineIds = readonly number[];

const NONE = -1;
const MANY = -2;

/** Returns by the number of a line where it stands, if it occurs once; a negative number for any other. */
function findPlacesOfSingles(lines: LineIds, kinds: number): Int32Array {
  const places = new Int32Array(kinds).fill(NONE);
  for (const [at, line] of lines.entries()) places[line] = places[line] === NONE ? at : MANY;
  return places;
}

/** Returns the longest part of `items`, in their order, whose places go up; no two places are the same. */
function findLongestRise(items: readonly Anchor[], placeOf: (item: Anchor) => number): readonly Anchor[] {
  const before = new Map<Anchor, Anchor | undefined>();
  /** The item with the lowest place that a rise of each length can end in. */
  const lowestEnds: Anchor[] = [];
  for (const item of items) {
    const length = countBelow(lowestEnds, placeOf, placeOf(item));
    before.set(item, lowestEnds[length - 1]);
    lowestEnds[length] = item;
  }
  const rise: Anchor[] = [];
  for (let item = lowestEnds.at(-1); item; item = before.get(item)) rise.push(item);
  return rise.reverse();
}

/** Counts the ends whose place is below `place`. Their places go up. */
function countBelow(ends: readonly Anchor[], placeOf: (item: Anchor) => number, place: number): number {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const end = ends[middle];
    if (end && placeOf(end) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
