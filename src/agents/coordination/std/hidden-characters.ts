/** Owns: which characters of a text nobody would see, or would turn round or move what stands beside them. */

/** U+200D between two pictures makes them one. */
const IN_EMOJI = /(?<=[\p{ExtPict}\p{EMod}\ufe0f])\u200d\p{ExtPict}/u;
/** U+200C keeps two Arabic letters apart, as Persian writes it within words. */
const IN_ARABIC = /(?<=\p{scx=Arab})\u200c\p{scx=Arab}/u;
/** In the scripts of India, U+200C and U+200D beside a virama choose the form of the letters. */
const BESIDE_VIRAMA =
  /(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d]|[\u200c\u200d][\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]/u;
const NEEDED_JOINER = [IN_EMOJI, IN_ARABIC, BESIDE_VIRAMA].map(({ source }) => source).join("|");

/**
 * Controls, direction-changing and invisible characters, but for those that change what is seen beside them: joiners where
 * they are needed, and U+FE0F behind a picture or in a keycap.
 */
const HIDDEN = new RegExp(
  String.raw`(?<!\p{ExtPict})\ufe0f(?!\u20e3)|(?!${NEEDED_JOINER})[\u200c\u200d]|(?![\u200c\u200d\ufe0f])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{DI}]`,
  "gu",
);

/** True when a text has a character that nobody would see, such as a line break or a tab. */
export function hasHiddenCharacters(text: string): boolean {
  return text.search(HIDDEN) !== -1;
}

/**
 * Returns the text with each character that nobody would see, line breaks and tabs among them, replaced by what
 * `replace` returns for it.
 */
export function replaceHiddenCharacters(text: string, replace: (character: string) => string): string {
  return text.replace(HIDDEN, replace);
}
