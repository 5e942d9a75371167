/**
 * Owns: TOML as pieces: tables, and what is in them. All tables of one `[[name]]` are one piece, because their order says
 * something.
 */
import { ParseError, parseTOML, type AST } from "toml-eslint-parser";
import type { Block, BlockEntry } from "../pieces/pieces.ts";
import type { TextCut, TextFormat } from "../pieces/text-format.ts";
import type { ComparableValue } from "../pieces/merged-values.ts";
import { CannotCut, assertCanCut, tryCut } from "./cannot-cut.ts";
import { readComments, findLineEnd, findLineStart } from "./text-lines.ts";

export const tomlFormat: TextFormat = {
  way: "key",
  charsMax: 100_000,
  linesAtEnd: 1,
  cut: (text) => tryCut(() => cutToml(text)),
};

/** Many brackets in a text are one within the other, or long lists; neither is merged by key. */
const BRACKETS_MAX = 2_000;
/** Names of a key, each of which is a map within the one before. */
const NAMES_MAX = 100;

interface Section {
  readonly path: readonly string[];
  /** It has the tables of one `[[name]]`; the first section is what stands before all tables. */
  readonly kind: "first" | "table" | "tables";
  readonly tables: AST.TOMLTable[];
  readonly members: readonly AST.TOMLKeyValue[];
}

function cutToml(text: string): TextCut {
  assertCanCut((text.match(/[[{]/gu) ?? []).length <= BRACKETS_MAX);
  const sections = groupSections(parseTomlText(text).body[0].body);
  const value = new Map<string, ComparableValue>();
  const entries: BlockEntry[] = [];
  let at = 0;
  for (const section of sections) {
    const { entry, end } = cutSection(text, section, at);
    entries.push(entry);
    addSection(text, value, section);
    at = end;
  }
  assertCanCut(new Set(entries.map(({ key }) => key)).size === entries.length);
  return { root: { kind: "block", open: "", entries, close: readComments(text, at, text.length) }, value };
}

function parseTomlText(text: string): AST.TOMLProgram {
  try {
    return parseTOML(text, { tomlVersion: "latest" });
  } catch (error) {
    if (error instanceof ParseError) throw new CannotCut("broken");
    throw error;
  }
}

/** Groups tables into sections: a table alone, or all tables of one `[[name]]` and of names below it. */
function groupSections(nodes: readonly (AST.TOMLKeyValue | AST.TOMLTable)[]): Section[] {
  const members = nodes.filter((node) => node.type === "TOMLKeyValue");
  const sections: Section[] = [{ path: [], kind: "first", tables: [], members }];
  const lists: (readonly string[])[] = [];
  for (const table of nodes.filter((node) => node.type === "TOMLTable")) {
    const path = readKeyPath(table.key);
    const last = sections.at(-1);
    if (last?.kind === "tables" && isPathWithin(path, last.path)) {
      last.tables.push(table);
      continue;
    }
    assertCanCut(!lists.some((list) => isPathWithin(path, list)));
    const kind = table.kind === "array" ? "tables" : "table";
    if (kind === "tables") lists.push(path);
    sections.push({ path, kind, tables: [table], members: table.body });
  }
  return sections;
}

function readKeyPath({ keys }: AST.TOMLKey): string[] {
  assertCanCut(keys.length <= NAMES_MAX);
  return keys.map((key) => (key.type === "TOMLBare" ? key.name : key.value));
}

/** True for the same path, too. */
function isPathWithin(path: readonly string[], above: readonly string[]): boolean {
  return above.every((name, at) => path[at] === name);
}

interface CutEntry {
  readonly entry: BlockEntry;
  readonly end: number;
}

/** Cuts a section into its members, or takes the tables of one `[[name]]` as one leaf. Returns where it ends. */
function cutSection(text: string, { path, kind, tables, members }: Section, from: number): CutEntry {
  const key = `${kind} ${JSON.stringify(path)}`;
  const [first] = tables;
  const start = first ? findLineStart(text, first.range[0]) : from;
  const lead = readComments(text, from, start);
  if (kind === "tables") {
    const end = findLineEnd(text, tables.at(-1)?.range[1] ?? start);
    return {
      entry: { key, lead, head: "", body: { kind: "leaf", text: text.slice(start, end) }, trail: "" },
      end,
    };
  }
  const headEnd = first ? findLineEnd(text, findHeaderEnd(text, first)) : start;
  const { block, end } = cutMembers(text, members, headEnd);
  return { entry: { key, lead, head: text.slice(start, headEnd), body: block, trail: "" }, end };
}

/** Finds the closing bracket of a table's header: the range of a key has no brackets. */
function findHeaderEnd(text: string, { key }: AST.TOMLTable): number {
  const end = text.indexOf("]", key.range[1]);
  assertCanCut(end !== -1);
  return end;
}

/** Cuts the members of a table into entries, each with the comments before it. Returns where they end, too. */
function cutMembers(
  text: string,
  members: readonly AST.TOMLKeyValue[],
  from: number,
): { readonly block: Block; readonly end: number } {
  const entries: BlockEntry[] = [];
  let at = from;
  for (const { key: name, range } of members) {
    const start = findLineStart(text, range[0]);
    const end = findLineEnd(text, range[1]);
    const key = JSON.stringify(readKeyPath(name));
    const lead = readComments(text, at, start);
    entries.push({ key, lead, head: "", body: { kind: "leaf", text: text.slice(start, end) }, trail: "" });
    at = end;
  }
  return { block: { kind: "block", open: "", entries, close: "", isUnordered: true }, end: at };
}

function addSection(
  text: string,
  root: Map<string, ComparableValue>,
  { path, kind, tables, members }: Section,
): void {
  if (kind === "tables") {
    const content = tables.map(({ range }) => text.slice(...range)).join("\n");
    addValue(root, path, content);
    return;
  }
  const table = openMap(root, path);
  for (const { key, value } of members) addValue(table, readKeyPath(key), text.slice(...value.range));
}

function addValue(root: Map<string, ComparableValue>, path: readonly string[], value: ComparableValue): void {
  const name = path.at(-1);
  assertCanCut(name !== undefined);
  const map = openMap(root, path.slice(0, -1));
  assertCanCut(!map.has(name));
  map.set(name, value);
}

/** Finds the map at a path, and makes what of it is missing. */
function openMap(root: Map<string, ComparableValue>, path: readonly string[]): Map<string, ComparableValue> {
  let map = root;
  for (const name of path) {
    const found = map.get(name) ?? new Map<string, ComparableValue>();
    assertCanCut(isOpenMap(found));
    map.set(name, found);
    map = found;
  }
  return map;
}

function isOpenMap(value: ComparableValue): value is Map<string, ComparableValue> {
  return value instanceof Map;
}
