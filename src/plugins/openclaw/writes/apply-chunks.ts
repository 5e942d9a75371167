/**
 * Owns: what an update of the host's `apply_patch` makes of a text. Where the tool would fail, so does this.
 *
 * 1. Chunks are found in their order, each from where the one before ended: exactly, then without blanks at the ends of
 *    lines, then without blanks around them, then without regard to typographic characters. A place must be the only one.
 * 2. Kept lines stay as they are in the file. New lines take the endings of those that they replace, or of a neighbour.
 * 3. A text that would differ in line endings only is left as it is.
 * 4. Looking for the chunks costs of a budget, which throws where it does not suffice.
 */
import { BYTE_ORDER_MARK, readLineEnding, withLineFeeds } from "./apply-edits.ts";
import { countLineEnds, findOnlyRun, listLines, type SpendSearch } from "./find-lines.ts";
import { foldCharacters } from "./loose-match.ts";
import type { Chunk } from "./read-patch.ts";
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";

/** A line of a text, with its ending. */
interface SourceLine {
  readonly text: string;
  readonly ending: string;
}

/** The text that a patch is applied to, by lines. */
interface SourceText {
  readonly lines: readonly SourceLine[];
  /** The texts of the lines, with less regard to how they are written at each level. */
  readonly levels: readonly (() => readonly string[])[];
  readonly ending: string;
  readonly length: number;
  readonly spend: SpendSearch;
}

/** All updates of a file in a patch together may look at so many lines: 0.3 s. */
export const LOOKS_MAX = 4e7;
/** Taking a line out of a text takes as long as looking at so many, and writing it in another form at so many. */
const SPLIT_COST = 100;
const FORM_COST = 10;
/** Comparing so many characters takes as long as looking at a line. */
const CHARS_PER_LOOK = 10;

/** Lines that a chunk replaces, and those that take their place. */
interface LineReplacement {
  readonly at: number;
  readonly oldCount: number;
  readonly lines: readonly SourceLine[];
}

/**
 * Returns a file's text with the chunks of a patch applied in order, as the host's `apply_patch` does it; `undefined`
 * where one does not fit. The costs of searching are taken from `spend`, which may throw.
 */
export function applyChunks(
  before: string,
  chunks: readonly Chunk[],
  spend: SpendSearch,
): string | undefined {
  const mark = before.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const source = createSource(before.slice(mark.length), spend);
  const replacements: LineReplacement[] = [];
  let from = 0;
  for (const chunk of chunks) {
    const replacement = findReplacement(source, chunk, from);
    if (!replacement) return undefined;
    replacements.push(replacement);
    from = replacement.at + replacement.oldCount;
  }
  const after = mark + joinLines(applyReplacements(source.lines, replacements), source.ending);
  return isSameButForEndings(before, after) ? before : after;
}

function createSource(text: string, spend: SpendSearch): SourceText {
  spend(text.length + countLineEnds(text) * SPLIT_COST);
  const lines = listLines(text).map(toLine);
  const texts = lines.map((line) => line.text);
  return {
    lines,
    levels: NORMAL_FORMS.map((normal) =>
      createOnceLoader(() => {
        spend(text.length + texts.length * FORM_COST);
        return texts.map(normal);
      }),
    ),
    ending: lines[0]?.ending || "\n",
    length: text.length,
    spend,
  };
}

function toLine(line: string): SourceLine {
  const ending = readLineEnding(line);
  return { text: line.slice(0, line.length - ending.length), ending };
}

const NORMAL_FORMS: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  (line) => foldCharacters(line.trim()),
];

/** Finds what a chunk replaces behind `from`; `undefined` where it does not fit, or fits more than once. */
function findReplacement(source: SourceText, chunk: Chunk, from: number): LineReplacement | undefined {
  const behind = chunk.context === "" ? from : findLineBehindContext(source, chunk.context, from);
  if (behind === undefined) return undefined;
  if (chunk.oldLines.length === 0) return createInsertion(source, chunk, behind);
  const at = findOldLines(source, chunk.oldLines, behind, chunk.atEnd);
  if (at === "several") return undefined;
  if (at !== undefined) return createReplacement(source, chunk, at);
  // A patch often ends with an empty line that is not in the file.
  if (chunk.oldLines.at(-1) !== "") return undefined;
  const shorter = withoutLastLine(chunk);
  const shorterAt = findOldLines(source, shorter.oldLines, behind, chunk.atEnd);
  return typeof shorterAt === "number" ? createReplacement(source, shorter, shorterAt) : undefined;
}

/**
 * Returns the index of the line behind the only one from `from` on that fits the context; `undefined` where none fits,
 * or several do.
 */
function findLineBehindContext(source: SourceText, context: string, from: number): number | undefined {
  const at = findOldLines(source, [context], from, false);
  return typeof at === "number" ? at + 1 : undefined;
}

function withoutLastLine(chunk: Chunk): Chunk {
  const newLines = chunk.newLines.at(-1) === "" ? chunk.newLines.slice(0, -1) : chunk.newLines;
  return { ...chunk, oldLines: chunk.oldLines.slice(0, -1), newLines };
}

/** Finds where these lines are, exactly and then more and more loosely; `several` where more than once. */
function findOldLines(
  source: SourceText,
  wanted: readonly string[],
  from: number,
  atEnd: boolean,
): number | "several" | undefined {
  const last = source.lines.length - wanted.length;
  if (wanted.length === 0) return from;
  const begin = atEnd ? Math.max(from, last) : from;
  if (begin > last) return undefined;
  for (const [level, normal] of NORMAL_FORMS.entries()) {
    source.spend(source.lines.length - begin + wanted.length * FORM_COST + source.length / CHARS_PER_LOOK);
    const at = findOnlyRun(source.levels[level]?.() ?? [], wanted.map(normal), begin);
    if (at !== undefined) return at;
  }
  return undefined;
}

function createInsertion(source: SourceText, chunk: Chunk, behind: number): LineReplacement {
  const { lines } = source;
  const at = chunk.context !== "" && !chunk.atEnd ? behind : lines.length;
  const inserted = createNewLines(source, { at, oldCount: 0 }, chunk.newLines);
  const staysOpen = at === lines.length && lines.length > 0 && lines.at(-1)?.ending === "";
  return {
    at,
    oldCount: 0,
    lines: staysOpen ? inserted.with(-1, { text: inserted.at(-1)?.text ?? "", ending: "" }) : inserted,
  };
}

function createReplacement(source: SourceText, chunk: Chunk, at: number): LineReplacement {
  const { oldLines, keeps } = chunk;
  const parts: (readonly SourceLine[])[] = [];
  let oldFrom = 0;
  let newFrom = 0;
  for (const [index, kept] of keeps.entries()) {
    const line = kept === undefined ? undefined : source.lines[at + kept];
    if (kept === undefined || !line || kept >= oldLines.length || index >= chunk.newLines.length) continue;
    parts.push(
      createNewLines(
        source,
        { at: at + oldFrom, oldCount: kept - oldFrom },
        chunk.newLines.slice(newFrom, index),
      ),
    );
    parts.push([line]);
    oldFrom = kept + 1;
    newFrom = index + 1;
  }
  parts.push(
    createNewLines(
      source,
      { at: at + oldFrom, oldCount: oldLines.length - oldFrom },
      chunk.newLines.slice(newFrom),
    ),
  );
  return { at, oldCount: oldLines.length, lines: parts.flat() };
}

/** Lines that a chunk replaces. */
interface LineRange {
  readonly at: number;
  readonly oldCount: number;
}

/** Creates lines with the endings of the lines that they replace, or of a line nearby. */
function createNewLines(
  source: SourceText,
  { at, oldCount }: LineRange,
  texts: readonly string[],
): SourceLine[] {
  const replaced = source.lines.slice(at, at + oldCount);
  const nearby =
    replaced.find((line) => line.ending !== "")?.ending ||
    source.lines.at(at)?.ending ||
    source.lines.at(at - 1)?.ending ||
    source.ending;
  return texts.map((text, index) => ({
    text,
    ending: replaced[findCounterpart(index, texts.length, replaced.length)]?.ending ?? nearby,
  }));
}

/** Finds the replaced line that a new line takes its ending from; -1 for none. */
function findCounterpart(index: number, newCount: number, oldCount: number): number {
  if (oldCount === newCount) return index;
  if (index === newCount - 1) return oldCount - 1;
  return index < oldCount - 1 ? index : -1;
}

function applyReplacements(
  lines: readonly SourceLine[],
  replacements: readonly LineReplacement[],
): readonly SourceLine[] {
  const parts: (readonly SourceLine[])[] = [];
  let from = 0;
  for (const { at, oldCount, lines: inserted } of replacements) {
    parts.push(lines.slice(from, at), inserted);
    from = at + oldCount;
  }
  return [...parts, lines.slice(from)].flat();
}

function joinLines(lines: readonly SourceLine[], ending: string): string {
  const last = lines.length - 1;
  return lines.map((line, index) => line.text + (line.ending || (index < last ? ending : ""))).join("");
}

function isSameButForEndings(a: string, b: string): boolean {
  return normalizeEndings(a) === normalizeEndings(b);
}

/** Makes every line ending a line feed, and ends the last line with one. */
function normalizeEndings(text: string): string {
  const plain = withLineFeeds(text);
  return plain === "" || plain.endsWith("\n") ? plain : `${plain}\n`;
}
