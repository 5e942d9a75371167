/** Owns: the SQL that reads the events of a run. */
import type { EventRow } from "../../ledger/event-row.ts";
import type { ReadHashed } from "../../ledger/find-damage.ts";
import type { ReadSlice } from "../../ledger/read-events.ts";
import type { SliceBounds } from "../../ledger/row-slice.ts";
import type { HashedRow, HeadRow, RunCounts, RunKind } from "../../ledger/stored-run.ts";
import type { SendQuery } from "./connect.ts";
import type { SqlValues } from "./named-values.ts";

/** A coordination has no origin, whatever its row says. */
const ORIGIN: Readonly<Record<RunKind, string>> = {
  coordination: "null::text as origin",
  workflow: "origin",
};

const COLUMNS = "run_key, run_id, length, summary";

export const RUN_COLUMNS: Readonly<Record<RunKind, string>> = {
  coordination: `${COLUMNS}, ${ORIGIN.coordination}`,
  workflow: `${COLUMNS}, ${ORIGIN.workflow}`,
};

export const EVENT_COLUMNS = "sequence, type, timestamp_ms, node_id, causation_id, payload";

/**
 * Returns the function that reads the next rows of a run's events from a PostgreSQL ledger, up to bounds; for a
 * workflow's run also its stored origin.
 */
export function createSliceReader(query: SendQuery, kind: RunKind): ReadSlice {
  return async ({ runId, from }, bounds) => {
    const rows = await readEventRows<EventRow>(
      query,
      { kind, columns: EVENT_COLUMNS, isInRange: "sequence >= @from" },
      {
        values: { runId, from },
        bounds,
      },
    );
    const origin = rows.length > 0 && kind === "workflow" ? await readOriginText(query, runId) : undefined;
    return { rows, isCut: isSliceCut(rows, bounds), origin };
  };
}

async function readOriginText(query: SendQuery, runId: string): Promise<string | null | undefined> {
  const [row] = await query<{ origin: string | null }>("select origin from run where run_id = @runId", {
    runId,
  });
  return row?.origin;
}

/**
 * Returns the function that reads from a PostgreSQL ledger a range of a run's events with their hashes, and the head
 * that the run's row claims.
 */
export function createHashedReader(query: SendQuery, kind: RunKind): ReadHashed {
  return async ({ runId, from, before }, bounds) => {
    const [head] = await query<HeadRow>(
      `select length, head_hash, ${ORIGIN[kind]} from run where run_id = @runId and kind = '${kind}'`,
      { runId },
    );
    const range = {
      kind,
      columns: `${EVENT_COLUMNS}, hash`,
      isInRange: "sequence >= @from and sequence < @before",
    };
    const rows = await readEventRows<HashedRow>(query, range, { values: { runId, from, before }, bounds });
    return { head, rows };
  };
}

interface RangeSql {
  readonly kind: RunKind;
  readonly columns: string;
  readonly isInRange: string;
}

/**
 * Reads the events of a run in a range, within bounds. The server adds up the lengths, so that what is behind the
 * bound does not come over the wire.
 */
function readEventRows<Row>(
  query: SendQuery,
  { kind, columns, isInRange }: RangeSql,
  { values, bounds }: { readonly values: SqlValues; readonly bounds: SliceBounds },
): Promise<Row[]> {
  return query<Row>(
    `select ${columns}
     from (
       select ${columns}, sum(length(payload)) over (order by sequence) - length(payload) as chars_before
       from (
         select ${columns}
         from event
         where run_key = (select run_key from run where run_id = @runId and kind = '${kind}') and ${isInRange}
         order by sequence
         limit @limit
       ) as range
     ) as slice
     where chars_before < @chars
     order by sequence`,
    { ...values, limit: bounds.events, chars: bounds.chars },
  );
}

/** True where rows have reached a bound, and there may be more. */
function isSliceCut(rows: readonly EventRow[], { events, chars }: SliceBounds): boolean {
  if (rows.length >= events) return true;
  return rows.reduce((sum, { payload }) => sum + payload.length, 0) >= chars;
}

/** Returns how many coordinations and how many runs of workflows a PostgreSQL ledger holds. */
export async function countRuns(query: SendQuery): Promise<RunCounts> {
  const rows = await query<{ kind: RunKind; count: number }>(
    "select kind, count(*) as count from run group by kind order by kind",
  );
  const countOf = (kind: RunKind): number => rows.find((row) => row.kind === kind)?.count ?? 0;
  return { coordinations: countOf("coordination"), workflowRuns: countOf("workflow") };
}

/**
 * Returns the id of the gateway from whose own ledger this one was copied; `undefined` where it was not, and in an
 * older schema, which has no column for it.
 */
export async function readMovedFrom(query: SendQuery): Promise<string | undefined> {
  const [row] = await query<{ moved_from: string | null }>(
    "select to_jsonb(ledger_count) ->> 'moved_from' as moved_from from ledger_count order by only_row",
  );
  return row?.moved_from ?? undefined;
}
