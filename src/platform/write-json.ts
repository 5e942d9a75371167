/**
 * Owns: writing large values as JSON in slices. A native call writes a whole value at once, and a run has megabytes of them.
 *
 * The members of the first levels are written one by one; what lies deeper is within a value of one event, which has a bound.
 */

/** An answer, its events or variables, an event or a value, its payload, a member of that. */
const LEVELS = 5;
/** Characters of one slice: about a millisecond of writing. */
const CHARS_PER_SLICE = 65_536;
const PIECES_PER_SLICE = 1_000;

interface Writing {
  /** Texts that earlier slices wrote. */
  readonly written: string[];
  pieces: string[];
  chars: number;
}

/** Writes a value like `JSON.stringify`, in parts that follow each other; yields after each. */
export function* writeJson(value: unknown): Generator<undefined, readonly string[]> {
  const writing: Writing = { written: [], pieces: [], chars: 0 };
  yield* write(writing, value, LEVELS);
  endSlice(writing);
  return writing.written;
}

function* write(writing: Writing, value: unknown, levels: number): Generator<undefined, void> {
  if (levels === 0 || typeof value !== "object" || value === null) {
    add(writing, value === undefined ? "null" : JSON.stringify(value));
    if (isSlice(writing)) {
      endSlice(writing);
      yield;
    }
  } else if (Array.isArray(value)) yield* writeItems(writing, value, levels);
  else yield* writeMembers(writing, value, levels);
}

function* writeItems(
  writing: Writing,
  items: readonly unknown[],
  levels: number,
): Generator<undefined, void> {
  add(writing, "[");
  for (const [at, item] of items.entries()) {
    if (at > 0) add(writing, ",");
    yield* write(writing, item, levels - 1);
  }
  add(writing, "]");
}

function* writeMembers(writing: Writing, value: object, levels: number): Generator<undefined, void> {
  add(writing, "{");
  let separator = "";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    add(writing, `${separator}${JSON.stringify(name)}:`);
    separator = ",";
    yield* write(writing, member, levels - 1);
  }
  add(writing, "}");
}

function add(writing: Writing, piece: string): void {
  writing.pieces.push(piece);
  writing.chars += piece.length;
}

function isSlice({ pieces, chars }: Writing): boolean {
  return pieces.length >= PIECES_PER_SLICE || chars >= CHARS_PER_SLICE;
}

function endSlice(writing: Writing): void {
  writing.written.push(writing.pieces.join(""));
  writing.pieces = [];
  writing.chars = 0;
}
