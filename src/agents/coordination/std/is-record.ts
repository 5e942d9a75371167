/** Owns: values of unknown shape that came from outside. */

/** An object whose members are not known. */
export type UnknownRecord = Readonly<Record<string, unknown>>;

/** True when the value is an object, and no list. */
export function isRecord(value: unknown): value is UnknownRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
