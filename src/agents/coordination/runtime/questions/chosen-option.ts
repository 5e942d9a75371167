/** Owns: which of the options of a question a text chooses: by its words, or as a chat shows it. */
import { canNumberOptions } from "../../contracts/escalation.ts";
import { removeUnseen } from "./plain-text.ts";

/**
 * Returns the option of a question that the text of an answer means; `undefined` where it means none, or several look
 * so. A chat shows options with numbers, and cuts long ones.
 */
export function findOption(
  options: readonly string[],
  text: string,
  { isShownInChat }: { readonly isShownInChat: boolean },
): string | undefined {
  if (options.includes(text)) return text;
  const number = removeUnseen(text).trim();
  if (isShownInChat && canNumberOptions(options) && /^\d+$/u.test(number)) return options[Number(number) - 1];
  const looks = [text, ...parseQuoted(text)].map(removeSpaceAndUnseen);
  const [only, ...others] = options.filter((option) =>
    looks.some((look) => isShownAs(removeSpaceAndUnseen(option), look, isShownInChat)),
  );
  return others.length === 0 ? only : undefined;
}

function isShownAs(option: string, look: string, isShownInChat: boolean): boolean {
  if (option === look) return true;
  return isShownInChat && /.…$/u.test(look) && option.startsWith(look.slice(0, -1));
}

/** People are shown an option without what cannot be seen. A chat puts spaces into what its host would read as an instruction. */
function removeSpaceAndUnseen(text: string): string {
  return text.toWellFormed().replace(/[\s\p{Cc}\p{Cf}\p{Co}]/gu, "");
}

/**
 * Reads the text as the inside of a JSON string, with or without its quotes, as people are shown an option. Returns a
 * list of one; an empty one where the text is no such string.
 */
function parseQuoted(text: string): string[] {
  const bare = text.trim().replace(/^"(.*)"$/su, "$1");
  try {
    return [JSON.parse(`"${bare}"`) as string];
  } catch {
    return [];
  }
}
