/**
 * Owns: merging a text by what its format knows. Does not own: formats, or what is done where this is not sure.
 *
 * 1. Nothing is returned that cannot be cut again into what was merged, and, for formats of values, that does not say what
 *    the values of the two sides say together. The values are merged without the pieces.
 * 2. The work is bounded by `charsMax` of the format.
 */
import {
  mergeBlocks,
  mergeMargin,
  mapSides,
  type MergeLeaf,
  type ThreeSides,
} from "./pieces/merge-pieces.ts";
import { formatBlock, hasSamePieces, type Block } from "./pieces/pieces.ts";
import type { TextCut, TextFormat } from "./pieces/text-format.ts";
import { isSameValue, mergeValues, type ComparableValue } from "./pieces/merged-values.ts";

export type MergedByFormat =
  | { readonly kind: "merged"; readonly text: string }
  /** `isReadable`: the format can read all three texts, so what comes of them must be readable, too. */
  | { readonly kind: "unsure"; readonly isReadable: boolean };

const BYTE_ORDER_MARK = "\uFEFF";
const UNREADABLE = { kind: "unsure", isReadable: false } as const;

/**
 * Returns the merge of three texts by their format; `unsure` where they are too large or cannot be cut into pieces,
 * where the changes contradict each other, or where the result is not proven to be right.
 */
export function mergeByFormat(
  format: TextFormat,
  texts: ThreeSides<string>,
  mergeLeaf: MergeLeaf,
): MergedByFormat {
  const allTexts = [texts.base, texts.left, texts.right];
  if (allTexts.reduce((chars, text) => chars + text.length, 0) > format.charsMax) return UNREADABLE;
  const marked = allTexts.filter((text) => text.startsWith(BYTE_ORDER_MARK)).length;
  const hasOddLineEnd = allTexts.some((text) => /\r(?!\n)/u.test(text));
  if (hasOddLineEnd || (marked !== 0 && marked !== allTexts.length)) return UNREADABLE;
  const mark = marked === 0 ? "" : BYTE_ORDER_MARK;
  const contents = mapSides(texts, (text) => text.slice(mark.length));
  const merged = mergePieces(format, contents, mergeLeaf);
  return merged.kind === "merged" ? { kind: "merged", text: mark + merged.text } : merged;
}

/**
 * Returns whether a text breaks the rules of a format, so that nothing can be cut from it; a leading byte order mark
 * is no fault.
 */
export function isBrokenForFormat(format: TextFormat, text: string): boolean {
  return format.cut(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text) === "broken";
}

/** Cuts the texts, merges their pieces and joins them; unsure unless the joined text can be cut into the same. */
function mergePieces(format: TextFormat, texts: ThreeSides<string>, mergeLeaf: MergeLeaf): MergedByFormat {
  const cuts = cutSides(format, texts);
  if (typeof cuts === "string") return { kind: "unsure", isReadable: cuts !== "broken" };
  const unsure = { kind: "unsure", isReadable: true } as const;
  const fixed = new Set([cuts.base.fixed, cuts.left.fixed, cuts.right.fixed]);
  const root = fixed.size === 1 ? mergeBlocks(mapSides(cuts, rootOf), mergeLeaf) : undefined;
  if (!root) return unsure;
  const end = mergeMargin(mapSides(cuts, ({ end: lineEnds }) => lineEnds)) ?? cuts.left.end;
  const text = joinText(format, root, end);
  return isMergeProven(format, { text, root, cuts }) ? { kind: "merged", text } : unsure;
}

function rootOf({ root }: TextCut): Block {
  return root;
}

/** Cuts the three texts. Returns "broken" where one cannot be read, else "unsure" where one cannot be cut. */
function cutSides(format: TextFormat, texts: ThreeSides<string>): ThreeSides<CutText> | "unsure" | "broken" {
  const { base, left, right } = mapSides(texts, (text) => cutText(format, text));
  if (base === "broken" || left === "broken" || right === "broken") return "broken";
  if (base === "unsure" || left === "unsure" || right === "unsure") return "unsure";
  return { base, left, right };
}

interface CutText extends TextCut {
  /** The ends of lines at the end of the text, which its pieces do not have. */
  readonly end: string;
}

/** Cuts a text, after giving it as many ends of lines as its format wants. Its value is that of the text as it was. */
function cutText(format: TextFormat, text: string): CutText | "unsure" | "broken" {
  const ended = normalizeEnd(text, format.linesAtEnd);
  const cut = format.cut(ended.text);
  if (typeof cut === "string") return cut;
  if (cut.value === undefined || ended.text === text) return { ...cut, end: ended.end };
  const whole = format.cut(text);
  if (typeof whole === "string" || whole.value === undefined) return "unsure";
  return { ...cut, value: whole.value, end: ended.end };
}

/** Takes the ends of lines off the end of a text, and gives it as many as its format wants. */
function normalizeEnd(text: string, lines: number): { readonly text: string; readonly end: string } {
  if (lines === 0) return { text, end: "" };
  const length = countCharsBeforeLineEnds(text);
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const end = text.slice(length);
  return { text: length === 0 ? "" : text.slice(0, length) + newline.repeat(lines), end };
}

/** Counts the characters before the ends of lines that a text ends with. */
function countCharsBeforeLineEnds(text: string): number {
  let length = text.length;
  while (length > 0 && (text[length - 1] === "\n" || text[length - 1] === "\r")) length -= 1;
  return length;
}

/** Joins the pieces and puts the ends of lines behind them that were taken off. */
function joinText({ linesAtEnd }: TextFormat, root: Block, end: string): string {
  const text = formatBlock(root);
  return linesAtEnd === 0 ? text : text.slice(0, countCharsBeforeLineEnds(text)) + end;
}

/** A merged text, with the texts it was made of. */
interface MergeProposal {
  readonly text: string;
  readonly root: Block;
  readonly cuts: ThreeSides<TextCut>;
}

/** Cuts a merged text again, and returns whether its pieces and its value are what was merged. */
function isMergeProven(format: TextFormat, { text, root, cuts }: MergeProposal): boolean {
  const again = cutText(format, text);
  if (typeof again === "string" || !hasSamePieces(root, again.root) || again.fixed !== cuts.base.fixed)
    return false;
  const values = mapSides<TextCut, ComparableValue | undefined>(cuts, ({ value }) => value);
  if (again.value === undefined) return values.base === undefined;
  const expected = mergeValues(values);
  return expected !== undefined && isSameValue(expected.value, again.value);
}
