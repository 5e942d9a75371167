/** Owns: how much of a log is read at once. A page of a log may hold megabytes, and reading it stops the event loop. */

/** Bounds of one slice: a few milliseconds. */
export interface SliceBounds {
  readonly events: number;
  readonly chars: number;
}

export interface RowSlice<Row> {
  readonly rows: readonly Row[];
  /** There may be more. */
  readonly isCut: boolean;
}

/**
 * Takes rows until one of the bounds (rows, characters of payload) is reached, and returns them; `isCut` where a bound
 * was reached, so that there may be more.
 */
export function takeSlice<Row extends { readonly payload: string }>(
  source: Iterable<Row>,
  bounds: SliceBounds,
): RowSlice<Row> {
  const rows: Row[] = [];
  let chars = 0;
  for (const row of source) {
    rows.push(row);
    chars += row.payload.length;
    if (chars >= bounds.chars || rows.length >= bounds.events) return { rows, isCut: true };
  }
  return { rows, isCut: false };
}
