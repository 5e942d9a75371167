/** Owns: the imports of Python: from where, and which names. */
import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/python";
import type { TextFormat } from "../pieces/text-format.ts";
import { assertCanCut, tryCut } from "./cannot-cut.ts";
import { cutProgram, assertFewBrackets, assertNoSyntaxError, type ImportFound } from "./import-zone.ts";
import { isComment, listChildNodes, readListItems } from "./syntax-nodes.ts";

export const pythonFormat: TextFormat = {
  way: "imports",
  charsMax: 150_000,
  linesAtEnd: 1,
  cut: (text) =>
    tryCut(() => {
      assertFewBrackets(text);
      const tree = parser.parse(text);
      assertNoSyntaxError(tree);
      return cutProgram(text, readFirstImports(text, listChildNodes(tree.topNode)));
    }),
};

const FUTURE = "from __future__";

/** Reads the first imports of a program, with nothing but comments between them. */
function readFirstImports(text: string, nodes: readonly SyntaxNode[]): ImportFound[] {
  const first = nodes.findIndex(({ name }) => name === "ImportStatement");
  const others = nodes.slice(first === -1 ? nodes.length : first);
  const end = others.findIndex((node) => node.name !== "ImportStatement" && !isComment(node));
  const zone = end === -1 ? others : others.slice(0, end);
  const imports = zone.filter(({ name }) => name === "ImportStatement").map((node) => readImport(text, node));
  const lastFuture = imports.findLastIndex(({ key }) => key === FUTURE);
  assertCanCut(
    imports.slice(0, lastFuture + 1).every(({ key }) => key === FUTURE),
    "broken",
  );
  return imports;
}

function readImport(text: string, node: SyntaxNode): ImportFound {
  assertCanCut(!text.slice(node.from, node.to).includes("\\"));
  const children = listChildNodes(node);
  return children[0]?.name === "from"
    ? readFromImport(text, node, children)
    : readPlainImport(text, node, children);
}

/**
 * Reads `import a.b, c as d`. Returns a name only for a single import with an alias: `import a.b` and `import a.c`
 * both bring the name `a` and do not contradict each other.
 */
function readPlainImport(
  text: string,
  { from: start, to: end }: SyntaxNode,
  children: readonly SyntaxNode[],
): ImportFound {
  assertCanCut(!children.some(isComment));
  const key = text.slice(start, end).replace(/\s+/gu, " ");
  const isAlone = !children.some(({ name }) => name === ",");
  const alias = children.findIndex(({ name }) => name === "as");
  const name = children[alias + 1];
  const names = isAlone && alias !== -1 && name ? [text.slice(name.from, name.to)] : [];
  return { key, start, end, names };
}

/** Reads `from a import b, c`. With `*` its place among the imports is fixed. */
function readFromImport(
  text: string,
  { from: start, to: end }: SyntaxNode,
  children: readonly SyntaxNode[],
): ImportFound {
  const importAt = children.findIndex(({ name }) => name === "import");
  const from = children.slice(1, importAt);
  assertCanCut(importAt !== -1 && from.length > 0 && !from.some(isComment));
  const key = `from ${from.map((node) => text.slice(node.from, node.to)).join("")}`;
  const names = children.slice(importAt + 1);
  if (names.some(({ name }) => name === "*"))
    return { key: `${key} *`, start, end, names: [], isFixed: true };
  const list = readNameList(text, names, end);
  return { key, start, end, names: list.items.map((item) => item.key), list };
}

type NameList = NonNullable<ImportFound["list"]>;

/** Reads the names behind `import`, in brackets or not. */
function readNameList(text: string, nodes: readonly SyntaxNode[], end: number): NameList {
  const [opening] = nodes;
  const closing = nodes.at(-1);
  const isInBrackets = opening?.name === "(" && closing?.name === ")";
  const items = readListItems(text, isInBrackets ? nodes.slice(1, -1) : nodes, (item) =>
    item.findLast(({ name }) => name === "VariableName"),
  );
  if (isInBrackets) return { start: opening.from, end: closing.to, bracketChars: 1, items };
  return { start: items[0]?.start ?? end, end, bracketChars: 0, items };
}
