/** Owns: how the reason of a failed report is told to agents: quoted as data, on one line, bounded, and never an instruction. */
import { parseReason } from "../../plan/read-outputs.ts";

const REASON_CHARS_MAX = 300;
const UNSEEN_OR_SPACE = /[\s\p{Cc}\p{Cf}]+/gu;

/** Quotes the reason that the outputs of a failed report give, as JSON. `undefined` where they give none. */
export function quoteReason(outputs: string): string | undefined {
  const reason = parseReason(outputs)?.replace(UNSEEN_OR_SPACE, " ").trim();
  if (!reason) return undefined;
  const isLong = reason.length > REASON_CHARS_MAX;
  const shown = isLong ? `${reason.slice(0, REASON_CHARS_MAX - 1).toWellFormed()}…` : reason.toWellFormed();
  return JSON.stringify(shown);
}
