/** Owns: texts of any length that a script can ask for without holding them, the same in the model and in the test. */

export interface LongText {
  readonly chars: number;
  /** The text begins and ends with these, and has one in its middle. */
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
  /** Absent: all of it is one line. */
  readonly lineChars?: number;
}

const WORD = "lorem 😀 ipsum ";

/** Writes a text of `chars` characters, or fewer by less than one word. */
export function writeLongText({ chars, head, middle, tail, lineChars }: LongText): string {
  const left = Math.max(0, chars - head.length - middle.length - tail.length);
  const filler = fillLines(Math.floor(left / 2), lineChars);
  return `${head}${filler}${middle}${filler}${tail}`;
}

function fillLines(chars: number, lineChars = Infinity): string {
  if (lineChars === Infinity) return WORD.repeat(Math.floor(chars / WORD.length));
  const line = `${WORD.repeat(Math.floor((lineChars - 2) / WORD.length))}\n`;
  return `\n${line.repeat(Math.floor((chars - 1) / line.length))}`;
}
