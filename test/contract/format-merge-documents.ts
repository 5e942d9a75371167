/** Documents of every format, made of one tree, and how each is read: for the properties of merges by format. */
import { parser as javascript } from "@lezer/javascript";
import { parser as python } from "@lezer/python";
import type { Tree } from "@lezer/common";
import fc from "fast-check";
import { parse as parseJsonc, type ParseError } from "jsonc-parser";
import { parseTOML } from "toml-eslint-parser";
import { parseDocument } from "yaml";

/** An entry with a comment above it. */
export interface TreeEntry {
  readonly key: string;
  readonly comment: string;
  readonly value: string | readonly TreeEntry[];
}

export type DocumentTree = readonly TreeEntry[];

/** A side's change of one entry, in the order of the document. */
export interface TreeEdit {
  readonly kind: "keep" | "drop" | "change" | "comment" | "add" | "addShared" | "rename" | "swap";
  readonly number: number;
}

export const trees = fc
  .array(fc.record({ children: fc.nat(3), hasComment: fc.boolean() }), { minLength: 1, maxLength: 5 })
  .map((entries) =>
    entries.map(({ children, hasComment }, at) => ({
      key: `k${at}`,
      comment: hasComment ? `about k${at}` : "",
      value:
        children === 0
          ? `value ${at}`
          : Array.from({ length: children }, (_, child) => ({
              key: `k${at}_${child}`,
              comment: "",
              value: `value ${at} ${child}`,
            })),
    })),
  );

export const editLists = fc.array(
  fc.record({
    kind: fc.constantFrom<TreeEdit["kind"]>(
      "keep",
      "keep",
      "keep",
      "keep",
      "drop",
      "change",
      "comment",
      "add",
      "addShared",
      "rename",
      "swap",
    ),
    number: fc.nat(2),
  }),
  { maxLength: 14 },
);

/** Makes what a side makes of a tree. */
export function editTree(tree: DocumentTree, edits: readonly TreeEdit[], side: string): DocumentTree {
  const queue = [...edits];
  const editEntries = (entries: DocumentTree): DocumentTree => {
    const edited: TreeEntry[] = [];
    for (const entry of entries) {
      const edit = queue.shift();
      const value = typeof entry.value === "string" ? entry.value : editEntries(entry.value);
      const result = editEntry({ ...entry, value }, edit, side);
      if (edit?.kind === "swap") edited.unshift(...result);
      else edited.push(...result);
    }
    const seen = new Set<string>();
    return edited.filter(({ key }) => !seen.has(key) && seen.add(key));
  };
  return editEntries(tree);
}

function editEntry(entry: TreeEntry, edit: TreeEdit | undefined, side: string): TreeEntry[] {
  const { kind, number } = edit ?? { kind: "keep", number: 0 };
  switch (kind) {
    case "keep":
    case "swap":
      return [entry];
    case "drop":
      return [];
    case "change":
      return [typeof entry.value === "string" ? { ...entry, value: `changed by ${side} ${number}` } : entry];
    case "comment":
      return [{ ...entry, comment: `${side} of ${entry.key}` }];
    case "rename":
      return [{ ...entry, key: `${entry.key}${side}` }];
    case "add":
      return [
        entry,
        { key: `${entry.key}${side}${number}`, comment: `new ${side}`, value: `${side} ${number}` },
      ];
    case "addShared":
      return [entry, { key: `shared${number}`, comment: "", value: number === 0 ? "same" : side }];
  }
}

/** One format: how a tree is written in it, and whether a text can be read. */
export interface DocumentFormat {
  readonly path: string;
  readonly write: (tree: DocumentTree) => string;
  readonly canRead: (text: string) => boolean;
}

export const DOCUMENT_FORMATS: readonly DocumentFormat[] = [
  { path: "x.jsonc", write: (tree) => `${writeJson(tree, "")}\n`, canRead: isJsonc },
  { path: "x.json", write: (tree) => `${writeJson(withoutComments(tree), "")}\n`, canRead: isJson },
  { path: "package.json", write: (tree) => `${writeJson(withoutComments(tree), "")}\n`, canRead: isJson },
  { path: "x.yaml", write: (tree) => writeYaml(tree, ""), canRead: isYaml },
  { path: "x.toml", write: writeToml, canRead: isToml },
  { path: "x.md", write: (tree) => writeMarkdown(tree, "#"), canRead: () => true },
  {
    path: "x.ts",
    write: writeTypescript,
    canRead: (text) => isReadable(javascript.configure({ dialect: "ts" }).parse(text)),
  },
  { path: "x.py", write: writePython, canRead: (text) => isReadable(python.parse(text)) },
];

function withoutComments(tree: DocumentTree): DocumentTree {
  return tree.map(({ key, value }) => ({
    key,
    comment: "",
    value: typeof value === "string" ? value : withoutComments(value),
  }));
}

function writeJson(tree: DocumentTree, indent: string): string {
  if (tree.length === 0) return "{}";
  const members = tree.map(({ key, comment, value }) => {
    const written = typeof value === "string" ? JSON.stringify(value) : writeJson(value, `${indent}  `);
    return `${comment === "" ? "" : `${indent}  // ${comment}\n`}${indent}  ${JSON.stringify(key)}: ${written}`;
  });
  return `{\n${members.join(",\n")}\n${indent}}`;
}

function writeYaml(tree: DocumentTree, indent: string): string {
  return tree
    .map(({ key, comment, value }) => {
      const about = comment === "" ? "" : `${indent}# ${comment}\n`;
      if (typeof value === "string") return `${about}${indent}${key}: ${value}\n`;
      return `${about}${indent}${key}:${value.length === 0 ? " {}" : ""}\n${writeYaml(value, `${indent}  `)}`;
    })
    .join("");
}

function writeToml(tree: DocumentTree): string {
  const isTable = ({ value }: TreeEntry): boolean => typeof value !== "string";
  const members = tree.filter((entry) => !isTable(entry));
  return [...members, ...tree.filter(isTable)]
    .map(({ key, comment, value }) => {
      const about = comment === "" ? "" : `# ${comment}\n`;
      if (typeof value === "string") return `${about}${key} = ${JSON.stringify(value)}\n`;
      return `\n${about}[${key}]\n${writeToml(value)}`;
    })
    .join("");
}

function writeMarkdown(tree: DocumentTree, marks: string): string {
  return tree
    .map(({ key, comment, value }) => {
      const about = comment === "" ? "" : `${comment}\n\n`;
      if (typeof value === "string") return `${marks} ${key}\n\n${about}${value}\n\n`;
      return `${marks} ${key}\n\n${about}${writeMarkdown(value, `${marks}#`)}`;
    })
    .join("");
}

function writeTypescript(tree: DocumentTree): string {
  const imports = tree.map(({ key, comment, value }) => {
    const about = comment === "" ? "" : `// ${comment}\n`;
    if (typeof value === "string") return `${about}import ${key} from "${value}";\n`;
    const names = value.map((name) => `  ${name.key},\n`).join("");
    return `${about}import {\n${names}} from "${key}";\n`;
  });
  return `${imports.join("")}\nexport const a = 1;\n`;
}

function writePython(tree: DocumentTree): string {
  const imports = tree.map(({ key, comment, value }) => {
    const about = comment === "" ? "" : `# ${comment}\n`;
    if (typeof value === "string") return `${about}from ${value.replaceAll(" ", "_")} import ${key}\n`;
    if (value.length === 0) return `${about}import ${key}\n`;
    const names = value.map((name) => `    ${name.key},\n`).join("");
    return `${about}from ${key} import (\n${names})\n`;
  });
  return `${imports.join("")}\na = 1\n`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return !hasKeyTwice(text);
  } catch {
    return false;
  }
}

function isJsonc(text: string): boolean {
  const errors: ParseError[] = [];
  parseJsonc(text, errors);
  return errors.length === 0 && !hasKeyTwice(text);
}

/** The keys of a document are different in all of its maps but those that both sides may add. */
function hasKeyTwice(text: string): boolean {
  const keys = [...text.matchAll(/"(k[^"]*)":/gu)].map(([, key]) => key);
  return new Set(keys).size !== keys.length;
}

function isYaml(text: string): boolean {
  return parseDocument(text, { prettyErrors: false }).errors.length === 0;
}

function isToml(text: string): boolean {
  try {
    parseTOML(text);
    return true;
  } catch {
    return false;
  }
}

function isReadable(tree: Tree): boolean {
  const cursor = tree.cursor();
  do if (cursor.type.isError) return false;
  while (cursor.next());
  return true;
}
