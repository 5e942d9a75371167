/**
 * Owns: texts as PostgreSQL can hold them. It has no U+0000, which ids and texts of users may have: so that character and the
 * one that it is written with are written as two. The order of texts and their prefixes stay as they are.
 */

const NUL = "\u0000";
const ESCAPE = "\u0001";
const ESCAPED_NUL = "\u0001\u0001";
const ESCAPED_ESCAPE = "\u0001\u0002";

/**
 * Returns a text in the form in which PostgreSQL can store it: U+0000, which it refuses, and the escape character
 * U+0001 become two characters each.
 */
export function encodeStoredText(text: string): string {
  if (!text.includes(NUL) && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, ESCAPED_ESCAPE).replaceAll(NUL, ESCAPED_NUL);
}

/**
 * Returns the original of a text in the form in which PostgreSQL stores it: undoes the two-character escapes of U+0000
 * and U+0001.
 */
export function decodeStoredText(stored: string): string {
  if (!stored.includes(ESCAPE)) return stored;
  let text = "";
  for (let at = 0; at < stored.length; at += 1) {
    const character = stored.charAt(at);
    if (character === ESCAPE) {
      at += 1;
      text += stored.charAt(at) === ESCAPE ? NUL : ESCAPE;
    } else text += character;
  }
  return text;
}
