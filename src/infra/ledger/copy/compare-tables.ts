/** Owns: whether two ledgers hold the same rows, and the hash over the heads of all runs of a ledger. */
import { createHash } from "node:crypto";
import { setImmediate as othersTurn } from "node:timers/promises";
import { COPIED_TABLES, RUN_TABLE, type CopiedTable } from "./copied-tables.ts";
import { pickKey, measureRowBytes, type CopiedRow, type CopySide } from "./copy-sides.ts";

export interface TableDigest {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** The digests of a ledger's tables, and which of them differ from the copy's. */
export interface TableComparison {
  readonly digests: ReadonlyMap<string, TableDigest>;
  /** The tables in which the two are not equal. */
  readonly differing: readonly string[];
}

export type OnCompared = (table: string, rows: number) => void;

/**
 * Compares each table of two ledgers by its number of rows and their hash, and returns the target's hashes and the
 * names of the tables that differ.
 */
export async function compareTables(
  source: CopySide,
  target: CopySide,
  onCompared: OnCompared,
): Promise<TableComparison> {
  const digests = new Map<string, TableDigest>();
  const differing: string[] = [];
  for (const table of COPIED_TABLES) {
    const show = (rows: number): void => onCompared(table.name, rows);
    const expected = await hashTable(source, table, show);
    const actual = await hashTable(target, table, show);
    digests.set(table.name, actual);
    if (actual.rows !== expected.rows || actual.sha256 !== expected.sha256) differing.push(table.name);
  }
  return { digests, differing };
}

/** Returns the hash over all rows of a table, how many they are, and their bytes. */
async function hashTable(
  side: CopySide,
  table: CopiedTable,
  onRows: (rows: number) => void,
): Promise<TableDigest> {
  const digest = createHash("sha256");
  let rows = 0;
  let bytes = 0;
  for await (const page of readTablePages(side, table)) {
    for (const row of page) {
      digest.update(formatRow(row));
      bytes += measureRowBytes(row);
    }
    rows += page.length;
    onRows(rows);
  }
  return { rows, bytes, sha256: digest.digest("hex") };
}

/** Yields the rows of a table of a ledger behind the key of `from`, or all, page by page in the order of the key. */
export async function* readTablePages(
  side: CopySide,
  table: CopiedTable,
  from?: CopiedRow,
): AsyncGenerator<CopiedRow[]> {
  let after = from;
  for (;;) {
    const rows = await side.readRows(table, after);
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    after = pickKey(table, last);
    // Signals are heard and progress is shown in between, also where nothing is waited for.
    await othersTurn();
  }
}

function formatRow(row: CopiedRow): string {
  const values = row.map((value) => (value instanceof Buffer ? value.toString("base64") : value));
  return `${JSON.stringify(values)}\n`;
}

/** Returns a hash over the ids, lengths and head hashes of all runs of a ledger, oldest first. */
export async function hashHeads(side: CopySide): Promise<string> {
  const digest = createHash("sha256");
  const names = Object.keys(RUN_TABLE.columns);
  const places = ["run_id", "length", "head_hash"].map((name) => names.indexOf(name));
  for await (const page of readTablePages(side, RUN_TABLE))
    for (const row of page) digest.update(formatRow(places.map((place) => row[place] ?? null)));
  return digest.digest("hex");
}
