/**
 * Owns: JSON, also with comments and a comma behind the last entry, as pieces. Lists are not cut: in them it says something
 * where a value stands.
 */
import type { Block, Leaf } from "../pieces/pieces.ts";
import type { TextCut, TextFormat } from "../pieces/text-format.ts";
import type { ComparableValue } from "../pieces/merged-values.ts";
import { CannotCut, assertCanCut, tryCut } from "./cannot-cut.ts";
import { cutList, type ListItem } from "./cut-list.ts";
import { readJsonTokens, TOKEN, type JsonToken } from "./json-tokens.ts";

/** Depth of maps and lists within each other. */
const DEPTH_MAX = 40;

export const jsonFormat: TextFormat = {
  way: "key",
  charsMax: 900_000,
  linesAtEnd: 0,
  cut: (text) => tryCut(() => cutJson(text)),
};

/** The tokens of a text, and how far they were read. */
interface TokenReading {
  readonly text: string;
  readonly tokens: readonly JsonToken[];
  at: number;
}

/** A value that was read, and where it stands in the text. */
interface LocatedValue {
  readonly value: ComparableValue;
  readonly body: Leaf | Block;
  readonly start: number;
  readonly end: number;
}

function cutJson(text: string): TextCut {
  const reading: TokenReading = { text, tokens: readJsonTokens(text), at: 0 };
  const { value, body, start, end } = readValue(reading, 0);
  assertCanCut(reading.at === reading.tokens.length, "broken");
  assertCanCut(body.kind === "block");
  const root = { ...body, open: text.slice(0, start) + body.open, close: body.close + text.slice(end) };
  return { root, value };
}

/** Reads the next value: a map as entries, a list or a scalar as one leaf. */
function readValue(reading: TokenReading, depth: number): LocatedValue {
  assertCanCut(depth <= DEPTH_MAX);
  const first = takeToken(reading);
  if (first.kind === TOKEN.openBrace) return readMap(reading, first, depth);
  if (first.kind === TOKEN.openBracket) return readList(reading, first, depth);
  assertCanCut(isScalar(first.kind), "broken");
  const { start, end } = first;
  const text = reading.text.slice(start, end);
  return { value: text, body: { kind: "leaf", text }, start, end };
}

function readMap(reading: TokenReading, { start }: JsonToken, depth: number): LocatedValue {
  const items: ListItem[] = [];
  const values = new Map<string, ComparableValue>();
  while (!isNext(reading, TOKEN.closeBrace)) {
    const { key, value, item } = readMember(reading, depth);
    assertCanCut(!values.has(key), "broken");
    values.set(key, value);
    items.push(item);
    if (item.commaAt === undefined) break;
  }
  const { end } = takeToken(reading, TOKEN.closeBrace);
  const body = cutList(reading.text, { start, end, bracketChars: 1 }, items);
  assertCanCut(body !== undefined);
  return { value: values, body, start, end };
}

function readMember(
  reading: TokenReading,
  depth: number,
): { key: string; value: ComparableValue; item: ListItem } {
  const name = takeToken(reading, TOKEN.string);
  takeToken(reading, TOKEN.colon);
  const { value, body, start, end } = readValue(reading, depth + 1);
  const head = reading.text.slice(name.start, start);
  const key = name.value;
  const item = { key, start: name.start, end, head, body };
  if (!isNext(reading, TOKEN.comma)) return { key, value, item };
  return { key, value, item: { ...item, commaAt: takeToken(reading).start } };
}

/** Reads a list as one leaf. Lists without comments are the same where their tokens are. */
function readList(reading: TokenReading, { start }: JsonToken, depth: number): LocatedValue {
  const from = reading.at;
  while (!isNext(reading, TOKEN.closeBracket)) {
    skipValue(reading, depth + 1);
    if (!isNext(reading, TOKEN.comma)) break;
    takeToken(reading);
  }
  const { end } = takeToken(reading, TOKEN.closeBracket);
  const tokens = reading.tokens.slice(from, reading.at);
  const text = reading.text.slice(start, end);
  const value = `[${tokens.map((token) => reading.text.slice(token.start, token.end)).join(" ")}`;
  const sense = tokens.some(({ isCommented }) => isCommented) ? text : value;
  return { value, body: { kind: "leaf", text, sense }, start, end };
}

/** Reads past a value in a list, which is not cut. Gives up where it is broken or too deep. */
function skipValue(reading: TokenReading, depth: number): void {
  assertCanCut(depth <= DEPTH_MAX);
  const { kind } = takeToken(reading);
  const isMap = kind === TOKEN.openBrace;
  if (!isMap && kind !== TOKEN.openBracket) {
    assertCanCut(isScalar(kind), "broken");
    return;
  }
  const closing = isMap ? TOKEN.closeBrace : TOKEN.closeBracket;
  const keys = new Set<string>();
  while (!isNext(reading, closing)) {
    if (isMap) skipKey(reading, keys);
    skipValue(reading, depth + 1);
    if (!isNext(reading, TOKEN.comma)) break;
    takeToken(reading);
  }
  takeToken(reading, closing);
}

function skipKey(reading: TokenReading, keys: Set<string>): void {
  const { value: key } = takeToken(reading, TOKEN.string);
  takeToken(reading, TOKEN.colon);
  assertCanCut(!keys.has(key), "broken");
  keys.add(key);
}

function isScalar(kind: number): boolean {
  return kind >= TOKEN.null && kind <= TOKEN.number;
}

function isNext({ tokens, at }: TokenReading, kind: number): boolean {
  return tokens[at]?.kind === kind;
}

/** Returns the next token and goes on behind it. Gives up where there is none, or one of another kind. */
function takeToken(reading: TokenReading, kind?: number): JsonToken {
  const token = reading.tokens[reading.at];
  if (!token || (kind !== undefined && token.kind !== kind)) throw new CannotCut("broken");
  reading.at += 1;
  return token;
}
