/** Owns: the imports of TypeScript and JavaScript: from where, in which form, and which names. */
import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/javascript";
import type { TextFormat } from "../pieces/text-format.ts";
import { assertCanCut, tryCut } from "./cannot-cut.ts";
import type { ListItem } from "./cut-list.ts";
import { cutProgram, assertFewBrackets, assertNoSyntaxError, type ImportFound } from "./import-zone.ts";
import { listChildNodes, readListItems } from "./syntax-nodes.ts";

/**
 * Creates the format by which programs in JavaScript or TypeScript are merged: the imports at their beginning one by
 * one. `dialect`: `ts`, `jsx`, or both.
 */
export function createTypescriptFormat(dialect: string): TextFormat {
  const language = parser.configure({ dialect });
  return {
    way: "imports",
    charsMax: 150_000,
    linesAtEnd: 1,
    cut: (text) =>
      tryCut(() => {
        assertFewBrackets(text);
        const tree = language.parse(text);
        assertNoSyntaxError(tree);
        return cutProgram(text, readFirstImports(text, listChildNodes(tree.topNode)));
      }),
  };
}

/** Nodes that may stand among the imports, or before them. */
const COMMENTS = new Set(["LineComment", "BlockComment"]);

/** Reads the first imports of a program, with nothing but comments between them. */
function readFirstImports(text: string, nodes: readonly SyntaxNode[]): ImportFound[] {
  const first = nodes.findIndex(({ name }) => name === "ImportDeclaration");
  const others = nodes.slice(first === -1 ? nodes.length : first);
  const end = others.findIndex(({ name }) => name !== "ImportDeclaration" && !COMMENTS.has(name));
  const zone = end === -1 ? others : others.slice(0, end);
  return zone.filter(({ name }) => name === "ImportDeclaration").map((node) => readImport(text, node));
}

function readImport(text: string, node: SyntaxNode): ImportFound {
  const children = listChildNodes(node);
  const textOf = ({ from, to }: SyntaxNode): string => text.slice(from, to);
  const source = children.find(({ name }) => name === "String");
  assertCanCut(source !== undefined && !children.some(({ name }) => COMMENTS.has(name)));
  const from = textOf(source).slice(1, -1);
  const names = children.filter(({ name }) => name === "VariableDefinition").map(textOf);
  const group = children.find(({ name }) => name === "ImportGroup");
  const hasStar = children.some(({ name }) => name === "Star");
  const kind = children.some(({ name }) => name === "type") ? "type" : "value";
  const form = hasStar ? "star" : "names";
  const range = { start: node.from, end: node.to };
  if (!group && names.length === 0) return { key: `effect ${from}`, ...range, names, isFixed: true };
  const key = `${kind} ${form} ${from}`;
  if (!group) return { key, ...range, names };
  const items = readImportedNames(text, group);
  const list = { start: group.from, end: group.to, bracketChars: 1, items } as const;
  return { key, ...range, names: [...names, ...items.map((item) => item.key)], list };
}

/** Reads the names in braces; the key of one is what the program calls it. */
function readImportedNames(text: string, group: SyntaxNode): ListItem[] {
  return readListItems(text, listChildNodes(group).slice(1, -1), (nodes) =>
    nodes.findLast(({ name }) => name === "VariableDefinition"),
  );
}
