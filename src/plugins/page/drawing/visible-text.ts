/** Owns: making every character of a text visible, so that nothing hides in it or turns round what stands beside it. */
import { replaceHiddenCharacters } from "../../../agents/coordination/std/hidden-characters.ts";

const CONTROL_PICTURES = 0x2400;
const DELETE = 0x7f;

/** Longer texts are cut, so that one of a megabyte does not hold up the page. */
const CHARS_MAX = 400;

/**
 * Returns a text as one line with visible signs or codes for its hidden characters, cut with an ellipsis where it is
 * too long.
 */
export function formatVisibleLine(text: string, charsMax = CHARS_MAX): string {
  const cut = text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
  return replaceHiddenCharacters(cut.toWellFormed().replace(/[\t\r\n ]+/gu, " "), nameHiddenCharacter).trim();
}

/** Returns all of a text with visible signs or codes for its hidden characters; line breaks and tabs stay. */
export function formatVisibleText(text: string): string {
  return replaceHiddenCharacters(text.toWellFormed().replaceAll("\r\n", "\n"), (character) =>
    character === "\n" || character === "\t" ? character : nameHiddenCharacter(character),
  );
}

/** Returns what stands for a hidden character: a control picture, or its code as `[U+200B]`. */
function nameHiddenCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(CONTROL_PICTURES + code);
  if (code === DELETE) return "␡";
  return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}
