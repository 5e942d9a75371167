/** Owns: comparing what is recorded with what is decided again, and naming where they differ. */

/**
 * True when two values are equal as JSON, whatever the order of the fields; a field that is `undefined` counts as
 * absent.
 */
export function isSameValue(one: unknown, other: unknown): boolean {
  return one === other || findDifference(one, other) === undefined;
}

export interface ValueDifference {
  readonly path: string;
  readonly recorded: unknown;
  readonly derived: unknown;
}

/**
 * Returns the first place where two JSON values differ, as a path with both values; `undefined` where they are equal.
 */
export function findDifference(recorded: unknown, derived: unknown, path = ""): ValueDifference | undefined {
  if (recorded === derived) return undefined;
  if (!isObject(recorded) || !isObject(derived) || Array.isArray(recorded) !== Array.isArray(derived))
    return { path, recorded, derived };
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(derived)])) {
    const place = path === "" ? key : `${path}.${key}`;
    const found = findDifference(recorded[key], derived[key], place);
    if (found) return found;
  }
  return undefined;
}

/** True when `derived` has every field of `recorded` with the same value, at every depth; it may have more. */
export function isContainedIn(recorded: unknown, derived: unknown): boolean {
  if (recorded === derived) return true;
  if (!isObject(recorded) || !isObject(derived) || Array.isArray(recorded) !== Array.isArray(derived))
    return false;
  return Object.keys(recorded).every((key) => isContainedIn(recorded[key], derived[key]));
}

/** True for an object or a list. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
