/**
 * Owns: reading the confidence that an agent states: a JSON object with `confidence` on the last line of its answer, or as the whole
 * of it. It is read for every piece of a text that is being written, so it looks at the end first.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { StatedConfidence } from "../contracts/commands.ts";

const KEY = '"confidence"';

/**
 * Returns the confidence that an agent states in JSON on the last line of its answer, or as the whole of it:
 * unreadable where it is no number from 0 to 1, an empty object where none is stated.
 */
export function readStatedConfidence(text: string): StatedConfidence {
  const end = removeClosingFence(text.trimEnd());
  if (!end.includes(KEY)) return {};
  const line = end.slice(end.lastIndexOf("\n") + 1).trim();
  if (line.startsWith("{")) return line.includes(KEY) ? readConfidenceFromJson(line) : {};
  // One object over several lines ends in its bracket.
  const start = cutToLastBlock(end).trimStart();
  return line.endsWith("}") && start.startsWith("{") ? readConfidenceFromJson(start) : {};
}

/**
 * Reads the confidence that an agent states at the end of an answer of which only the `beginning` and the `end` are known.
 * One that may be stated in an object which is not known as a whole counts as unreadable.
 */
export function readConfidenceOfCutText(beginning: string, end: string): StatedConfidence {
  const firstBreak = end.indexOf("\n");
  const stated = firstBreak === -1 ? {} : readStatedConfidence(end.slice(firstBreak + 1));
  if (Object.keys(stated).length > 0) return stated;
  const isObjectBegun = cutToLastBlock(beginning).trimStart().startsWith("{");
  const isNamed = end.includes(KEY) || (isObjectBegun && beginning.includes(KEY));
  return isNamed ? { confidenceUnreadable: true } : {};
}

/** Returns a stated number from 0 to 1 as a confidence in basis points; for anything else, that it is unreadable. */
export function parseConfidence(value: unknown): StatedConfidence {
  const isShare = typeof value === "number" && value >= 0 && value <= 1;
  return isShare ? { confidence: convertToBasisPointsDown(value) } : { confidenceUnreadable: true };
}

/**
 * Returns a share from 0 to 1 in basis points, rounded down, so that what is below a threshold stays below it. The
 * dust that binary fractions add is left out.
 */
export function convertToBasisPointsDown(share: number): number {
  return Math.floor(Number((share * 10_000).toFixed(6)));
}

/**
 * Returns a threshold from 0 to 1 in basis points, rounded up, so that a share below it stays below it. The dust that
 * binary fractions add is left out.
 */
export function convertToBasisPointsUp(share: number): number {
  return Math.ceil(Number((share * 10_000).toFixed(6)));
}

/** Removes the end of a block of code, into which agents put JSON. */
function removeClosingFence(text: string): string {
  return text.endsWith("```") ? text.slice(0, -3).trimEnd() : text;
}

/** Returns the content of the last block of code, or the whole text when there is none. */
function cutToLastBlock(text: string): string {
  const fence = text.lastIndexOf("```");
  return fence === -1 ? text : text.slice(text.indexOf("\n", fence) + 1);
}

/**
 * Reads a confidence from JSON. A text that begins like one and cannot be read still shows that something was to be
 * stated.
 */
function readConfidenceFromJson(json: string): StatedConfidence {
  if (json.length > BOUNDS.replyCharsMax) return { confidenceUnreadable: true };
  try {
    // It begins with the bracket of an object.
    const value = JSON.parse(json) as Readonly<Record<string, unknown>>;
    return Object.hasOwn(value, "confidence") ? parseConfidence(value["confidence"]) : {};
  } catch {
    return { confidenceUnreadable: true };
  }
}
