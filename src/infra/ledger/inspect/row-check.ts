/** Owns: how a check of a table is written once for both kinds of ledger: a query, and the damage that its rows show. */
import type { ProblemReporter } from "./report.ts";

export interface RowCheck {
  /** Is understood by both databases. */
  readonly sql: string;
  readonly begin: (report: ProblemReporter) => StartedCheck;
}

export interface StartedCheck {
  /** Takes the rows in the order of the query. */
  add(row: unknown): void;
  /** There are no more. */
  end(): void;
}

/**
 * Creates a check that calls `checkRow` with each row that the SQL finds, and needs nothing of other rows. The row's
 * type has to fit the query's columns; the compiler cannot tell.
 */
export function createRowCheck(
  sql: string,
  checkRow: (row: never, report: ProblemReporter) => void,
): RowCheck {
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
