/** Owns: in which order the entries of two sides come. Does not own: which entries there are. */

interface KeySides {
  readonly base: readonly string[];
  readonly left: readonly string[];
  readonly right: readonly string[];
}

/**
 * Returns the kept keys in the order of the side that moved some; a key of the other alone comes behind the shared key
 * before it. `undefined` where both moved keys in different ways, or new keys may be renamed ones.
 */
export function mergeKeyOrder(
  { base, left, right }: KeySides,
  isKept: (key: string) => boolean,
): string[] | undefined {
  const inLeft = new Set(left);
  const inRight = new Set(right);
  const inBase = new Set(base);
  const isShared = (key: string): boolean => isKept(key) && inLeft.has(key) && inRight.has(key);
  const isOld = (key: string): boolean => isShared(key) && inBase.has(key);
  if (isPlaceUnknown({ base, left, right }, { isKept, isShared })) return undefined;
  const before = base.filter(isOld);
  if (isSameOrder(left.filter(isShared), right.filter(isShared)))
    return insertOtherKeys({ canvas: left, other: right }, { isKept, isShared });
  if (isSameOrder(right.filter(isOld), before))
    return insertOtherKeys({ canvas: left, other: right }, { isKept, isShared });
  if (isSameOrder(left.filter(isOld), before))
    return insertOtherKeys({ canvas: right, other: left }, { isKept, isShared });
  return undefined;
}

/** Tests of the key of an entry. */
interface KeyTests {
  readonly isKept: (key: string) => boolean;
  /** Both sides have it, and it is kept. */
  readonly isShared: (key: string) => boolean;
}

/** True when both sides added keys in one place where keys of the base are gone: some may have been renamed. */
function isPlaceUnknown({ base, left, right }: KeySides, { isKept, isShared }: KeyTests): boolean {
  const addedByLeft = groupBehindShared(left.filter(isKept), isShared);
  const addedByRight = groupBehindShared(right.filter(isKept), isShared);
  const removedKeys = groupBehindShared(base, isShared);
  return [...addedByLeft.keys()].some((place) => addedByRight.has(place) && removedKeys.has(place));
}

/** Returns the keys of `canvas`, with each key of `other` alone put behind the shared key before it. */
function insertOtherKeys(
  { canvas, other }: { readonly canvas: readonly string[]; readonly other: readonly string[] },
  { isKept, isShared }: KeyTests,
): string[] {
  const behind = groupBehindShared(other.filter(isKept), isShared);
  const ordered: string[] = [];
  let waiting = behind.get(undefined) ?? [];
  for (const key of canvas.filter(isKept)) {
    if (!isShared(key)) {
      ordered.push(key);
      continue;
    }
    for (const inserted of waiting) ordered.push(inserted);
    ordered.push(key);
    waiting = behind.get(key) ?? [];
  }
  return [...ordered, ...waiting];
}

/** Groups the keys that only one side has by the shared key before them; `undefined` for those before all. */
function groupBehindShared(
  keys: readonly string[],
  isShared: (key: string) => boolean,
): Map<string | undefined, string[]> {
  const groups = new Map<string | undefined, string[]>();
  let last: string | undefined;
  for (const key of keys) {
    if (isShared(key)) {
      last = key;
      continue;
    }
    const group = groups.get(last);
    if (group) group.push(key);
    else groups.set(last, [key]);
  }
  return groups;
}

function isSameOrder(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, at) => key === b[at]);
}
