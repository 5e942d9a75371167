/** Owns: whether the items of an array differ, in time that grows with their size alone; ajv compares each with each. */
import type { WorkMeter } from "./work-meter.ts";

/** Characters that are read in the time of a unit. */
const CHARS_PER_UNIT = 16;

/** True where no two items are equal as JSON values; spends work of the meter, which throws once it is spent. */
export function areDistinct(items: readonly unknown[], meter: WorkMeter): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = formatCanonical(item, meter);
    meter.spend(1 + text.length / CHARS_PER_UNIT);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

/**
 * Formats a value as JSON with sorted keys, the same for equal values. Outputs have at most 32 levels, so this may
 * recurse.
 */
function formatCanonical(value: unknown, meter: WorkMeter): string {
  meter.spend(1);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((each) => formatCanonical(each, meter)).join(",")}]`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${formatCanonical(each, meter)}`).join(",")}}`;
}
