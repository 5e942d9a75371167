/** Owns: cutting what is separated by commas, with comments, into entries. Does not own: finding the entries. */
import type { Block, BlockEntry, Leaf } from "../pieces/pieces.ts";

export interface ListItem {
  readonly key: string;
  readonly start: number;
  readonly end: number;
  readonly head: string;
  readonly body: Leaf | Block;
  /** Where the comma behind it is; absent for a last one without. */
  readonly commaAt?: number;
}

export interface ListRange {
  readonly start: number;
  readonly end: number;
  /** 1 where it begins and ends with a bracket, else 0. */
  readonly bracketChars: 0 | 1;
}

/**
 * Cuts a list of a text, with its brackets, into one block with an entry for each item. A comment belongs to the entry
 * before it where it ends the entry's line, else to what comes behind it. Returns `undefined` where something stands
 * between an entry and its comma.
 */
export function cutList(text: string, list: ListRange, items: readonly ListItem[]): Block | undefined {
  const { start, end, bracketChars } = list;
  const closeAt = end - bracketChars;
  const opened = findLineCommentEnd(text, start + bracketChars, items[0]?.start ?? closeAt);
  const entries: BlockEntry[] = [];
  let at = opened;
  for (const [index, item] of items.entries()) {
    const { key, head, body, commaAt = item.end } = item;
    if (commaAt !== item.end) return undefined;
    const behind = item.commaAt === undefined ? item.end : item.commaAt + 1;
    const trailEnd = findLineCommentEnd(text, behind, items[index + 1]?.start ?? closeAt);
    entries.push({ key, lead: text.slice(at, item.start), head, body, trail: text.slice(behind, trailEnd) });
    at = trailEnd;
  }
  return {
    kind: "block",
    open: text.slice(start, opened),
    entries,
    close: text.slice(at, end),
    endsWithComma: items.at(-1)?.commaAt !== undefined,
    isUnordered: true,
  };
}

/** Returns where a comment ends that has nothing but the end of the line behind it; `from` where there is none. */
function findLineCommentEnd(text: string, from: number, to: number): number {
  const newline = text.indexOf("\n", from);
  if (newline === -1 || newline >= to) return from;
  const end = text[newline - 1] === "\r" && newline > from ? newline - 1 : newline;
  const rest = text.slice(from, end);
  const isComment = rest.trim() !== "" && rest.lastIndexOf("/*") <= rest.lastIndexOf("*/");
  return isComment ? end : from;
}
