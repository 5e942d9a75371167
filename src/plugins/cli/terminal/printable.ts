/** Owns: making any text safe and measurable on a terminal: control characters, width in cells, cutting and padding. */
import { replaceHiddenCharacters } from "../../../agents/coordination/std/hidden-characters.ts";
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";

/** Takes 10 ms to make, a third of what an empty program takes, and most texts do without. */
const loadSegmenter = createOnceLoader(() => new Intl.Segmenter("en", { granularity: "grapheme" }));

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;

/**
 * Returns a text as one line that cannot move the cursor, colour the terminal or reverse what stands beside it; in
 * ASCII alone unless `unicode`.
 */
export function formatPrintable(text: string, unicode: boolean): string {
  const oneLine = replaceHiddenCharacters(text.toWellFormed().replace(/\s+/g, " "), () => "\ufffd").trim();
  return unicode ? oneLine : oneLine.replace(/[^\x20-\x7e]/gu, "?");
}

const MESSAGE_CHARS_MAX = 4_000;

/** Returns a message as one printable line, cut after 4000 characters, because it may quote a text of any length. */
export function formatMessage(message: string, unicode: boolean): string {
  const cut = message.length > MESSAGE_CHARS_MAX ? `${message.slice(0, MESSAGE_CHARS_MAX)}…` : message;
  return formatPrintable(cut, unicode);
}

/**
 * An address with a password: up to the last `@` of the word, since a password that is typed may have any sign in it but a
 * space. An IPv6 address in brackets is no user. The bounds keep the search through a long message linear.
 */
const PASSWORD_OF_USER =
  /\b([a-z][a-z\d+.-]{1,30}:\/+(?!\[[\da-f:.]{2,45}\](?::\d+)?[/?#])[^\s/?#:]{0,500}):(?!\d+[/?#])\S{0,500}@/giu;
const PASSWORD_OF_QUERY = /([?&]password=)[^&\s"']*/giu;

/** Returns a message with `***` in place of the passwords of the addresses in it, which it may quote as they were typed. */
export function maskPasswords(message: string): string {
  return message.replace(PASSWORD_OF_USER, "$1:***@").replace(PASSWORD_OF_QUERY, "$1***");
}

/** Returns a value as JSON, with every character escaped that is invisible or controls a terminal. */
export function formatJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(HARMFUL_IN_JSON, (character) =>
    [...Array(character.length).keys()].map((at) => escapeCodeUnit(character.charCodeAt(at))).join(""),
  );
}

/** Line breaks between members are JSON's own; controls below 0x20 within texts are escaped already. */
const HARMFUL_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{DI}]/gu;

function escapeCodeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}

/** Characters that have a cell each and join no other: ASCII, Latin letters, punctuation, arrows, lines and blocks. */
const SINGLE_CELLS = /^[\x20-\x7e\u00a1-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u259f]*$/u;

/** Returns how many cells of a terminal a text takes; wide characters take two. */
export function countCells(text: string): number {
  if (SINGLE_CELLS.test(text)) return text.length;
  let cells = 0;
  for (const character of splitCharacters(text)) cells += WIDE.test(character) ? 2 : 1;
  return cells;
}

/** Splits text into what a reader calls characters, each with what joins it. */
function* splitCharacters(text: string): Generator<string> {
  if (SINGLE_CELLS.test(text)) yield* text;
  else for (const { segment } of loadSegmenter().segment(text)) yield segment;
}

/** Returns a text cut or padded with spaces to exactly this many cells of a terminal. */
export function fitToCells(text: string, cells: number, unicode: boolean): string {
  const cut = shorten(text, cells, unicode);
  return cut + " ".repeat(Math.max(0, cells - countCells(cut)));
}

/**
 * Returns a text cut at its end, with an ellipsis, to at most this many cells of a terminal; as it is where it fits.
 */
export function shorten(text: string, cells: number, unicode: boolean): string {
  if (countCells(text) <= cells) return text;
  const ellipsis = unicode ? "…" : "~";
  let cut = "";
  let used = 1;
  for (const character of splitCharacters(text)) {
    used += WIDE.test(character) ? 2 : 1;
    if (used > cells) break;
    cut += character;
  }
  return cells > 0 ? cut + ellipsis : "";
}

/**
 * Returns a text cut at its beginning, with an ellipsis, to at most this many cells of a terminal: the end of a path
 * tells more.
 */
export function shortenStart(text: string, cells: number, unicode: boolean): string {
  if (countCells(text) <= cells) return text;
  if (cells <= 0) return "";
  const kept: string[] = [];
  let used = 1;
  for (const character of [...splitCharacters(text)].reverse()) {
    used += WIDE.test(character) ? 2 : 1;
    if (used > cells) break;
    kept.push(character);
  }
  return (unicode ? "…" : "~") + kept.reverse().join("");
}
