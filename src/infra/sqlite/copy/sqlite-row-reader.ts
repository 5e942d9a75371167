/** Owns: reading the rows of a ledger file in batches, as a copy holds them. */
import type BetterSqlite3 from "better-sqlite3";
import { OPEN_END, type CopiedTable } from "../../ledger/copy/copied-tables.ts";
import { BATCH_MAX, measureRowBytes, type CopiedRow, type CopySide } from "../../ledger/copy/copy-sides.ts";
import { runWithLedgerErrors } from "../database/sqlite-errors.ts";

/** The end of the last version of a file, which no number of JavaScript holds. */
export const STORED_OPEN_END = "9223372036854775807";

/**
 * Returns the function that reads from a ledger file the next batch of a table's rows: those behind a key, or the
 * first without one.
 */
export function createRowReader(database: BetterSqlite3.Database, path: string): CopySide["readRows"] {
  return (table, after) =>
    new Promise((resolve) => {
      resolve(runWithLedgerErrors(path, () => readBatch(database, table, after)));
    });
}

function readBatch(
  database: BetterSqlite3.Database,
  table: CopiedTable,
  after: CopiedRow | undefined,
): CopiedRow[] {
  const { name, key, columns } = table;
  const keys = key.join(", ");
  const place = after ? `where (${keys}) > (${key.map(() => "?").join(", ")})` : "";
  const selected = Object.keys(columns).map(formatSelectedColumn).join(", ");
  const rows: CopiedRow[] = [];
  let bytes = 0;
  const rowsBehindKey = database
    .prepare<unknown[], CopiedRow>(`select ${selected} from ${name} ${place} order by ${keys}`)
    .raw()
    .iterate(...(after ?? []));
  for (const row of rowsBehindKey) {
    rows.push(row);
    bytes += measureRowBytes(row);
    if (rows.length >= BATCH_MAX.rows || bytes >= BATCH_MAX.bytes) break;
  }
  return rows;
}

/** Returns the SQL that reads a column: the end of an open version is read as a number that JavaScript can hold. */
function formatSelectedColumn(name: string): string {
  if (name !== "until_position") return name;
  return `iif(${name} = ${STORED_OPEN_END}, ${OPEN_END}, ${name})`;
}
