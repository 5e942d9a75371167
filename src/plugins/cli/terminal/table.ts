/** Owns: the columns of a table: as wide as their widest text, within the width of the terminal. */
import type { Terminal } from "./cli-host.ts";
import { countCells, shorten, shortenStart } from "./printable.ts";

export interface Column<Row> {
  readonly heading: string;
  /** Returns the text of a row, printable. */
  readonly text: (row: Row) => string;
  /** The least and the most cells, whatever the texts are. */
  readonly min?: number;
  readonly max?: number;
  /** The least cells of the one column that takes what the others leave. */
  readonly restMin?: number;
  /** Aligned at the end. */
  readonly isNumber?: boolean;
  /** Cut at the beginning: the end of a path tells more. */
  readonly isPath?: boolean;
  /** Paints the cell, which has its width already. */
  readonly paint?: (cell: string, row: Row) => string;
}

const GAP = "  ";

/** Renders the headings, then a line for each row. The last column is not padded. */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  terminal: Pick<Terminal, "columns" | "unicode">,
): string[] {
  const measured = columns.map((column) => {
    const texts = [column.heading, ...rows.map(column.text)];
    return { column, texts, cells: Math.max(column.min ?? 0, measureCells(texts, column.max)) };
  });
  const others = measured.filter(({ column }) => column.restMin === undefined);
  const rest = others.reduce((left, { cells }) => left - cells - GAP.length, terminal.columns);
  const fitted = measured.map(({ column, texts, cells }) => {
    const { restMin, isNumber, isPath, paint } = column;
    const width = restMin === undefined ? cells : Math.min(cells, Math.max(restMin, rest));
    const [heading = "", ...rowCells] = texts.map((text) => {
      const cut = (isPath ? shortenStart : shorten)(text, width, terminal.unicode);
      const padding = " ".repeat(Math.max(0, width - countCells(cut)));
      if (isNumber) return padding + cut;
      return column === columns.at(-1) ? cut : cut + padding;
    });
    const painted = rowCells.map((cell, index) => {
      const row = rows[index];
      return paint && row !== undefined ? paint(cell, row) : cell;
    });
    return [heading, ...painted];
  });
  return ["", ...rows].map((_, line) => fitted.map((column) => column[line] ?? "").join(GAP));
}

/** Returns the cells of the widest text, at most `max`. */
export function measureCells(texts: readonly string[], max = Infinity): number {
  const widest = texts.reduce((cells, text) => Math.max(cells, countCells(text)), 0);
  return Math.min(widest, max);
}
