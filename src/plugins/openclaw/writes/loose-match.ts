/**
 * Owns: finding a text that was copied inexactly, as the host's `edit` does: without regard to typographic quotes,
 * dashes and spaces, compatibility forms, and blanks at the ends of lines. The result is a span of the text as it is.
 */
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";
import { findLineIndex, type SpendSearch } from "./find-lines.ts";

/** A part of a text, by where it begins and ends. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** `undefined` where it is not there, is there more than once, or begins or ends within what counts as one. */
export type LooseFinder = (wanted: string) => TextSpan | undefined;

/** Taking a longer text apart into characters takes more than a fifth of a second. */
const LOOSE_MAX = 500_000;

/**
 * Creates the function that returns the only span of this text that matches another one loosely; `undefined` where
 * none or several do, or an end is within a character. Its costs go to `spend`, which may throw.
 */
export function createLooseFinder(text: string, spend: SpendSearch): LooseFinder {
  let index: LooseIndex | undefined;
  return (wanted) => {
    if (Math.max(text.length, wanted.length) > LOOSE_MAX) spend(Infinity);
    const loose = normalizeLoosely(wanted);
    if (loose === "") return undefined;
    index ??= createLooseIndex(text);
    // The compatibility form of a character has up to 18 characters.
    if (loose.length < index.loose.length) spend(index.loose.length * loose.length);
    const at = findOnlyOccurrence(index.loose, loose);
    return at === undefined ? undefined : findSourceSpan(index, at, at + loose.length);
  };
}

/**
 * Returns the index of a text that occurs once in another; `undefined` where it occurs never or several times.
 * Occurrences do not overlap: "aa" occurs once in "aaa".
 */
export function findOnlyOccurrence(text: string, wanted: string): number | undefined {
  const at = text.indexOf(wanted);
  return at === -1 || text.includes(wanted, at + wanted.length) ? undefined : at;
}

interface LooseIndex {
  readonly loose: string;
  readonly lines: readonly LooseLine[];
  /** Where each place of the compatibility form is in the text; -1 within a character. Absent: at the same place. */
  readonly sources: Int32Array | undefined;
  /** The text cannot be taken apart into characters that are composed one by one. */
  readonly entangled: boolean;
}

interface LooseLine {
  /** In the loose form. */
  readonly start: number;
  /** In the compatibility form, the line's begin, its end without blanks and its end. */
  readonly from: number;
  readonly kept: number;
  readonly to: number;
}

function normalizeLoosely(text: string): string {
  return foldCharacters(trimLineEnds(text.normalize("NFKC")));
}

function trimLineEnds(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/**
 * Returns the text with typographic quotes, dashes and spaces as plain ones. One character becomes one, so that places
 * stay the same.
 */
export function foldCharacters(text: string): string {
  return text
    .replace(/[\u2018\u2019\u201A\u201B]/gu, "'")
    .replace(/[\u201C-\u201F]/gu, '"')
    .replace(/[\u2010-\u2015\u2212]/gu, "-")
    .replace(/[\u00A0\u2002-\u200A\u202F\u205F\u3000]/gu, " ");
}

function createLooseIndex(text: string): LooseIndex {
  const composed = text.normalize("NFKC");
  const plain = Buffer.byteLength(text) === text.length;
  const sources = plain ? undefined : mapSources(text, composed);
  return {
    loose: foldCharacters(trimLineEnds(composed)),
    lines: indexLooseLines(composed),
    sources,
    entangled: !plain && sources === undefined,
  };
}

function indexLooseLines(composed: string): readonly LooseLine[] {
  let start = 0;
  let from = 0;
  return composed.split("\n").map((line) => {
    const trimmed = line.trimEnd().length;
    const entry = { start, from, kept: from + trimmed, to: from + line.length };
    start += trimmed + 1;
    from += line.length + 1;
    return entry;
  });
}

/** Takes 10 ms to make, and is needed by a few edits only. */
const loadSegmenter = createOnceLoader(() => new Intl.Segmenter("en", { granularity: "grapheme" }));

/** Maps each place in the compatibility form to that in the text; `undefined` where it cannot be taken apart. */
function mapSources(text: string, composed: string): Int32Array | undefined {
  const sources = new Int32Array(composed.length + 1).fill(-1);
  sources[0] = 0;
  let at = 0;
  for (const { segment, index } of loadSegmenter().segment(text)) {
    const piece = segment.normalize("NFKC");
    if (!composed.startsWith(piece, at)) return undefined;
    at += piece.length;
    sources[at] = index + segment.length;
  }
  return at === composed.length ? sources : undefined;
}

function findSourceSpan(index: LooseIndex, from: number, to: number): TextSpan | undefined {
  if (index.entangled) return undefined;
  const start = findSourcePlace(index, from, "start");
  const end = findSourcePlace(index, to, "end");
  return start === undefined || end === undefined ? undefined : { start, end };
}

/**
 * Converts a place in the loose form to one in the text; `undefined` within a character. Blanks at the end of a line
 * belong to neither side: a span ends before them and begins behind them.
 */
function findSourcePlace(
  { lines, sources }: LooseIndex,
  place: number,
  side: "start" | "end",
): number | undefined {
  const line = lines[findLineIndex(lines, place)];
  if (!line) return undefined;
  const composed = line.from + (place - line.start);
  const at = composed < line.kept || side === "end" ? composed : line.to;
  const source = sources ? sources[at] : at;
  return source === -1 ? undefined : source;
}
