/** Owns: the one range of whole lines outside of which two texts are the same. */

export interface ChangedRange {
  /** In characters of the first text, at the start of a line or the end of the text. */
  readonly start: number;
  readonly end: number;
  /** Where it ends in the other text. It starts at the same place. */
  readonly otherEnd: number;
}

/**
 * Returns the smallest range of whole lines outside of which two texts are the same: its start, and its end in each
 * text.
 */
export function findChangedRange(text: string, other: string): ChangedRange {
  const start = countSameAhead(text, other);
  const same = countSameBehind(text, other, start);
  return { start, end: text.length - same, otherEnd: other.length - same };
}

const NEWLINE = 10;

/** Comparing by the block is 20 times as fast as by the character. */
const BLOCK_CHARS = 16_384;

/** Counts the same characters from the front, up to the start of a line. */
function countSameAhead(text: string, other: string): number {
  const shorter = Math.min(text.length, other.length);
  let at = 0;
  while (at + BLOCK_CHARS <= shorter && isSameBlockOfChars(text, other, at)) at += BLOCK_CHARS;
  while (at < shorter && text.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  return at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
}

/** Compares one block of characters, which is `shift` characters further on in the other text. */
function isSameBlockOfChars(text: string, other: string, at: number, shift = 0): boolean {
  return text.slice(at, at + BLOCK_CHARS) === other.slice(at + shift, at + shift + BLOCK_CHARS);
}

/** Counts the same characters from the back, none of them before `start`. */
function countSameBehind(text: string, other: string, start: number): number {
  const first = text.length - (Math.min(text.length, other.length) - start);
  const shift = other.length - text.length;
  let at = text.length;
  while (at - BLOCK_CHARS >= first && isSameBlockOfChars(text, other, at - BLOCK_CHARS, shift))
    at -= BLOCK_CHARS;
  while (at > first && text.charCodeAt(at - 1) === other.charCodeAt(at + shift - 1)) at -= 1;
  if (isLineStart(text, at, start) && isLineStart(other, at + shift, start)) return text.length - at;
  const lineEnd = text.indexOf("\n", at);
  return lineEnd === -1 ? 0 : text.length - lineEnd - 1;
}

function isLineStart(text: string, at: number, start: number): boolean {
  return at === start || text.charCodeAt(at - 1) === NEWLINE;
}
