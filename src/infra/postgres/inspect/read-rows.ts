/** Owns: reading tables of any size row by row, within one transaction. */
import type { SendQuery } from "../database/connect.ts";

const ROWS_AT_ONCE = 500;
let opened = 0;

/** Yields what a query without values finds. */
export async function* readRows<Row>(query: SendQuery, sql: string): AsyncGenerator<Row> {
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

/** Reads rows run by run from a query that orders them by run. */
export function createRowsByRun<Row extends { readonly run_key: number }>(
  query: SendQuery,
  sql: string,
): RowsByRun<Row> {
  const rows = readRows<Row>(query, sql);
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
