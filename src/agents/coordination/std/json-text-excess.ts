/**
 * Owns: whether a JSON text is nested too deeply or has too many values, found before it is parsed. A parser, and whatever walks
 * the value afterwards, pays for both; one pass over the text does not.
 */
import { parseJsonOrNothing } from "./parse-json.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;

/** How deep a JSON text may be, and how many values it may hold. */
export interface JsonTextBounds {
  /** Arrays and objects within each other. */
  readonly depthMax: number;
  readonly valuesMax: number;
}

/**
 * Returns which bound a JSON text certainly breaks, its depth or its number of values, without parsing it; `undefined`
 * where it breaks none. A text that is not JSON gives no certain answer.
 */
export function findJsonExcess(
  text: string,
  { depthMax, valuesMax }: JsonTextBounds,
): "depth" | "values" | undefined {
  let depth = 0;
  // A comma stands between two values, or two members with a value each.
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = findEndOfString(text, at);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth += 1;
        if (depth > depthMax) return "depth";
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
      case COMMA:
        values += 1;
        if (values > valuesMax) return "values";
        break;
      default:
    }
  }
  return undefined;
}

/** Parses a JSON text; `undefined` where it is none, or breaks a bound. */
export function parseBoundedJson(text: string, bounds: JsonTextBounds): unknown {
  return findJsonExcess(text, bounds) ? undefined : parseJsonOrNothing(text);
}

/** Returns the index of the quote that ends the string which begins at `start`. The end of the text where none does. */
function findEndOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1))
    if (!isEscaped(text, start, end)) return end;
  return text.length;
}

/** True when an odd number of backslashes stands before the place. */
function isEscaped(text: string, start: number, place: number): boolean {
  let before = place - 1;
  while (before > start && text.charCodeAt(before) === BACKSLASH) before -= 1;
  return (place - 1 - before) % 2 === 1;
}
