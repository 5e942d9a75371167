/** Owns: finding the line of a text that a character position lies in. */

/** The last line that begins at or before a place; the first where none does. */
export function findLineIndex(lines: readonly { readonly start: number }[], place: number): number {
  let low = 0;
  let high = lines.length;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((lines[middle]?.start ?? Infinity) <= place) low = middle;
    else high = middle;
  }
  return low;
}
