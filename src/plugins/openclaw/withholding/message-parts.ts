/** Owns: the parts of a message as the host writes them: texts, and calls of tools with their arguments. */

export interface Part {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly name?: unknown;
  readonly arguments?: unknown;
}

export function partsOf(content: unknown): readonly Part[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? (content as Part[]) : [];
}

export function textsOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
}

/** The words of a message. */
export interface Said {
  readonly words: string;
  /** The texts in its calls of tools, the first of them. */
  readonly toTools: readonly string[];
}

export function readSaid(content: unknown): Said {
  const parts = partsOf(content);
  const calls = parts.filter(({ type }) => type === "toolCall");
  return {
    words: textsOf(parts).join("\n"),
    toTools: calls.flatMap((part) => listTexts(part.arguments)),
  };
}

/** Lists the texts in the arguments of a call, the first of them. */
function listTexts(value: unknown, depth = 4): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null || depth === 0) return [];
  return Object.values(value)
    .slice(0, TEXTS_MAX)
    .flatMap((each) => listTexts(each, depth - 1));
}

const TEXTS_MAX = 20;
