/**
 * Owns: YAML as pieces: the entries of maps that have lines of their own. Lists, and what is written in brackets, are not
 * cut. Several documents, anchors, aliases, and keys that are no plain values are unsure.
 */
import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  visit,
  type Document,
  type YAMLMap,
} from "yaml";
import type { Block, BlockEntry } from "../pieces/pieces.ts";
import type { TextCut, TextFormat } from "../pieces/text-format.ts";
import type { ComparableValue } from "../pieces/merged-values.ts";
import { assertCanCut, tryCut } from "./cannot-cut.ts";
import { readComments, findLineEnd, findLineStart } from "./text-lines.ts";

export const yamlFormat: TextFormat = {
  way: "key",
  charsMax: 30_000,
  linesAtEnd: 1,
  cut: (text) => tryCut(() => cutYaml(text)),
};

/** Opening brackets that a text may have at most: values may be nested in them without lines of their own. */
const BRACKETS_MAX = 1_000;
const NESTED_IN_LINE = /^ *(?:[-?:][ \t]+){16}/mu;
function cutYaml(text: string): TextCut {
  assertCanCut((text.match(/[[{]/gu) ?? []).length <= BRACKETS_MAX && !NESTED_IN_LINE.test(text));
  const document = parseYamlText(text);
  assertPlainDocument(document);
  const { contents } = document;
  if (contents === null || isEmptyScalar(contents))
    return {
      root: createBlock({ open: "", entries: [], close: readComments(text, 0, text.length) }),
      value: new Map(),
    };
  assertCanCut(isBlockMap(contents) && contents.tag === undefined);
  const { keyStart } = readMember(text, contents.items[0]);
  const open = text.slice(0, findCommentStart(text, keyStart));
  const { entries, end } = cutMembers(text, contents, open.length);
  const close = readComments(text, end, text.length);
  return { root: createBlock({ open, entries, close }), value: readValue(text, contents) };
}

function createBlock({ open, entries, close }: Pick<Block, "open" | "entries" | "close">): Block {
  return { kind: "block", open, entries, close, isUnordered: true };
}

/** Finds where the comment right before the first entry begins. A text above it is about the whole file. */
function findCommentStart(text: string, keyStart: number): number {
  let start = keyStart;
  while (start > 0) {
    const before = findLineStart(text, start - 1);
    if (!text.slice(before, start).trim().startsWith("#")) break;
    start = before;
  }
  return start;
}

function isEmptyScalar(node: unknown): boolean {
  return isScalar(node) && node.value === null && node.source === "";
}

function isBlockMap(node: unknown): node is YAMLMap.Parsed {
  return isMap(node) && node.flow !== true && node.items.length > 0;
}

/** @throws CannotCut for what says more than the value at its place. */
function assertPlainDocument(document: Document.Parsed): void {
  visit(document, {
    Node: (_, node) => {
      assertCanCut(!isAlias(node) && node.anchor === undefined);
    },
  });
  const { docEnd } = document.directives;
  assertCanCut(!docEnd);
}

/** A member of a map, and where it stands in the text. */
interface MapMember {
  readonly key: string;
  readonly keyStart: number;
  readonly value: unknown;
  readonly contentEnd: number;
}

/** @throws CannotCut for a key that is no plain value at the start of a line. */
function readMember(text: string, pair: unknown): MapMember {
  assertCanCut(isPair(pair) && isScalar(pair.key));
  const { key, value } = pair;
  assertCanCut(key.range !== null && key.range !== undefined);
  const [start, keyEnd] = key.range;
  const keyStart = findLineStart(text, start);
  assertCanCut(/^ *$/u.test(text.slice(keyStart, start)) && key.tag === undefined);
  const type = typeof key.value;
  assertCanCut(type === "string" || type === "number" || type === "boolean");
  const contentEnd = isNode(value) && value.range ? value.range[1] : keyEnd;
  return { key: `${type} ${String(key.value)}`, keyStart, value, contentEnd };
}

/** Cuts the members of a map into entries, each with the comments before it. Returns where they end, too. */
function cutMembers(
  text: string,
  map: YAMLMap.Parsed,
  from: number,
): { readonly entries: readonly BlockEntry[]; readonly end: number } {
  const entries: BlockEntry[] = [];
  let at = from;
  for (const pair of map.items) {
    const member = readMember(text, pair);
    const lead = readComments(text, at, member.keyStart);
    const cut = cutMember(text, member);
    entries.push({ key: member.key, lead, ...cut.pieces });
    at = cut.end;
  }
  return { entries, end: at };
}

function cutMember(
  text: string,
  { keyStart, value, contentEnd }: MapMember,
): { readonly pieces: Pick<BlockEntry, "head" | "body" | "trail">; readonly end: number } {
  const headEnd = findLineEnd(text, keyStart + 1);
  if (isBlockMap(value) && value.tag === undefined && readMember(text, value.items[0]).keyStart >= headEnd) {
    const { entries, end } = cutMembers(text, value, headEnd);
    const body = createBlock({ open: "", entries, close: "" });
    return { pieces: { head: text.slice(keyStart, headEnd), body, trail: "" }, end };
  }
  const end = findLineEnd(text, contentEnd);
  return { pieces: { head: "", body: { kind: "leaf", text: text.slice(keyStart, end) }, trail: "" }, end };
}

/** Returns what a node says: a map of its members, or else a text that is equal for equal values only. */
function readValue(text: string, node: unknown): ComparableValue {
  if (isMap(node) && node.tag === undefined && !node.flow) {
    const entries = node.items.map(({ key, value }) => {
      assertCanCut(isScalar(key));
      return [`${typeof key.value} ${String(key.value)}`, readValue(text, value)] as const;
    });
    return new Map(entries);
  }
  return formatValue(node);
}

/**
 * Formats a value as a text that is equal for equal values only. A plain scalar keeps its text, so that 1.0 and 1
 * differ; a string in quotes is what it stands for.
 */
function formatValue(node: unknown): string {
  if (node === null || node === undefined) return "";
  assertCanCut(isNode(node));
  const tag = node.tag ?? "";
  if (isScalar(node))
    return `${tag} ${node.type === "PLAIN" ? `plain ${node.source ?? ""}` : JSON.stringify(node.value)}`;
  if (isSeq(node)) return `${tag} [${node.items.map(formatValue).join(", ")}]`;
  assertCanCut(isMap(node));
  const members = node.items.map(({ key, value }) => `${formatValue(key)}: ${formatValue(value)}`);
  return `${tag} {${members.join(", ")}}`;
}

function parseYamlText(text: string): Document.Parsed {
  const document = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
  assertCanCut(!document.errors.some(({ code }) => code === "MULTIPLE_DOCS"));
  assertCanCut(document.errors.length === 0, "broken");
  return document;
}
