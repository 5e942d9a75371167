/** Owns: how the reason of a failed report is told to agents: quoted as data, on one line, bounded, and never an instruction. */
import { findEndWithin, parseReason } from "../../plan/read-outputs.ts";
import { replaceHidden } from "../../std/hidden-characters.ts";

const REASON_CHARS_MAX = 300;

/**
 * Quotes the reason that the outputs of a failed report give, as JSON of at most 300 or `charsMax` characters. `undefined`
 * where they give none.
 */
export function quoteReason(outputs: string, charsMax = REASON_CHARS_MAX): string | undefined {
  const reason = parseReason(outputs)?.toWellFormed();
  const line =
    reason &&
    replaceHidden(reason, () => " ")
      .replace(/\s+/gu, " ")
      .trim();
  if (!line) return undefined;
  const room = Math.min(REASON_CHARS_MAX, charsMax) - QUOTES_CHARS;
  if (findEndWithin(line, room) === line.length) return JSON.stringify(line);
  return JSON.stringify(`${line.slice(0, findEndWithin(line, room - 1)).toWellFormed()}…`);
}

const QUOTES_CHARS = '""'.length;
