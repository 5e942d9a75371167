/** Owns: names and texts that a model wrote, where people read them beside words of ours: nothing in them can pass for these. */
import { replaceHiddenCharacters } from "../../std/hidden-characters.ts";

/**
 * Returns the text without characters that cannot be seen, or that move others; `\n` and tabs stay, other line breaks
 * do not.
 */
export function removeUnseen(text: string): string {
  return replaceHiddenCharacters(text, (character) =>
    character === "\n" || character === "\t" ? character : "",
  );
}

/**
 * Returns a name as it is where it is a plain word, else in quotes as one line without characters that cannot be seen.
 */
export function quoteUnlessPlain(name: string): string {
  return /^[\w.:@-]+$/u.test(name) ? name : JSON.stringify(removeUnseen(name).replace(/\s+/gu, " "));
}
