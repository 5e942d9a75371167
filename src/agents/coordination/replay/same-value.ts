/** Owns: comparing what is recorded with what is decided again, and naming where they differ. */

/** Whatever the order of the fields; one that is `undefined` is not there. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return one === other || findDifference(one, other) === undefined;
}

export interface ValueDifference {
  readonly path: string;
  readonly recorded: unknown;
  readonly derived: unknown;
}

/** The first place where two values differ. */
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

/** True when `derived` has every field of `recorded` with the same value; it may have more. */
export function isWithin(recorded: unknown, derived: unknown): boolean {
  if (recorded === derived) return true;
  if (!isObject(recorded) || !isObject(derived) || Array.isArray(recorded) !== Array.isArray(derived))
    return false;
  return Object.keys(recorded).every((key) => isWithin(recorded[key], derived[key]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
