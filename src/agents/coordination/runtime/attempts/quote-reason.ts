/** Owns: how the reason of a failed report is told to agents: quoted as data, on one line, bounded, and never an instruction. */
import { findFittingEnd, parseFailureReason } from "../../plan/read-outputs.ts";
import { replaceHiddenCharacters } from "../../std/hidden-characters.ts";

const REASON_CHARS_MAX = 300;

/**
 * Returns the reason that the JSON of a failed report's outputs gives, on one line in quotes, at most 300 characters
 * long, or `charsMax` where that is less. `undefined` where they give none.
 */
export function quoteReason(outputs: string, charsMax = REASON_CHARS_MAX): string | undefined {
  const reason = parseFailureReason(outputs)?.toWellFormed();
  const line =
    reason &&
    replaceHiddenCharacters(reason, () => " ")
      .replace(/\s+/gu, " ")
      .trim();
  if (!line) return undefined;
  const room = Math.min(REASON_CHARS_MAX, charsMax) - QUOTES_CHARS;
  if (findFittingEnd(line, room) === line.length) return JSON.stringify(line);
  return JSON.stringify(`${line.slice(0, findFittingEnd(line, room - 1)).toWellFormed()}…`);
}

const QUOTES_CHARS = '""'.length;
