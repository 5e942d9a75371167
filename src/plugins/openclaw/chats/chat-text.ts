/**
 * Owns: text of others as it may stand in a chat. The host reads instructions of its own out of replies: files to attach, images to
 * fetch, messages to reply to. Words of a model, an agent or a tool must not give it any.
 */
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";

/** Formats one line of bounded length, without control characters. */
export function formatLine(text: string, charsMax = 300): string {
  return cut(removeMarkup(text).replace(/\s+/gu, " ").trim(), charsMax);
}

/** Formats several such lines. */
export function formatLines(text: string, charsMax: number): string {
  return cut(removeMarkup(text).trim(), charsMax);
}

/** Formats why a command or a message came to nothing. */
export function formatFailure(error: unknown): string {
  return isCoordinationError(error)
    ? `That did not work: ${formatLine(error.message)} (${error.code}).`
    : "That did not work: something unexpected happened. The gateway's log may say more.";
}

function removeMarkup(text: string): string {
  return (
    text
      .toWellFormed()
      .replace(/\r\n?/gu, "\n")
      // Those that bring no sign of their own, and turn the direction of others; joined emojis stay.
      .replace(/(?![\u200d\n\t])[\p{Cc}\p{Cf}\p{Co}]/gu, "")
      .replace(/\bMEDIA:/giu, (marker) => `${marker.slice(0, -1)} :`)
      .replaceAll("[[", "[ [")
      .replaceAll("![", "! [")
  );
}

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}
