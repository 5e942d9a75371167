/** Owns: which of the options of a question a text chooses: by its words, or as a chat shows it. */
import { canBeNumbered } from "../../contracts/escalation.ts";
import { removeUnseen } from "./plain-text.ts";

/**
 * Finds the option that a text means; `undefined` where it means none, or several look so. A chat shows options with numbers, and
 * cuts long ones.
 */
export function findOption(
  options: readonly string[],
  text: string,
  { isShownInChat }: { readonly isShownInChat: boolean },
): string | undefined {
  if (options.includes(text)) return text;
  const number = removeUnseen(text).trim();
  if (isShownInChat && canBeNumbered(options) && /^\d+$/u.test(number)) return options[Number(number) - 1];
  const looks = [text, ...readQuoted(text)].map(removeSpace);
  const [only, ...others] = options.filter((option) =>
    looks.some((look) => isLookOf(removeSpace(option), look, isShownInChat)),
  );
  return others.length === 0 ? only : undefined;
}

function isLookOf(option: string, look: string, isShownInChat: boolean): boolean {
  if (option === look) return true;
  return isShownInChat && /.…$/u.test(look) && option.startsWith(look.slice(0, -1));
}

/** People are shown an option without what cannot be seen. A chat puts spaces into what its host would read as an instruction. */
function removeSpace(text: string): string {
  return text.toWellFormed().replace(/[\s\p{Cc}\p{Cf}\p{Co}]/gu, "");
}

/** People are shown an option in quotes, as JSON. */
function readQuoted(text: string): string[] {
  const bare = text.trim().replace(/^"(.*)"$/su, "$1");
  try {
    return [JSON.parse(`"${bare}"`) as string];
  } catch {
    return [];
  }
}
