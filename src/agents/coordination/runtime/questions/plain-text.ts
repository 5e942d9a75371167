/** Owns: names and texts that a model wrote, where people read them beside words of ours: nothing in them can pass for these. */
import { replaceHidden } from "../../std/hidden-characters.ts";

/** Removes characters that cannot be seen, or that move others; line breaks stay. */
export function removeUnseen(text: string): string {
  return replaceHidden(text, (character) => (character === "\n" || character === "\t" ? character : ""));
}

/** Puts a name in quotes when it is more than a plain name. */
export function quoteUnlessPlain(name: string): string {
  return /^[\w.:@-]+$/u.test(name) ? name : JSON.stringify(removeUnseen(name).replace(/\s+/gu, " "));
}
