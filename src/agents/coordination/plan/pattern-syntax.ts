/**
 * Owns: whether a `pattern` can be matched in time that grows with the text alone. Patterns are JavaScript's (`u` flag), as JSON
 * Schema says; what no linear engine can do (RE2), and the little that RE2 writes in another way, is refused.
 */
import { BOUNDS } from "../contracts/bounds.ts";

const NOT_LINEAR = "it cannot be matched in linear time";
const CLASSES = /^(?:L[ulmto]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|Cc|Cf|Co)$/u;
/** The limit of RE2 on nested repetitions, multiplied. */
const REPEATS_MAX = 1_000;

interface Group {
  /** With repetitions written out. */
  size: number;
  /** The part read last, which a quantifier would repeat. */
  last: Part;
  repeats: number;
}

interface Part {
  readonly size: number;
  /** The most that anything in it is repeated. */
  readonly repeats: number;
}

const NOTHING: Part = { size: 0, repeats: 1 };
const ATOM: Part = { size: 1, repeats: 1 };

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
  const reader: Reader = { pattern, at: 0, groups: [createEmptyGroup()] };
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

interface Reader {
  readonly pattern: string;
  at: number;
  /** Open ones, the innermost last. */
  readonly groups: Group[];
}

function createEmptyGroup(): Group {
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
function readPart(reader: Reader): string | undefined {
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
function addPart({ groups }: Reader, part: Part): void {
  const group = groups.at(-1);
  if (!group) return;
  group.size += group.last.size;
  group.repeats = Math.max(group.repeats, group.last.repeats);
  group.last = part;
}

/** Returns a group that is read to its end as one part of the group around it. */
function closeGroup({ size, last, repeats }: Group): Part {
  return { size: size + last.size, repeats: Math.max(repeats, last.repeats) };
}

/** Reads the beginning of a group, and returns why it is refused; `undefined` where it is not. */
function readGroupStart(reader: Reader): string | undefined {
  const rest = reader.pattern.slice(reader.at, reader.at + 4);
  if (/^\(\?<?[=!]/u.test(rest)) return `${NOT_LINEAR}: leave out ${rest.replace(/([=!]).*$/su, "$1")}...)`;
  if (rest.startsWith("(?<")) return "groups have no names here: write ( instead of (?<name>";
  if (rest.startsWith("(?") && !rest.startsWith("(?:")) return "flags such as (?i: are not supported";
  reader.at += rest.startsWith("(?:") ? 3 : 1;
  reader.groups.push(createEmptyGroup());
  return undefined;
}

/** Repeats the part read last, and returns why that is refused; `undefined` where it is not. */
function readQuantifier(reader: Reader): string | undefined {
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
function readEscape(reader: Reader, isInClass: boolean): string | undefined {
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
function readCharacterClass(reader: Reader): string | undefined {
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
