/** Owns: how a check of a table is written once for both kinds of ledger: a query, and the damage that its rows show. */
import type { Report } from "./report.ts";

export interface RowCheck {
  /** Is understood by both databases. */
  readonly sql: string;
  readonly begin: (report: Report) => StartedCheck;
}

export interface StartedCheck {
  /** Takes the rows in the order of the query. */
  add(row: unknown): void;
  /** There are no more. */
  end(): void;
}

/** Returns a check that looks at each row by itself. The type of the row is that of the columns of the query. */
export function createRowCheck(sql: string, checkRow: (row: never, report: Report) => void): RowCheck {
  return {
    sql,
    begin: (report) => ({
      add: (row) => {
        checkRow(row as never, report);
      },
      end: () => undefined,
    }),
  };
}
