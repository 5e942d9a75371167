/** Owns: which characters of a text nobody would see, or would turn round or move what stands beside them. */

/**
 * Controls, direction-changing and invisible characters. Two of them build emoji: U+FE0F behind a picture or in a keycap,
 * and U+200D between two pictures.
 */
const HIDDEN =
  /(?<!\p{ExtPict})\ufe0f(?!\u20e3)|(?<![\p{ExtPict}\p{EMod}\ufe0f])\u200d|\u200d(?!\p{ExtPict})|(?!\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{DI}]/gu;

/** Replaces each character of a text that nobody would see, line breaks and tabs among them. */
export function replaceHidden(text: string, replace: (character: string) => string): string {
  return text.replace(HIDDEN, replace);
}
