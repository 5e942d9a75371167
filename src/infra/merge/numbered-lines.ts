/** Owns: lines as numbers, the same for the same line. A line has its end, so texts are the sum of their lines. */

export interface NumberedLines {
  /** For each text, the numbers of its lines. */
  readonly texts: readonly number[][];
  /** By number, from 0. */
  readonly lines: readonly string[];
}

/**
 * Returns each text as a list of numbers, one for each line, where equal lines have equal numbers, and the line of
 * each number; `undefined` where the texts have more than `linesMax` lines in all.
 */
export function numberLines(texts: readonly string[], linesMax: number): NumberedLines | undefined {
  const numbers = new Map<string, number>();
  const all: number[][] = [];
  let left = linesMax;
  for (const text of texts) {
    const found = numberLinesOfText(text, numbers, left);
    if (!found) return undefined;
    left -= found.length;
    all.push(found);
  }
  return { texts: all, lines: [...numbers.keys()] };
}

/** Returns a text as numbers of lines, and adds lines that are new to `numbers`. `undefined` for too many. */
function numberLinesOfText(
  text: string,
  numbers: Map<string, number>,
  linesMax: number,
): number[] | undefined {
  const ownNumbers: number[] = [];
  for (let start = 0; start < text.length;) {
    if (ownNumbers.length === linesMax) return undefined;
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline + 1;
    const line = text.slice(start, end);
    const number = numbers.get(line) ?? numbers.size;
    if (number === numbers.size) numbers.set(line, number);
    ownNumbers.push(number);
    start = end;
  }
  return ownNumbers;
}
