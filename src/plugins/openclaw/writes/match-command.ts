/**
 * Owns: whether a command is the one that an operator declared, and what it does beyond that. `*` stands for anything; the
 * rest of a pattern for itself. Takes time that grows with the command, for any pattern.
 */
import { listSimpleCommands, type ShellWord } from "./shell-words.ts";
import { findArgumentWrites } from "./writing-options.ts";

/** A longer command is none that anyone declared. */
const COMMAND_CHARS_MAX = 64_000;

/** The effects of a command beyond the declared ones. */
export interface CommandMatch {
  /** Files that what a `*` stands for makes it write. */
  readonly outputs: readonly string[];
  /** The text behind a `*` begins another command, writes to a file or changes something that it does not name. */
  readonly hasMore: boolean;
}

/**
 * Matches a shell command with an operator's pattern and returns what the parts under `*` write, with whether they do
 * more than that; `undefined` where it does not fit, or is too long to be a declared one.
 */
export function matchCommand(pattern: string, command: string): CommandMatch | undefined {
  if (command.length > COMMAND_CHARS_MAX) return undefined;
  const line = command.trim();
  const wild = matchWildParts(pattern.trim().split("*"), line);
  if (!wild) return undefined;
  if (wild.every(({ start, end }) => start === end)) return { outputs: [], hasMore: false };
  const isOpen = (word: ShellWord): boolean =>
    wild.some(({ start, end }) => start < end && word.start < end && word.end > start);
  const { outputs, hasMore } = findArgumentWrites(listSimpleCommands(line), isOpen);
  const beginsMore = wild.some(({ start, end }) =>
    BEGINS_MORE.test(line.slice(start, end).replace(WRITES_NOTHING, "")),
  );
  return { outputs, hasMore: hasMore || beginsMore };
}

const BEGINS_MORE = /[;&|>`\n\r]|[$<]\(/u;
/** `2>&1` and `> /dev/null`, which models put behind most commands. */
const WRITES_NOTHING = /[12]?>&[12](?=\s|$)|[12&]?>{1,2} ?\/dev\/null(?=\s|$)/gu;

interface WildPart {
  readonly start: number;
  readonly end: number;
}

/** Returns where what each `*` stands for is, as short as possible from the left; `undefined` when the pattern does not fit. */
function matchWildParts(pieces: readonly string[], command: string): readonly WildPart[] | undefined {
  const [first = "", ...rest] = pieces;
  const last = rest.pop();
  if (last === undefined) return command === first ? [] : undefined;
  if (!command.startsWith(first)) return undefined;
  const wildParts: WildPart[] = [];
  let from = first.length;
  for (const piece of rest) {
    const at = command.indexOf(piece, from);
    if (at === -1) return undefined;
    wildParts.push({ start: from, end: at });
    from = at + piece.length;
  }
  const end = command.length - last.length;
  return end >= from && command.endsWith(last) ? [...wildParts, { start: from, end }] : undefined;
}
