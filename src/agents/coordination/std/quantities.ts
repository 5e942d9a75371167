/** Owns: how times, durations, sizes and counts read. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Formats a duration in at most seven characters, up to 99 days. */
export function formatDuration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)}ms`;
  if (ms < MINUTE_MS) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`;
  if (ms < HOUR_MS)
    return formatTwoUnits(ms, { unit: "m", unitMs: MINUTE_MS }, { unit: "s", unitMs: SECOND_MS });
  if (ms < DAY_MS)
    return formatTwoUnits(ms, { unit: "h", unitMs: HOUR_MS }, { unit: "m", unitMs: MINUTE_MS });
  return formatTwoUnits(ms, { unit: "d", unitMs: DAY_MS }, { unit: "h", unitMs: HOUR_MS });
}

/** A unit of time and its length in milliseconds. */
interface TimeUnit {
  readonly unit: string;
  readonly unitMs: number;
}

function formatTwoUnits(ms: number, large: TimeUnit, small: TimeUnit): string {
  const rest = Math.floor((ms % large.unitMs) / small.unitMs);
  return `${Math.floor(ms / large.unitMs)}${large.unit} ${String(rest).padStart(2, "0")}${small.unit}`;
}

/** Formats a time in UTC, to the second. */
export function formatInstant(atMs: number): string {
  return new Date(atMs)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

/** Formats a number of bytes with a unit, in steps of 1,000. */
export function formatBytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"] as const;
  let value = count;
  let index = 0;
  while (value >= 1_000 && index < units.length - 1) {
    value /= 1_000;
    index += 1;
  }
  return `${index === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[index] ?? "B"}`;
}

/** Formats a whole number with commas between thousands, and its noun in the singular or plural. */
export function formatCount(number: number, noun: string): string {
  const digits = String(number).replace(/\B(?=(?:\d{3})+$)/gu, ",");
  return `${digits} ${noun}${number === 1 ? "" : "s"}`;
}

/** Formats a number of tokens, in at most seven characters below a million millions. */
export function formatTokens(tokens: number): string {
  if (tokens < 100_000) return String(tokens).replace(/\B(?=(?:\d{3})+$)/gu, ",");
  if (tokens < 1_000_000) return `${Math.floor(tokens / 1_000)}k`;
  if (tokens < 1_000_000_000) return `${(Math.floor(tokens / 10_000) / 100).toFixed(2)}M`;
  return `${(Math.floor(tokens / 10_000_000) / 100).toFixed(2)}G`;
}

const MICRO = 1_000_000;

/** Formats millionths of a US dollar as dollars: to the cent from one dollar on, to the hundredth of a cent below. */
export function formatUsd(microUsd: number): string {
  if (microUsd > 0 && microUsd < 100) return "<$0.0001";
  return `$${(microUsd / MICRO).toFixed(microUsd < MICRO ? 4 : 2)}`;
}
