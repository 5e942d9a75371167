/** Owns: shortening JSON so that it stays JSON: long texts lose their middle, and members are left out. */
import type { ReadOn } from "./read-on.ts";
import { cutHead, cutTail } from "./cut-text.ts";

export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Reading more takes longer than the host's event loop should wait. */
const READ_CHARS_MAX = 1_000_000;

export interface Shortening {
  readonly charsMax: number;
  readonly readOn: ReadOn;
}

/** The member that says what is left out. */
const NOTE = "_shortened";

/** Shortens a text that is JSON as a whole, in a block of code or not; `undefined` for every other text. */
export function shortenJsonText(text: string, shortening: Shortening): string | undefined {
  const trimmed = text.trim();
  const block = /^```[a-z]*\n/u.exec(trimmed)?.[0];
  if (block === undefined || !trimmed.endsWith("```")) return shortenBareJson(trimmed, shortening);
  const charsMax = shortening.charsMax - block.length - CLOSING.length;
  const { readOn } = shortening;
  const inner = shortenBareJson(trimmed.slice(block.length, -CLOSING.length).trim(), { charsMax, readOn });
  return inner && `${block}${inner}${CLOSING}`;
}

const CLOSING = "\n```";

function shortenBareJson(json: string, shortening: Shortening): string | undefined {
  if (!isLikeJson(json)) return undefined;
  if (json.length > READ_CHARS_MAX) return JSON.stringify(createExcerpt(json, shortening));
  try {
    return JSON.stringify(shortenValue(JSON.parse(json) as JsonValue, shortening));
  } catch {
    return undefined;
  }
}

function isLikeJson(text: string): boolean {
  return (text.startsWith("{") && text.endsWith("}")) || (text.startsWith("[") && text.endsWith("]"));
}

/** How much of a value is kept. */
interface Measure {
  readonly textChars: number;
  readonly members: number;
  readonly depth: number;
}

/** Returns a value whose JSON has `charsMax` characters at most: as much of the given one as fits. */
export function shortenValue(value: JsonValue, shortening: Shortening): JsonValue {
  const json = JSON.stringify(value);
  const { charsMax, readOn } = shortening;
  if (json.length <= charsMax) return value;
  for (let step = 1; charsMax >> step > TEXT_CHARS_MIN; step += 1) {
    const measure = {
      textChars: charsMax >> step,
      members: Math.max(2, 1_024 >> step),
      depth: Math.max(2, 12 - step),
    };
    const shortened = addNote(shortenWith(value, measure), readOn(0));
    if (JSON.stringify(shortened).length <= charsMax) return shortened;
  }
  return createExcerpt(json, shortening);
}

const TEXT_CHARS_MIN = 16;

function addNote(value: JsonValue, note: string): JsonValue {
  if (isList(value)) return [...value, note];
  if (typeof value !== "object" || value === null) return { [NOTE]: note, value };
  return { [NOTE]: note, ...value };
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function shortenWith(value: JsonValue, measure: Measure): JsonValue {
  if (typeof value === "string") return shortenString(value, measure.textChars);
  if (typeof value !== "object" || value === null) return value;
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

function shortenList(list: readonly JsonValue[], measure: Measure): JsonValue {
  const keep = (item: JsonValue): JsonValue => shortenWith(item, measure);
  if (list.length <= measure.members) return list.map(keep);
  const kept = measure.members - 1;
  return [
    ...list.slice(0, kept).map(keep),
    `(${list.length - kept - 1} items left out)`,
    ...list.slice(-1).map(keep),
  ];
}

function shortenObject(object: { readonly [key: string]: JsonValue }, measure: Measure): JsonValue {
  const entries = Object.entries(object);
  const kept = entries.filter(([key]) => key.length <= KEY_CHARS_MAX).slice(0, measure.members);
  const leftOut = entries.length - kept.length;
  const shortened = kept.map(([key, value]) => [key, shortenWith(value, measure)] as const);
  if (leftOut > 0) shortened.push(["_leftOut", `${leftOut} members`]);
  return Object.fromEntries(shortened);
}

const KEY_CHARS_MAX = 200;

/** Stands for a value whose form is not kept: the beginning and the end of its JSON, as texts. */
function createExcerpt(json: string, { charsMax, readOn }: Shortening): JsonValue {
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
