/** Owns: the values that a text of maps stands for, and what two sides made of them: what a merged text has to say. */
import type { ThreeSides } from "./merge-pieces.ts";

/** A map, or anything else as a text that is equal for equal values. */
export type ComparableValue = ReadonlyMap<string, ComparableValue> | string;

/** The result of merging a value: `undefined` in it where it was removed. */
export interface MergedValue {
  readonly value: ComparableValue | undefined;
}

/**
 * Returns the merge of a parsed value (a scalar or a map by keys) from its base and both sides, wrapped because it may
 * be absent; `undefined` where both sides made something else of the same value.
 */
export function mergeValues({
  base,
  left,
  right,
}: ThreeSides<ComparableValue | undefined>): MergedValue | undefined {
  if (isSameValue(left, right) || isSameValue(base, right)) return { value: left };
  if (isSameValue(base, left)) return { value: right };
  return isMap(base) && isMap(left) && isMap(right) ? mergeMaps({ base, left, right }) : undefined;
}

function mergeMaps({
  base,
  left,
  right,
}: ThreeSides<ReadonlyMap<string, ComparableValue>>): MergedValue | undefined {
  const merged = new Map<string, ComparableValue>();
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    const member = mergeValues({ base: base.get(key), left: left.get(key), right: right.get(key) });
    if (!member) return undefined;
    if (member.value !== undefined) merged.set(key, member.value);
  }
  return { value: merged };
}

/** Returns whether two parsed values are both absent, or the same whatever the order of their keys. */
export function isSameValue(a: ComparableValue | undefined, b: ComparableValue | undefined): boolean {
  if (!isMap(a) || !isMap(b)) return a === b;
  return a.size === b.size && [...a].every(([key, value]) => b.has(key) && isSameValue(value, b.get(key)));
}

function isMap(value: ComparableValue | undefined): value is ReadonlyMap<string, ComparableValue> {
  return value !== undefined && typeof value !== "string";
}
