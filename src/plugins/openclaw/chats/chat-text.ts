/**
 * Owns: text of others as it may stand in a chat. The host reads instructions of its own out of replies: files to attach, images to
 * fetch, messages to reply to. Words of a model, an agent or a tool must not give it any.
 */
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";

/** Returns the text as one line without control characters and host instructions, cut to `charsMax`. */
export function formatChatLine(text: string, charsMax = 300): string {
  return cutText(disableMarkup(text).replace(/\s+/gu, " ").trim(), charsMax);
}

/** Returns the text with its line breaks, without control characters and host instructions, cut to `charsMax`. */
export function formatChatText(text: string, charsMax: number): string {
  return cutText(disableMarkup(text).trim(), charsMax);
}

/**
 * Returns the chat reply that says why a command or a message came to nothing; only a CoordinationError is told with
 * its message and code.
 */
export function formatFailure(error: unknown): string {
  return isCoordinationError(error)
    ? `That did not work: ${formatChatLine(error.message)} (${error.code}).`
    : "That did not work: something unexpected happened. The gateway's log may say more.";
}

/** Removes control characters and breaks up what the host would obey: `MEDIA:`, `[[` and `![`. */
function disableMarkup(text: string): string {
  return (
    text
      .toWellFormed()
      .replace(/\r\n?/gu, "\n")
      // Those that bring no sign of their own, and turn the direction of others; joined emojis stay.
      .replace(/(?![\u200d\n\t])[\p{Cc}\p{Cf}\p{Co}]/gu, "")
      .replace(/\bMEDIA:/giu, (marker) => `${marker.slice(0, -1)} :`)
      // Also where there are more than two.
      .replaceAll(/\[(?=\[)/gu, "[ ")
      .replaceAll("![", "! [")
  );
}

function cutText(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}
