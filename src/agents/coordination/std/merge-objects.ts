/** Owns: laying one object of plain data over another, at every depth. */
import { isRecord } from "./is-record.ts";

/** Returns `base` with the values of `over` in place of its own; objects are merged, all else is replaced. Changes neither. */
export function mergeObjects(
  base: Readonly<Record<string, unknown>>,
  over: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const names = new Set([...Object.keys(base), ...Object.keys(over)]);
  // Entries become properties of the object itself, also one that is called __proto__.
  return Object.fromEntries(
    [...names].map((name) => [name, mergeValues(readProperty(base, name), readProperty(over, name))]),
  );
}

function mergeValues(base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  return isRecord(base) && isRecord(over) ? mergeObjects(base, over) : over;
}

function readProperty(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
