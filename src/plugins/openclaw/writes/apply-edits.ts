/**
 * Owns: what the host's `edit` makes of a text. Where the tool would fail, so does this.
 *
 * 1. Texts are compared with line feeds only; the file keeps its own line endings, line by line, and its byte order mark.
 * 2. Every edit is looked for in the text as it was before all of them, exactly, then loosely, and must be there once.
 * 3. Edits do not overlap.
 *
 * Edits that would take long to find are not worked out; that they fail is not said.
 */
import type { ChangeProposal } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import {
  countLineEnds,
  createSearchBudget,
  findLineIndex,
  listLines,
  proposeWithinBudget,
  type SpendSearch,
} from "./find-lines.ts";
import { createLooseFinder, findOnlyOccurrence, type LooseFinder, type TextSpan } from "./loose-match.ts";
import { readParam } from "./param.ts";

/** A text to find, and the text that takes its place. */
export interface TextEdit {
  readonly oldText: string;
  readonly newText: string;
}

const FAILS: ChangeProposal = { kind: "fails" };
export const BYTE_ORDER_MARK = "\uFEFF";

/** Returns a text without the byte order mark with which it may begin. */
export function removeByteOrderMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Returns the edits among the arguments of an `edit` call; `undefined` where the tool would refuse them. */
export function readEdits(value: unknown): readonly TextEdit[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const edits = value.map(readEdit);
  return edits.every((edit) => edit !== undefined) ? edits : undefined;
}

function readEdit(value: unknown): TextEdit | undefined {
  const oldText = readParam(value, "oldText");
  const newText = readParam(value, "newText");
  if (typeof oldText !== "string" || typeof newText !== "string" || oldText.trim() === "") return undefined;
  return { oldText, newText };
}

/**
 * Returns the text that the host's `edit` will make of a file's text, that it will fail, or that this would take too
 * long to tell.
 */
export function proposeTextAfterEdits(
  before: string | undefined,
  edits: readonly TextEdit[] | undefined,
): ChangeProposal {
  if (before === undefined || edits === undefined) return FAILS;
  const mark = before.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  return proposeWithinBudget(() => {
    const after = applyEdits(before.slice(mark.length), edits);
    return after === undefined ? FAILS : { kind: "text", text: (mark + after).toWellFormed() };
  });
}

/** An edit with the part of the text that it replaces. */
interface PlacedEdit extends TextSpan {
  readonly newText: string;
  readonly exact: boolean;
  readonly changes: boolean;
}

/** Returns the text with the edits, in its own line endings; `undefined` where the tool would not make them. */
function applyEdits(original: string, edits: readonly TextEdit[]): string | undefined {
  const hasReturns = original.includes("\r");
  const spend = createSearchBudget(SEARCH_MAX);
  if (hasReturns) spend(countLineEnds(original) * LINE_COST);
  const text = withLineFeeds(original);
  const placed = findEditPlaces(text, edits, spend);
  if (!placed) return undefined;
  const changes = placed.filter((edit) => edit.changes);
  if (hasOverlap(placed.filter((edit) => edit.exact || edit.changes))) return undefined;
  if (hasOverlap(placed.filter((edit) => !edit.changes))) return undefined;
  const after = spliceEdits(text, changes.toSorted(compareStarts));
  if (after === text) return original;
  return hasReturns ? applyInOwnEndings(original, text, changes) : after;
}

/** The engine's search may take the product of both lengths: 0.7 s at 10^10. All edits of a call together have this much. */
const SEARCH_MAX = 5e8;
/** Taking a line with its ending takes as long as so much of a search. */
const LINE_COST = 1_000;

/**
 * Finds where each edit is in the text; `undefined` where one is not there once. The costs of all exact searches are
 * spent before the first is made.
 */
function findEditPlaces(
  text: string,
  edits: readonly TextEdit[],
  spend: SpendSearch,
): readonly PlacedEdit[] | undefined {
  const wantedTexts = edits.map(({ oldText }) => withLineFeeds(oldText));
  for (const wanted of wantedTexts) if (wanted.length < text.length) spend(text.length * wanted.length);
  const find = createLooseFinder(text, spend);
  const placed: PlacedEdit[] = [];
  for (const [index, edit] of edits.entries()) {
    const at = findEditPlace(text, edit, wantedTexts[index] ?? "", find);
    if (!at) return undefined;
    placed.push(at);
  }
  return placed;
}

function findEditPlace(
  text: string,
  { oldText, newText }: TextEdit,
  wanted: string,
  find: LooseFinder,
): PlacedEdit | undefined {
  const exact = text.includes(wanted);
  const at = exact ? findOnlyOccurrence(text, wanted) : undefined;
  const span = exact ? at !== undefined && { start: at, end: at + wanted.length } : find(wanted);
  return span ? { ...span, newText: withLineFeeds(newText), exact, changes: oldText !== newText } : undefined;
}

function hasOverlap(edits: readonly TextSpan[]): boolean {
  const sorted = edits.toSorted(compareStarts);
  return sorted.some((edit, index) => edit.end > (sorted[index + 1]?.start ?? Infinity));
}

const compareStarts = (a: TextSpan, b: TextSpan): number => a.start - b.start;

function spliceEdits(text: string, edits: readonly (TextSpan & { readonly newText: string })[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { start, end, newText } of edits) {
    parts.push(text.slice(from, start), newText);
    from = end;
  }
  return parts.join("") + text.slice(from);
}

/** Returns the text with every line ending, CR or CRLF, replaced by LF. */
export function withLineFeeds(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/gu, "\n") : text;
}

/** Where a line begins in two forms of a text. */
interface LinePlace {
  /** Where it begins in the text with line feeds only, and in the text as it is. */
  readonly start: number;
  readonly originalStart: number;
  /** Empty at the end of the last line. */
  readonly ending: string;
}

/** Returns the text with the edits, or `undefined` where endings run into each other and would be other lines. */
function applyInOwnEndings(original: string, text: string, edits: readonly PlacedEdit[]): string | undefined {
  const lines = listLinePlaces(original);
  const common = findCommonEnding(original);
  const sorted = edits.toSorted(compareStarts);
  const after = spliceEdits(
    original,
    sorted.map(({ start, end, newText }) => ({
      start: findOriginalPlace(lines, start),
      end: findOriginalPlace(lines, end),
      newText: restoreEndings({ lines, text, common }, { start, end }, newText),
    })),
  );
  return withLineFeeds(after) === spliceEdits(text, sorted) ? after : undefined;
}

/** Returns each line, and behind the last one the end of the text. */
function listLinePlaces(original: string): readonly LinePlace[] {
  const lines: LinePlace[] = [];
  let start = 0;
  let originalStart = 0;
  for (const line of listLines(original)) {
    const ending = readLineEnding(line);
    lines.push({ start, originalStart, ending });
    start += line.length - Math.max(0, ending.length - 1);
    originalStart += line.length;
  }
  lines.push({ start, originalStart, ending: "" });
  return lines;
}

/** Returns the ending of a line: CRLF, LF, CR, or an empty text where it has none. */
export function readLineEnding(line: string): string {
  if (line.endsWith("\r\n")) return "\r\n";
  const last = line.at(-1);
  return last === "\n" || last === "\r" ? last : "";
}

/** Finds what the host takes for the file's own ending: that of its first line feed. */
function findCommonEnding(original: string): string {
  const at = original.indexOf("\n");
  return at > 0 && original[at - 1] === "\r" ? "\r\n" : "\n";
}

/** Converts a place in the text with line feeds only to that in the text as it is. */
function findOriginalPlace(lines: readonly LinePlace[], place: number): number {
  const line = lines[findLineIndex(lines, place)];
  return line ? line.originalStart + (place - line.start) : place;
}

interface LinedText {
  readonly text: string;
  readonly lines: readonly LinePlace[];
  readonly common: string;
}

/**
 * Gives a new text the line endings that its edit takes away, or its line's where that is none: in their order, the
 * last ones where fewer are needed, the last one again where more are.
 */
function restoreEndings(
  { text, lines, common }: LinedText,
  { start, end }: TextSpan,
  newText: string,
): string {
  const first = findLineIndex(lines, start);
  const removedLines = countLineFeeds(text.slice(start, end));
  const sources = lines.slice(first, first + Math.max(1, removedLines));
  const otherwise = lines[first]?.ending || lines[first - 1]?.ending || common;
  let next = Math.max(0, sources.length - countLineFeeds(newText));
  return newText.replace(/\n/gu, () => {
    const source = sources[next] ?? sources.at(-1);
    next += 1;
    return source?.ending || otherwise;
  });
}

function countLineFeeds(text: string): number {
  return text.split("\n").length - 1;
}
