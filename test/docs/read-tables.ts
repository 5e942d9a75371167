/** Owns: reading the tables of a Markdown page. */

/** The cells of every row below the header that begins with `firstColumn`; of all tables that have that header. */
export function tableRows(page: string, firstColumn: string): string[][] {
  const rows: string[][] = [];
  let inside = false;
  for (const line of page.split("\n")) {
    const cells = line.startsWith("|") ? cellsOf(line) : undefined;
    if (!cells) inside = false;
    else if (cells[0] === firstColumn) inside = true;
    else if (inside && !isRule(cells)) rows.push(cells);
  }
  return rows;
}

function cellsOf(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function isRule(cells: readonly string[]): boolean {
  return cells.every((cell) => /^:?-+:?$/u.test(cell));
}
