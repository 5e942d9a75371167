/**
 * Owns: what a session is shown of a text that is too long for it: its beginning and its end, and between them how long it is and how
 * to read on. Never longer than it may be, however the text is made; never half a character; JSON stays JSON.
 */
import { cutHead, cutTail } from "./cut-text.ts";
import { shortenJsonText, type ShorteningOptions } from "./shorten-json.ts";

/**
 * Returns a text of `charsMax` characters at most: the given one where it fits, JSON shortened as such, else its
 * beginning, a hint of how to read on, and its end.
 */
export function shortenText(text: string, shortening: ShorteningOptions): string {
  if (text.length <= shortening.charsMax) return text;
  return shortenJsonText(text, shortening) ?? leaveOutMiddle(text, shortening);
}

function leaveOutMiddle(text: string, { charsMax, readOn }: ShorteningOptions): string {
  // The number of the last character is the longest.
  const room = Math.max(0, charsMax - readOn(text.length).length - 2 * BREAK.length);
  const tail = cutReadableEnd(text, room >> 2, readOn);
  const head = cutAfterLine(cutHead(text, room - tail.length));
  return `${head}${BREAK}${readOn(head.length)}${BREAK}${tail}`;
}

const BREAK = "\n";

/**
 * Returns the end of a text, which says mostly what it came to: a last line that is too long stays JSON where it is;
 * else the last characters, from the beginning of a line where one is near.
 */
function cutReadableEnd(text: string, charsMax: number, readOn: ShorteningOptions["readOn"]): string {
  const lastLine = text.slice(text.lastIndexOf("\n") + 1);
  // A text of one line is not JSON, or it would not get here.
  const isLong = lastLine.length > charsMax && lastLine.length < text.length;
  const json = isLong ? shortenJsonText(lastLine, { charsMax, readOn }) : undefined;
  return json !== undefined && json.length <= charsMax ? json : cutBeforeLine(cutTail(text, charsMax));
}

/** Cuts the beginning of a text after a line that ends near its end. */
function cutAfterLine(head: string): string {
  const end = head.lastIndexOf("\n");
  return end > head.length * (1 - NEAR) ? head.slice(0, end + 1) : head;
}

/** Cuts the end of a text before a line that begins near its beginning. */
function cutBeforeLine(tail: string): string {
  const start = tail.indexOf("\n") + 1;
  return start > 0 && start < tail.length * NEAR ? tail.slice(start) : tail;
}

const NEAR = 0.1;
