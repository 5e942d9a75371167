/**
 * Owns: writing large values as JSON in slices. A native call writes a whole value at once, and a run has megabytes of them.
 *
 * A small value is written by one native call, which is several times faster. The members of a larger one are written one
 * by one on the first levels; what lies deeper is within a value of one event, which has a bound.
 */

/** An answer, its events or variables, an event or a value, its payload, a member of that. */
const LEVELS = 5;
/** Characters of one slice: about a millisecond of writing. */
const CHARS_PER_SLICE = 65_536;
const PIECES_PER_SLICE = 1_000;
/** Characters of a small value: looking whether a value is small must cost little where it is not. */
const SMALL_CHARS_MAX = 16_384;
/** Counted for each value beside its characters. */
const CHARS_PER_VALUE = 16;

/** The text of a JSON value as far as it is written. */
interface JsonOutput {
  /** Texts that earlier slices wrote. */
  readonly written: string[];
  pieces: string[];
  chars: number;
}

/**
 * Returns the JSON text of a value like `JSON.stringify`, as parts that follow each other; it is a generator that
 * yields after each slice of the work. `levels`: how deep members of large values are written one by one.
 */
export function* writeJsonInParts(value: unknown, levels = LEVELS): Generator<undefined, readonly string[]> {
  const writing: JsonOutput = { written: [], pieces: [], chars: 0 };
  yield* writeValue(writing, value, levels);
  endSlice(writing);
  return writing.written;
}

/** Writes a value: a small one or one below the levels at once, a larger one member by member. */
function* writeValue(writing: JsonOutput, value: unknown, levels: number): Generator<undefined, void> {
  if (levels === 0 || typeof value !== "object" || value === null || isSmall(value)) {
    addPiece(writing, value === undefined ? "null" : JSON.stringify(value));
    if (isSliceFull(writing)) {
      endSlice(writing);
      yield;
    }
  } else if (Array.isArray(value)) yield* writeItems(writing, value, levels);
  else yield* writeMembers(writing, value, levels);
}

const isSmall = (value: object): boolean => countCharsLeft(value, SMALL_CHARS_MAX) >= 0;

/**
 * Returns about how many of `chars` characters are left once a value has been written as JSON; below 0 where the value
 * is larger. It has to be fast, because it is run for every value of every answer.
 */
export function countCharsLeft(value: unknown, chars: number): number {
  const left = chars - CHARS_PER_VALUE;
  if (typeof value === "string") return left - value.length;
  if (typeof value !== "object" || value === null) return left;
  return Array.isArray(value) ? countCharsLeftByItems(value, left) : countCharsLeftByMembers(value, left);
}

function countCharsLeftByItems(items: readonly unknown[], chars: number): number {
  let left = chars;
  for (const item of items) {
    if (left < 0) return left;
    left = countCharsLeft(item, left);
  }
  return left;
}

function countCharsLeftByMembers(value: object, chars: number): number {
  const members = value as Readonly<Record<string, unknown>>;
  let left = chars;
  for (const name of Object.keys(members)) {
    if (left < 0) return left;
    left = countCharsLeft(members[name], left - name.length);
  }
  return left;
}

function* writeItems(
  writing: JsonOutput,
  items: readonly unknown[],
  levels: number,
): Generator<undefined, void> {
  addPiece(writing, "[");
  for (const [at, item] of items.entries()) {
    if (at > 0) addPiece(writing, ",");
    yield* writeValue(writing, item, levels - 1);
  }
  addPiece(writing, "]");
}

function* writeMembers(writing: JsonOutput, value: object, levels: number): Generator<undefined, void> {
  addPiece(writing, "{");
  let separator = "";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    addPiece(writing, `${separator}${JSON.stringify(name)}:`);
    separator = ",";
    yield* writeValue(writing, member, levels - 1);
  }
  addPiece(writing, "}");
}

function addPiece(writing: JsonOutput, piece: string): void {
  writing.pieces.push(piece);
  writing.chars += piece.length;
}

function isSliceFull({ pieces, chars }: JsonOutput): boolean {
  return pieces.length >= PIECES_PER_SLICE || chars >= CHARS_PER_SLICE;
}

function endSlice(writing: JsonOutput): void {
  writing.written.push(writing.pieces.join(""));
  writing.pieces = [];
  writing.chars = 0;
}
