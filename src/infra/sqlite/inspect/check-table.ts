/** Owns: reading the rows of a check from a file. */
import type { Database } from "better-sqlite3";
import type { ProblemReporter } from "../../ledger/inspect/report.ts";
import type { RowCheck } from "../../ledger/inspect/row-check.ts";

/**
 * Runs a check over the rows that its SQL finds in a ledger file, one after the other; the check reports the problems
 * to `report`.
 */
export function runRowCheck(database: Database, { sql, begin }: RowCheck, report: ProblemReporter): void {
  const check = begin(report);
  for (const row of database.prepare(sql).iterate()) check.add(row);
  check.end();
}
