/** Owns: lines as numbers, the same for the same line. A line has its end, so texts are the sum of their lines. */

export interface NumberedLines {
  /** For each text, the numbers of its lines. */
  readonly texts: readonly number[][];
  /** By number, from 0. */
  readonly lines: readonly string[];
}

/** `undefined` for more than `linesMax` lines in all texts together. */
export function numberLines(texts: readonly string[], linesMax: number): NumberedLines | undefined {
  const numbers = new Map<string, number>();
  const all: number[][] = [];
  let left = linesMax;
  for (const text of texts) {
    const found = numbersOf(text, numbers, left);
    if (!found) return undefined;
    left -= found.length;
    all.push(found);
  }
  return { texts: all, lines: [...numbers.keys()] };
}

function numbersOf(text: string, numbers: Map<string, number>, linesMax: number): number[] | undefined {
  const found: number[] = [];
  for (let start = 0; start < text.length;) {
    if (found.length === linesMax) return undefined;
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline + 1;
    const line = text.slice(start, end);
    const number = numbers.get(line) ?? numbers.size;
    if (number === numbers.size) numbers.set(line, number);
    found.push(number);
    start = end;
  }
  return found;
}
