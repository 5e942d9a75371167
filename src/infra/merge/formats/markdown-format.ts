/**
 * Owns: Markdown as pieces: sections within sections, by their headings. The text below a heading may be merged by line.
 */
import { parser } from "@lezer/markdown";
import type { Block, BlockEntry } from "../pieces/pieces.ts";
import type { TextCut, TextFormat } from "../pieces/text-format.ts";
import { assertCanCut, tryCut } from "./cannot-cut.ts";
import { findLineEnd, findLineStart } from "./text-lines.ts";

export const markdownFormat: TextFormat = {
  way: "section",
  charsMax: 200_000,
  linesAtEnd: 2,
  cut: (text) => tryCut(() => cutMarkdown(text)),
};

/** Reads no links and no emphasis, which take time that grows with the square of a hostile text. */
const blocks = parser.configure({
  remove: ["Escape", "Entity", "InlineCode", "HTMLTag", "Emphasis", "HardBreak", "Link", "Image", "LinkEnd"],
});

/** The head of a page that site generators read; in Markdown it would be a heading. */
const FRONT_MATTER = /^---[ \t]*\r?\n(?:[^\n]*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/u;
/** Many of them nest so deeply that reading takes long. */
const NESTED_IN_LINE = /^(?:[ \t]*(?:>|[-+*]|\d+[.)])){50}/mu;

interface Heading {
  readonly level: number;
  readonly title: string;
  readonly start: number;
  /** Behind its line. */
  readonly end: number;
}

function cutMarkdown(text: string): TextCut {
  assertCanCut(!NESTED_IN_LINE.test(text));
  const headings = findHeadings(text);
  const cursor = { at: 0 };
  const preface = createTextEntry(text.slice(0, headings[0]?.start ?? text.length));
  const sections = cutSections(text, { headings, cursor, level: 0 });
  return { root: createBlock([preface, ...sections]) };
}

function findHeadings(text: string): Heading[] {
  const from = FRONT_MATTER.exec(text)?.[0].length ?? 0;
  const found: Heading[] = [];
  const content = text.slice(from);
  for (let node = blocks.parse(content).topNode.firstChild; node; node = node.nextSibling) {
    const level = /^(?:ATX|Setext)Heading([1-6])$/u.exec(node.name)?.[1];
    if (level === undefined) continue;
    const start = findLineStart(text, from + node.from);
    const end = findLineEnd(text, from + node.to);
    const title = text.slice(start, end).trim();
    found.push({ level: Number(level), title, start, end });
  }
  return found;
}

/** Cuts the sections from the cursor on that are deeper than a level, each with those below it. */
function cutSections(
  text: string,
  place: { readonly headings: readonly Heading[]; readonly cursor: { at: number }; readonly level: number },
): BlockEntry[] {
  const { headings, cursor, level } = place;
  const sections: BlockEntry[] = [];
  for (let heading = headings[cursor.at]; heading && heading.level > level; heading = headings[cursor.at]) {
    cursor.at += 1;
    const next = headings[cursor.at];
    const content = createTextEntry(text.slice(heading.end, next?.start ?? text.length));
    const below = cutSections(text, { headings, cursor, level: heading.level });
    const head = text.slice(heading.start, heading.end);
    const key = `${heading.level} ${heading.title}`;
    sections.push({ key, lead: "", head, body: createBlock([content, ...below]), trail: "" });
  }
  assertCanCut(new Set(sections.map(({ key }) => key)).size === sections.length);
  return sections;
}

/** Creates the entry for the text before the first section of a block. Empty lines at its end are layout. */
function createTextEntry(text: string): BlockEntry {
  const body = { kind: "leaf", text, sense: text.trimEnd(), byLine: true } as const;
  return { key: "", lead: "", head: "", body, trail: "" };
}

function createBlock(entries: readonly BlockEntry[]): Block {
  return { kind: "block", open: "", entries, close: "" };
}
