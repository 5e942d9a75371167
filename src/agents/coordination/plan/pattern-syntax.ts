/**
 * Owns: whether a `pattern` can be matched in time that grows with the text alone. Patterns are JavaScript's (`u` flag), as JSON
 * Schema says; what no linear engine can do (RE2), and the little that RE2 writes in another way, is refused.
 */
import { BOUNDS } from "../contracts/bounds.ts";

const NOT_LINEAR = "it cannot be matched in linear time";
const CLASSES = /^(?:L[ulmto]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|Cc|Cf|Co)$/u;
/** The limit of RE2 on nested repetitions, multiplied. */
const REPEATS_MAX = 1_000;

/** A group of a pattern that is being read, and is not closed yet. */
interface PatternGroup {
  /** With repetitions written out. */
  size: number;
  /** The part read last, which a quantifier would repeat. */
  last: PatternPart;
  repeats: number;
}

/** A part of a pattern that was read, with its size. */
interface PatternPart {
  readonly size: number;
  /** The most that anything in it is repeated. */
  readonly repeats: number;
}

const NOTHING: PatternPart = { size: 0, repeats: 1 };
const ATOM: PatternPart = { size: 1, repeats: 1 };

export interface PatternReading {
  /** In parts, with repetitions written out. */
  readonly size: number;
  /** Why the pattern is refused; nothing where it is not. */
  readonly problem?: string;
}

/**
 * Returns the size of a regular expression with its repetitions written out, or why it is refused: it is invalid, too
 * large, or cannot be matched in linear time.
 */
export function readPattern(pattern: string): PatternReading {
  if (pattern.length > BOUNDS.patternCharsMax)
    return createRefusedPattern(`it has more than ${BOUNDS.patternCharsMax} characters`);
  if (!pattern.isWellFormed() || !isRegExp(pattern))
    return createRefusedPattern("it is not a regular expression");
  const reader: PatternReader = { pattern, at: 0, groups: [createEmptyGroup()] };
  while (reader.at < pattern.length) {
    const problem = readPart(reader);
    if (problem !== undefined) return createRefusedPattern(problem);
  }
  const { size } = closeGroup(reader.groups[0] ?? createEmptyGroup());
  return size > BOUNDS.patternSizeMax
    ? createRefusedPattern(`with its repetitions written out it has more than ${BOUNDS.patternSizeMax} parts`)
    : { size };
}

function createRefusedPattern(problem: string): PatternReading {
  return { size: 0, problem };
}

/** A pattern and how far it was read. */
interface PatternReader {
  readonly pattern: string;
  at: number;
  /** Open ones, the innermost last. */
  readonly groups: PatternGroup[];
}

function createEmptyGroup(): PatternGroup {
  return { size: 0, last: NOTHING, repeats: 1 };
}

function isRegExp(pattern: string): boolean {
  try {
    new RegExp(pattern, "u");
    return true;
  } catch {
    return false;
  }
}

/** Reads the next part of a regular expression, and returns why it is refused; `undefined` where it is not. */
function readPart(reader: PatternReader): string | undefined {
  const { pattern, groups } = reader;
  const char = pattern[reader.at] ?? "";
  switch (char) {
    case "(":
      return readGroupStart(reader);
    case ")": {
      reader.at += 1;
      const { size, repeats } = closeGroup(groups.pop() ?? createEmptyGroup());
      addPart(reader, { size: size + 2, repeats });
      return undefined;
    }
    case "\\":
      return readEscape(reader, false);
    case "[":
      return readCharacterClass(reader);
    case "*":
    case "+":
    case "?":
    case "{":
      return readQuantifier(reader);
    default:
      reader.at += 1;
      addPart(reader, ATOM);
      return undefined;
  }
}

/** Adds a part to the innermost group, as the part that a quantifier would repeat. */
function addPart({ groups }: PatternReader, part: PatternPart): void {
  const group = groups.at(-1);
  if (!group) return;
  group.size += group.last.size;
  group.repeats = Math.max(group.repeats, group.last.repeats);
  group.last = part;
}

/** Returns a group that is read to its end as one part of the group around it. */
function closeGroup({ size, last, repeats }: PatternGroup): PatternPart {
  return { size: size + last.size, repeats: Math.max(repeats, last.repeats) };
}

/** Reads the beginning of a group, and returns why it is refused; `undefined` where it is not. */
function readGroupStart(reader: PatternReader): string | undefined {
  const rest = reader.pattern.slice(reader.at, reader.at + 4);
  if (/^\(\?<?[=!]/u.test(rest)) return `${NOT_LINEAR}: leave out ${rest.replace(/([=!]).*$/su, "$1")}...)`;
  if (rest.startsWith("(?<")) return "groups have no names here: write ( instead of (?<name>";
  if (rest.startsWith("(?") && !rest.startsWith("(?:")) return "flags such as (?i: are not supported";
  reader.at += rest.startsWith("(?:") ? 3 : 1;
  reader.groups.push(createEmptyGroup());
  return undefined;
}

/** Repeats the part read last, and returns why that is refused; `undefined` where it is not. */
function readQuantifier(reader: PatternReader): string | undefined {
  const [text = "", min, max] =
    /^(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??/u.exec(reader.pattern.slice(reader.at)) ?? [];
  reader.at += Math.max(text.length, 1);
  const group = reader.groups.at(-1);
  if (!group) return undefined;
  const count = min === undefined ? 1 : Number(max === undefined || max === "" ? min : max);
  const repeats = Math.max(group.last.repeats, 1) * Math.max(count, 1);
  if (repeats > REPEATS_MAX) return `nothing in it may be repeated more than ${REPEATS_MAX} times`;
  group.last = { size: (group.last.size + 1) * Math.max(count, 1) + 1, repeats };
  return undefined;
}

/** Reads an escape, and returns why it is refused; `undefined` where it is not. */
function readEscape(reader: PatternReader, isInClass: boolean): string | undefined {
  const rest = reader.pattern.slice(reader.at, reader.at + ESCAPE_CHARS_MAX);
  const [escape = rest] = /^\\(?:[pPu]\{[^}]*\}|u.{4}|x..|c.|.)/su.exec(rest) ?? [];
  reader.at += escape.length;
  if (!isInClass) addPart(reader, ATOM);
  return findEscapeProblem(escape, isInClass);
}

const ESCAPE_CHARS_MAX = 100;

function findEscapeProblem(escape: string, isInClass: boolean): string | undefined {
  if (/^\\[1-9k]/u.test(escape)) return `${NOT_LINEAR}: leave out the back reference ${escape}`;
  if (isInClass && escape === "\\b") return "[\\b] is not supported: write \\x08";
  if (/^\\[pP]/u.test(escape) && !CLASSES.test(escape.slice(3, -1)))
    return `${escape} is not supported: write a general category such as \\p{L}, \\p{Lu} or \\p{Nd}`;
  if (/^\\u\{?0*d[89a-f]..\}?$/iu.test(escape))
    return `half of a character (${escape}) is not supported: write \\u{...}`;
  return undefined;
}

/** Reads a class of characters to its end, and returns why it is refused; `undefined` where it is not. */
function readCharacterClass(reader: PatternReader): string | undefined {
  reader.at += 1;
  while (reader.at < reader.pattern.length && reader.pattern[reader.at] !== "]") {
    if (reader.pattern[reader.at] === "\\") {
      const problem = readEscape(reader, true);
      if (problem !== undefined) return problem;
    } else reader.at += 1;
  }
  reader.at += 1;
  addPart(reader, ATOM);
  return undefined;
}
