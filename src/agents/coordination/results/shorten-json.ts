/** Owns: shortening JSON so that it stays JSON: long texts lose their middle, and members are left out. Numbers stay as written. */
import type { ReadOn } from "./read-on.ts";
import { cutHead, cutTail } from "./cut-text.ts";

export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Reading more takes longer than the host's event loop should wait. */
const READ_CHARS_MAX = 1_000_000;
/** Keeping the numbers of more values as they are written takes longer, too. */
const EXACT_VALUES_MAX = 20_000;

/** How long a text may be, and how its reader is told to read on. */
export interface ShorteningOptions {
  readonly charsMax: number;
  readonly readOn: ReadOn;
}

/** The member that says what is left out. */
const NOTE = "_shortened";

/**
 * Returns a JSON object or list, in a block of code or not, shortened and still valid JSON; `undefined` for other
 * texts. A text that is too long to read counts as JSON by its first and last character.
 */
export function shortenJsonText(text: string, shortening: ShorteningOptions): string | undefined {
  const trimmed = text.trim();
  // A longer word names no language, and would leave no room for what is in the block.
  const block = /^```[a-z]{0,20}\n/u.exec(trimmed)?.[0];
  if (block === undefined || !trimmed.endsWith("```")) return shortenBareJson(trimmed, shortening);
  const charsMax = shortening.charsMax - block.length - CLOSING.length;
  const { readOn } = shortening;
  const inner = shortenBareJson(trimmed.slice(block.length, -CLOSING.length).trim(), { charsMax, readOn });
  return inner && `${block}${inner}${CLOSING}`;
}

const CLOSING = "\n```";

/**
 * Shortens JSON that is not in a block of code; `undefined` for a text that is no object or list. A text that is too
 * long to read counts as one by its first and last character.
 */
function shortenBareJson(json: string, shortening: ShorteningOptions): string | undefined {
  if (!isLikeJsonContainer(json)) return undefined;
  if (json.length > READ_CHARS_MAX) return JSON.stringify(createExcerpt(json, shortening));
  try {
    const value = parseExactly(json);
    return JSON.stringify(
      value === undefined ? createExcerpt(json, shortening) : shortenWithNote(value, shortening),
    );
  } catch {
    return undefined;
  }
}

function isLikeJsonContainer(text: string): boolean {
  return (text.startsWith("{") && text.endsWith("}")) || (text.startsWith("[") && text.endsWith("]"));
}

/** The parts of JSON that Node has and TypeScript does not declare yet. */
interface SourceJson {
  parse(
    text: string,
    revive: (key: string, value: JsonValue, context: { readonly source?: string }) => JsonValue,
  ): JsonValue;
  rawJSON(text: string): JsonValue;
  isRawJSON(value: JsonValue): boolean;
}

const SOURCE_JSON = JSON as unknown as SourceJson;

/**
 * Parses JSON. A number that would be written differently, like a long id or 1.0, keeps the text that it has; `undefined` where the JSON
 * may have such a number among more values than can be looked at one by one. @throws SyntaxError where it is not JSON
 */
function parseExactly(json: string): JsonValue | undefined {
  if (hasManyValues(json)) {
    const read = JSON.parse(json) as JsonValue;
    return NUMBER_THAT_CHANGES.test(json) ? undefined : read;
  }
  return SOURCE_JSON.parse(json, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source
      ? SOURCE_JSON.rawJSON(source)
      : value,
  );
}

/** True when JSON has more values than can be read with their numbers as they are written. */
function hasManyValues(json: string): boolean {
  // A string without an end is passed over as well: no text takes more than one pass.
  const signs = /"(?:[^"\\]|\\.)*"?|[,[{]/gsu;
  let values = 1;
  for (let sign = signs.exec(json); sign; sign = signs.exec(json)) {
    if (!sign[0].startsWith('"')) values += 1;
    if (values > EXACT_VALUES_MAX) return true;
  }
  return false;
}

/** Finds a number of 16 characters or more, with an exponent or a zero at its end, close to zero, or minus zero. Texts may look so, too. */
const NUMBER_THAT_CHANGES =
  /[[,:]\s*(?:-?(?:[\d.]{16}|[\d.]+e|\d+\.\d*0(?=[\s,\]}])|0\.0{6})|-0(?=[\s,\]}]))/iu;

/** How much of a value is kept. */
interface ShorteningMeasure {
  readonly textChars: number;
  readonly members: number;
  readonly depth: number;
}

/**
 * Returns a JSON value that is written in `charsMax` characters at most: the given one, or as much of it as fits with
 * a note of what is left out.
 */
export function shortenValue(value: JsonValue, shortening: ShorteningOptions): JsonValue {
  return JSON.stringify(value).length <= shortening.charsMax ? value : shortenWithNote(value, shortening);
}

/**
 * Returns as much of a value as fits, with a note where to read on. The note is there also where the whole value fits,
 * because its text was written in another way.
 */
function shortenWithNote(value: JsonValue, shortening: ShorteningOptions): JsonValue {
  const { charsMax, readOn } = shortening;
  // Adding the note copies the value.
  if (JSON.stringify(value).length <= charsMax) {
    const whole = addNote(value, readOn(0));
    if (JSON.stringify(whole).length <= charsMax) return whole;
  }
  for (let step = 1; charsMax >> step > TEXT_CHARS_MIN; step += 1) {
    const measure = {
      textChars: charsMax >> step,
      members: Math.max(2, 1_024 >> step),
      depth: Math.max(2, 12 - step),
    };
    const shortened = addNote(shortenByMeasure(value, measure), readOn(0));
    if (JSON.stringify(shortened).length <= charsMax) return shortened;
  }
  return createExcerpt(JSON.stringify(value), shortening);
}

const TEXT_CHARS_MIN = 16;

/** Adds a note to a value, in place of one from somebody else, which would say how to read another text. */
function addNote(value: JsonValue, note: string): JsonValue {
  if (isList(value)) return [...value, note];
  if (typeof value !== "object" || value === null) return { [NOTE]: note, value };
  const { [NOTE]: _, ...rest } = value;
  return { [NOTE]: note, ...rest };
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function shortenByMeasure(value: JsonValue, measure: ShorteningMeasure): JsonValue {
  if (typeof value === "string") return shortenString(value, measure.textChars);
  if (typeof value !== "object" || value === null || SOURCE_JSON.isRawJSON(value)) return value;
  if (measure.depth === 0) return isList(value) ? `(${value.length} items left out)` : "(an object left out)";
  const inner = { ...measure, depth: measure.depth - 1 };
  return isList(value) ? shortenList(value, inner) : shortenObject(value, inner);
}

function shortenString(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const head = cutHead(text, Math.ceil(charsMax / 2));
  const tail = cutTail(text, charsMax >> 2);
  return `${head} (... ${text.length - head.length - tail.length} characters left out ...) ${tail}`;
}

function shortenList(list: readonly JsonValue[], measure: ShorteningMeasure): JsonValue {
  const keep = (item: JsonValue): JsonValue => shortenByMeasure(item, measure);
  if (list.length <= measure.members) return list.map(keep);
  const kept = measure.members - 1;
  return [
    ...list.slice(0, kept).map(keep),
    `(${list.length - kept - 1} items left out)`,
    ...list.slice(-1).map(keep),
  ];
}

function shortenObject(object: { readonly [key: string]: JsonValue }, measure: ShorteningMeasure): JsonValue {
  const keys = Object.keys(object);
  const kept = keys.filter((key) => key.length <= KEY_CHARS_MAX).slice(0, measure.members);
  const leftOut = keys.length - kept.length;
  const shortened = kept.map((key) => [key, shortenByMeasure(object[key] as JsonValue, measure)] as const);
  if (leftOut > 0) shortened.push(["_leftOut", `${leftOut} members`]);
  return Object.fromEntries(shortened);
}

const KEY_CHARS_MAX = 200;

/** Returns the beginning and the end of JSON as texts, for a value whose form is not kept. */
function createExcerpt(json: string, { charsMax, readOn }: ShorteningOptions): JsonValue {
  const note = readOn(0);
  for (let chars = charsMax; ; chars >>= 1) {
    const excerpt = {
      [NOTE]: note,
      begins: cutHead(json, chars - (chars >> 2)),
      ends: cutTail(json, chars >> 2),
    };
    if (chars === 0 || JSON.stringify(excerpt).length <= charsMax) return excerpt;
  }
}
