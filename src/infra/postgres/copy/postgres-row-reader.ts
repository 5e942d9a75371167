/** Owns: reading the rows of a ledger on a server in batches, as a copy holds them. */
import { COPIED_TABLES, type ColumnType, type CopiedTable } from "../../ledger/copy/copied-tables.ts";
import { BATCH_MAX, type CopiedRow, type CopiedValue, type CopySide } from "../../ledger/copy/copy-sides.ts";
import type { SendQuery } from "../database/connect.ts";

/** The types of the server, by those of a copy. */
export const SQL_TYPES: Readonly<Record<ColumnType, string>> = {
  integer: "bigint",
  text: "text",
  bytes: "bytea",
};

/**
 * Returns the function that reads from PostgreSQL the next batch of a table's rows: those behind a key, or the first
 * without one.
 */
export function createRowReader(query: SendQuery): CopySide["readRows"] {
  return async (table, after) => {
    const rows = await query<Record<string, CopiedValue>>(formatBatchQuery(table, after !== undefined), {
      ...Object.fromEntries((after ?? []).map((value, at) => [`key${at}`, value])),
    });
    const names = Object.keys(table.columns);
    return rows.map((row): CopiedRow => names.map((name) => row[name] ?? null));
  };
}

/**
 * Returns the SQL that reads a batch of rows. The server adds up what rows take, so that a batch of long texts is a
 * short one.
 */
function formatBatchQuery(table: CopiedTable, isAfter: boolean): string {
  const { name, key, columns } = table;
  const keys = key.join(", ");
  const names = Object.keys(columns).join(", ");
  const bound = key.map((column, at) => `@key${at}::${SQL_TYPES[columns[column] ?? "text"]}`).join(", ");
  return `select ${names}
    from (
      select *, sum(row_bytes) over (order by ${keys} rows unbounded preceding) - row_bytes as bytes_before
      from (
        select ${names}, ${formatRowBytes(table)} as row_bytes
        from ${name}
        ${isAfter ? `where (${keys}) > (${bound})` : ""}
        order by ${keys}
        limit ${BATCH_MAX.rows}
      ) as page
    ) as measured
    where bytes_before < ${BATCH_MAX.bytes}
    order by ${keys}`;
}

/** Returns the SQL of how many bytes a row takes. */
function formatRowBytes({ columns }: CopiedTable): string {
  return Object.entries(columns)
    .map(([name, type]) => (type === "integer" ? "8" : `coalesce(octet_length(${name}), 0)`))
    .join(" + ");
}

/**
 * Returns a text that is another one after every change of a copied table: the number of its rows and the transactions
 * that wrote them.
 */
export async function stampTables(query: SendQuery): Promise<string> {
  const stamps: unknown[] = [];
  for (const name of [...COPIED_TABLES.map((table) => table.name), "ledger_count"])
    stamps.push(
      await query(
        `select count(*) as rows, coalesce(sum(xmin::text::bigint), 0)::text as writers, min(xmin::text) as first
         from ${name}`,
      ),
    );
  return JSON.stringify(stamps);
}
