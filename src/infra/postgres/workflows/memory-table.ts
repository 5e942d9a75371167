/**
 * Owns: the memory of workflow runs as it lies beside their logs. Every entry has the number of the event that tells of it,
 * and events are numbered over the whole ledger: what was there before an event of some run is a range (MAE-3).
 */
import type { MemoryAsOf, MemoryJournal } from "../../../agents/coordination/ports/workflow-store.ts";
import { memoryFromRow, type EntryRow } from "../../ledger/memory-entries.ts";
import { eventNumberFromPosition } from "../../ledger/position-sql.ts";
import type { SendQuery } from "../database/connect.ts";
import type { OpenLedger } from "../database/commit-queue.ts";
import { findPosition } from "./find-position.ts";

const COLUMNS = "memory_id, content, tags, created_at, expires_at";

/** An entry whose id was written again is there only as it was written last, and not at all when that has expired. */
const IS_THERE = `
  (entry.expires_at_ms is null or entry.expires_at_ms > @now)
  and (entry.replaced_by is null or entry.replaced_by >= @before)`;

/**
 * Creates the store of the memory of workflows in a PostgreSQL ledger: lists and finds entries, as of now or of an
 * event, and deletes expired ones.
 */
export function createMemoryJournal({ database: { query }, guarded, written }: OpenLedger): MemoryJournal {
  return {
    list: ({ tenant, scope }, { now, limit, tag, asOf }) =>
      guarded(async () => {
        const before = await findEventNumber(query, asOf);
        if (before === undefined) return [];
        const sql = tag === undefined ? LIST : LIST_TAGGED;
        const values = { tenant, scope, now, limit, before, ...(tag !== undefined && { tag }) };
        return (await query<EntryRow>(sql, values)).map(memoryFromRow);
      }),
    get: ({ tenant, scope }, id, { now, asOf }) =>
      guarded(async () => {
        const before = await findEventNumber(query, asOf);
        if (before === undefined) return undefined;
        const [row] = await query<EntryRow>(GET, { tenant, scope, id, now, before });
        return row && memoryFromRow(row);
      }),
    deleteExpired: (before, limit) =>
      written(async (write) => (await write(DELETE_EXPIRED, { before, limit })).length),
  };
}

const LIST = `
  select ${COLUMNS}
  from memory_entry as entry
  where tenant = @tenant and scope = @scope and event_key < @before and ${IS_THERE}
  order by event_key desc
  limit @limit`;

const LIST_TAGGED = `
  select ${COLUMNS}
  from memory_tag
  join memory_entry as entry using (event_key)
  where memory_tag.tenant = @tenant
    and memory_tag.scope = @scope
    and memory_tag.tag = @tag
    and event_key < @before
    and ${IS_THERE}
  order by event_key desc
  limit @limit`;

const GET = `
  select ${COLUMNS}
  from (
    select *
    from memory_entry
    where tenant = @tenant and scope = @scope and memory_id = @id and event_key < @before
    order by event_key desc
    limit 1
  ) as entry
  where ${IS_THERE}`;

const DELETE_EXPIRED = `
  delete from memory_entry
  where event_key in (
    select event_key
    from memory_entry
    where expires_at_ms < @before
    order by expires_at_ms
    limit @limit
  )
  returning 1`;

/**
 * Returns the number of the first event that a reader as of a run's event does not see. `undefined` for an unknown
 * run.
 */
async function findEventNumber(query: SendQuery, asOf: MemoryAsOf | undefined): Promise<number | undefined> {
  const position = await findPosition(query, asOf);
  return position === undefined ? undefined : eventNumberFromPosition(position);
}
