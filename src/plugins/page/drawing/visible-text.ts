/** Owns: making every character of a text visible, so that nothing hides in it or turns round what stands beside it. */
import { replaceHidden } from "../../../agents/coordination/std/hidden-characters.ts";

const CONTROL_PICTURES = 0x2400;
const DELETE = 0x7f;

/** Longer texts are cut, so that one of a megabyte does not hold up the page. */
const CHARS_MAX = 400;

/** One line, cut where it is too long. */
export function showLine(text: string, charsMax = CHARS_MAX): string {
  const cut = text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
  return replaceHidden(cut.toWellFormed().replace(/[\t\r\n ]+/gu, " "), nameCharacter).trim();
}

/** All of a text with its line breaks and tabs. */
export function showText(text: string): string {
  return replaceHidden(text.toWellFormed().replaceAll("\r\n", "\n"), (character) =>
    character === "\n" || character === "\t" ? character : nameCharacter(character),
  );
}

function nameCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(CONTROL_PICTURES + code);
  if (code === DELETE) return "␡";
  return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}
