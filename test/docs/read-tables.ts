/** Owns: reading the tables of a Markdown page, and the lists that stand for tables too wide for a line. */

/**
 * Returns the cells of every row below the header that begins with `firstColumn`; of all tables that have that header.
 *
 * A list stands for a table where a comment above it names the columns. Its items are rows, the first cell in bold:
 *
 * ```md
 * <!-- columns: code | meaning | what to do -->
 *
 * - **`A_CODE`**
 *   - meaning: what happened
 * ```
 *
 * The second of two columns follows in the same line: `- **key**: value`. A cell that is left out is empty.
 */
export function readTableRows(page: string, firstColumn: string): string[][] {
  return [...readRowsOfTables(page, firstColumn), ...readRowsOfLists(page, firstColumn)];
}

/** Returns the text as one line, so that a sentence is found wherever its lines break. */
export function unwrapText(page: string): string {
  return page.replaceAll(/\s+/gu, " ");
}

function readRowsOfTables(page: string, firstColumn: string): string[][] {
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

const LIST = /^<!-- columns: (?<names>.+) -->\n\n(?<items>(?:(?:- | +\S).*\n|\n(?=- ))+)/gmu;

function readRowsOfLists(page: string, firstColumn: string): string[][] {
  return [...page.matchAll(LIST)].flatMap(({ groups }) => {
    const columns = (groups?.["names"] ?? "").split(" | ");
    return columns[0] === firstColumn ? readRowsOfItems(groups?.["items"] ?? "", columns) : [];
  });
}

function readRowsOfItems(items: string, columns: readonly string[]): string[][] {
  return items
    .split(/^- /mu)
    .slice(1)
    .map((item) => readRowOfItem(item, columns));
}

function readRowOfItem(item: string, [, ...columns]: readonly string[]): string[] {
  const [head = "", ...rest] = item.split(/^ {2}- /mu).map((text) => unwrapText(text).trim());
  const [, key = head, value] = /^\*\*(.+?)\*\*(?:: (.*))?$/u.exec(head) ?? [];
  if (columns.length === 1) return [key, value ?? ""];
  const cells = new Map(rest.map((text) => splitOnce(text)));
  return [key, ...columns.map((column) => cells.get(column) ?? "")];
}

/** Returns what stands before the first colon, and what follows it. */
function splitOnce(text: string): [name: string, value: string] {
  const colon = text.indexOf(": ");
  return colon === -1 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 2)];
}
