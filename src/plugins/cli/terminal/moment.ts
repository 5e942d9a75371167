/** Owns: how a time is named in an option: as such, or as how long ago it was. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { EpochMs } from "../../../agents/coordination/contracts/ids.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const AGO = /^(\d{1,9})([smhdw])$/u;
const DATE = /^\d{4}-\d{2}-\d{2}$/u;
const DAY_CHARS = "2026-01-31".length;
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?$/u;

interface MomentOf {
  readonly option: string;
  readonly now: EpochMs;
}

/**
 * Returns the time that a text names, in epoch milliseconds: a date with or without time, which is in UTC where it
 * names no zone, or how long ago, such as `2h`. @throws CoordinationError `INPUT_INVALID`
 */
export function parseMoment(text: string, { option, now }: MomentOf): EpochMs {
  const atMs = parseAgo(text, now) ?? parseInstant(text);
  if (atMs !== undefined && !Number.isNaN(atMs)) return Math.max(0, atMs) as EpochMs;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${option}: expected a time such as 2026-01-31T12:00:00Z or how long ago, such as 45s, 30m, 2h, 7d or 2w, ` +
      `got ${JSON.stringify(text)}`,
  );
}

/** Parses how long ago it was, like `2h`, to a time in ms; `undefined` for any other text. */
function parseAgo(text: string, now: EpochMs): number | undefined {
  const [, count, unit = ""] = AGO.exec(text) ?? [];
  return count === undefined ? undefined : now - Number(count) * (UNIT_MS[unit] ?? Number.NaN);
}

function parseInstant(text: string): number | undefined {
  if (!isCalendarDay(text.slice(0, DAY_CHARS))) return undefined;
  if (DATE.test(text)) return Date.parse(text);
  const instant = INSTANT.exec(text);
  if (!instant) return undefined;
  return Date.parse(instant[1] === undefined ? `${text}Z` : text);
}

/** True where the calendar has this day: of 30 February `Date` makes 2 March. */
function isCalendarDay(text: string): boolean {
  const atMs = DATE.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text);
}
