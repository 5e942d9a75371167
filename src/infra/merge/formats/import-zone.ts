/**
 * Owns: a program as pieces: what is before its imports, the imports, what is behind them. Does not own: languages. The text
 * around the imports may be merged by line.
 */
import type { Tree } from "@lezer/common";
import type { Block, BlockEntry, Leaf } from "../pieces/pieces.ts";
import type { TextCut } from "../pieces/text-format.ts";
import { assertCanCut } from "./cannot-cut.ts";
import { cutList, type ListItem, type ListRange } from "./cut-list.ts";
import { findLineEnd, findLineStart } from "./text-lines.ts";

/** An import, as a language reads one. */
export interface ImportFound {
  /** From what it imports, and in which form. Each once in a program. */
  readonly key: string;
  readonly start: number;
  readonly end: number;
  /** The names that it gives to the program. */
  readonly names: readonly string[];
  /** Present where its place among the imports says something. */
  readonly isFixed?: true;
  /** Names in brackets. */
  readonly list?: ListRange & { readonly items: readonly ListItem[] };
}

/** Reading what is nested so deeply takes a hundred times as long as reading other programs. */
const BRACKETS_MAX = 2_000;

/**
 * Throws for a program with so many brackets that it may be expensive to parse; else does nothing. @throws CannotCut
 * `unsure`
 */
export function assertFewBrackets(text: string): void {
  assertCanCut((text.match(/[([{]/gu) ?? []).length <= BRACKETS_MAX);
}

/** Throws for a program whose syntax tree has an error; else does nothing. @throws CannotCut `broken` */
export function assertNoSyntaxError(tree: Tree): void {
  const cursor = tree.cursor();
  do assertCanCut(!cursor.type.isError, "broken");
  while (cursor.next());
}

/**
 * Cuts a program into the text before its imports, one entry for each import, and the text behind them. `imports`: its
 * first ones, with nothing but comments between them. @throws CannotCut where there is no import, where two bring the
 * same name, or import from the same place
 */
export function cutProgram(text: string, imports: readonly ImportFound[]): TextCut {
  const [first] = imports;
  assertCanCut(first !== undefined);
  const names = imports.flatMap((found) => found.names);
  assertCanCut(new Set(names).size === names.length, "broken");
  assertCanCut(new Set(imports.map(({ key }) => key)).size === imports.length);
  const start = findLineStart(text, first.start);
  const entries: BlockEntry[] = [];
  let at = start;
  for (const found of imports) {
    const { entry, end } = cutImport(text, found, at);
    entries.push(entry);
    at = end;
  }
  const fixed = imports.flatMap(({ key, isFixed }) => (isFixed ? [key] : []));
  return { root: createProgram(text, { start, end: at, entries }), fixed: JSON.stringify(fixed) };
}

function createProgram(
  text: string,
  {
    start,
    end,
    entries,
  }: { readonly start: number; readonly end: number; readonly entries: readonly BlockEntry[] },
): Block {
  const imports: Block = { kind: "block", open: "", entries, close: "" };
  return {
    kind: "block",
    open: "",
    entries: [
      createEntry("before", { kind: "leaf", text: text.slice(0, start), byLine: true }),
      createEntry("imports", imports),
      createEntry("behind", { kind: "leaf", text: text.slice(end), byLine: true }),
    ],
    close: "",
  };
}

function createEntry(key: string, body: Leaf | Block): BlockEntry {
  return { key, lead: "", head: "", body, trail: "" };
}

/** Cuts one import, which has its lines for itself. */
function cutImport(
  text: string,
  { key, start, end: contentEnd, list }: ImportFound,
  from: number,
): { readonly entry: BlockEntry; readonly end: number } {
  const lineStart = findLineStart(text, start);
  const end = findLineEnd(text, contentEnd);
  assertCanCut(lineStart >= from && start === lineStart);
  assertCanCut(
    /^[ \t]*(?:\/\/[^\n]*|#[^\n]*|\/\*[^\n]*\*\/[ \t]*)?\r?\n?$/u.test(text.slice(contentEnd, end)),
  );
  const lead = text.slice(from, lineStart);
  if (!list)
    return {
      entry: { key, lead, head: "", body: { kind: "leaf", text: text.slice(start, end) }, trail: "" },
      end,
    };
  const body = cutList(text, list, list.items);
  assertCanCut(body !== undefined);
  const head = text.slice(start, list.start);
  return { entry: { key, lead, head, body, trail: text.slice(list.end, end) }, end };
}
