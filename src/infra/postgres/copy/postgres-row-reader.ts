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

export function createRowReader(query: SendQuery): CopySide["readRows"] {
  return async (table, after) => {
    const rows = await query<Record<string, CopiedValue>>(selectBatch(table, after !== undefined), {
      ...Object.fromEntries((after ?? []).map((value, at) => [`key${at}`, value])),
    });
    const names = Object.keys(table.columns);
    return rows.map((row): CopiedRow => names.map((name) => row[name] ?? null));
  };
}

/** The server adds up what rows take, so that a batch of long texts is a short one. */
function selectBatch(table: CopiedTable, isAfter: boolean): string {
  const { name, key, columns } = table;
  const keys = key.join(", ");
  const names = Object.keys(columns).join(", ");
  const bound = key.map((column, at) => `@key${at}::${SQL_TYPES[columns[column] ?? "text"]}`).join(", ");
  return `select ${names}
    from (
      select *, sum(row_bytes) over (order by ${keys} rows unbounded preceding) - row_bytes as bytes_before
      from (
        select ${names}, ${measureColumns(table)} as row_bytes
        from ${name}
        ${isAfter ? `where (${keys}) > (${bound})` : ""}
        order by ${keys}
        limit ${BATCH_MAX.rows}
      ) as page
    ) as measured
    where bytes_before < ${BATCH_MAX.bytes}
    order by ${keys}`;
}

function measureColumns({ columns }: CopiedTable): string {
  return Object.entries(columns)
    .map(([name, type]) => (type === "integer" ? "8" : `coalesce(octet_length(${name}), 0)`))
    .join(" + ");
}

/** Returns what changes with every change of a table: how many rows it has, and which transactions wrote them. */
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
