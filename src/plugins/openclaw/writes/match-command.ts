/**
 * Owns: whether a command is the one that an operator declared. `*` stands for anything; the rest of a pattern for
 * itself. Takes time that grows with the command, for any pattern.
 */

/** A longer command is none that anyone declared. */
const COMMAND_CHARS_MAX = 64_000;

type CommandMatch =
  | "no"
  | "yes"
  /** What a `*` stands for begins another command or writes to a file: more happens than was declared. */
  | "and_more";

export function matchCommand(pattern: string, command: string): CommandMatch {
  if (command.length > COMMAND_CHARS_MAX) return "no";
  const wild = matchWildParts(pattern.trim().split("*"), command.trim());
  if (!wild) return "no";
  return wild.some((part) => BEGINS_MORE.test(part.replace(WRITES_NOTHING, ""))) ? "and_more" : "yes";
}

const BEGINS_MORE = /[;&|>`\n\r]|[$<]\(/u;
/** `2>&1` and `> /dev/null`, which models put behind most commands. */
const WRITES_NOTHING = /[12]?>&[12](?=\s|$)|[12&]?>{1,2} ?\/dev\/null(?=\s|$)/gu;

/** Returns what each `*` stands for, as short as possible from the left; `undefined` when the pattern does not fit. */
function matchWildParts(pieces: readonly string[], command: string): readonly string[] | undefined {
  const [first = "", ...rest] = pieces;
  const last = rest.pop();
  if (last === undefined) return command === first ? [] : undefined;
  if (!command.startsWith(first)) return undefined;
  const parts: string[] = [];
  let from = first.length;
  for (const piece of rest) {
    const at = command.indexOf(piece, from);
    if (at === -1) return undefined;
    parts.push(command.slice(from, at));
    from = at + piece.length;
  }
  const end = command.length - last.length;
  return end >= from && command.endsWith(last) ? [...parts, command.slice(from, end)] : undefined;
}
