/** Owns: the parts of a message as the host writes them: texts, and calls of tools with their arguments. */

export interface MessagePart {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly name?: unknown;
  readonly arguments?: unknown;
}

/** Returns the parts of a message's content; a plain text is one part, and content of any other form has none. */
export function listMessageParts(content: unknown): readonly MessagePart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? (content as MessagePart[]) : [];
}

/** Lists the texts of the text parts of a message, without those of tool calls. */
export function listPartTexts(parts: readonly MessagePart[]): string[] {
  return parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
}

/** The words of a message. */
export interface MessageWords {
  readonly words: string;
  /** The texts in its calls of tools, the first of them. */
  readonly toTools: readonly string[];
}

/**
 * Returns what a message says in its text parts, joined by line breaks, and the texts in the arguments of its tool
 * calls.
 */
export function readSpokenWords(content: unknown): MessageWords {
  const parts = listMessageParts(content);
  const calls = parts.filter(({ type }) => type === "toolCall");
  return {
    words: listPartTexts(parts).join("\n"),
    toTools: calls.flatMap((part) => listArgumentTexts(part.arguments)),
  };
}

/**
 * Lists the texts in the arguments of a tool call, down to four levels and among the first 20 values of each object or
 * list.
 */
function listArgumentTexts(value: unknown, depth = 4): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null || depth === 0) return [];
  return Object.values(value)
    .slice(0, TEXTS_MAX)
    .flatMap((each) => listArgumentTexts(each, depth - 1));
}

const TEXTS_MAX = 20;
