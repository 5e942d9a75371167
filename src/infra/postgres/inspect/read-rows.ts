/** Owns: reading tables of any size row by row, within one transaction. */
import type { SendQuery } from "../database/connect.ts";

const ROWS_AT_ONCE = 500;
let opened = 0;

/**
 * Yields the rows that an SQL query without values finds, fetched by a few hundred over a cursor; needs a transaction
 * that has begun.
 */
export async function* readRowsByCursor<Row>(query: SendQuery, sql: string): AsyncGenerator<Row> {
  opened += 1;
  const cursor = `rows_${opened}`;
  await query(`declare ${cursor} no scroll cursor for ${sql}`);
  for (;;) {
    const rows = await query<Row>(`fetch ${ROWS_AT_ONCE} from ${cursor}`);
    yield* rows;
    if (rows.length < ROWS_AT_ONCE) break;
  }
  await query(`close ${cursor}`);
}

export interface RowsByRun<Row> {
  /** Yields the rows of a run. Runs are asked for in the order of their keys; rows of runs in between are passed over. */
  readRun(runKey: number): AsyncGenerator<Row>;
}

/**
 * Creates the reader that walks once over the rows of a query that orders them by run, and yields those of one run
 * after the other; rows of runs that are passed over are skipped.
 */
export function createRowsByRun<Row extends { readonly run_key: number }>(
  query: SendQuery,
  sql: string,
): RowsByRun<Row> {
  const rows = readRowsByCursor<Row>(query, sql);
  let next: IteratorResult<Row, unknown> | undefined;
  return {
    async *readRun(runKey) {
      next ??= await rows.next();
      while (!next.done && next.value.run_key <= runKey) {
        if (next.value.run_key === runKey) yield next.value;
        next = await rows.next();
      }
    },
  };
}
