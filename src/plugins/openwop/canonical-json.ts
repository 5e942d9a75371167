/**
 * JSON in which the order of an object's keys does not show, for comparing what was asked. It is not JCS: keys that look
 * like array indexes come first.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => (isRecord(each) ? sorted(each) : each));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Without a prototype, so that a key `__proto__` is a key like any other. */
function sorted(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(value).toSorted()) copy[key] = value[key];
  return copy;
}
