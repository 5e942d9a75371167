/**
 * Owns: reading which events were the newest of their runs when the ledger had a number of events. Events are numbered as they
 * are appended, so this is the same later, and while others append.
 */
import type { HashAt, HashPlace, HeadPlace, PlacedHead } from "../../ledger/opened-ledger.ts";
import type { SendQuery } from "../database/connect.ts";
import { formatPrunedTable } from "../database/pruned-table.ts";

interface HeadRow {
  readonly ordinal: number;
  readonly runId: string;
  readonly sequence: number;
  readonly hash: Buffer;
  readonly pruned: "as-then" | "grown" | null;
}

/**
 * Returns the highest number that an event of the ledger ever had, as far as the stored events and the traces of
 * pruned runs tell; 0 for a ledger without events.
 */
export async function readNewestEventNumber(query: SendQuery): Promise<number> {
  const [counts] = await query<{ newest: number }>(
    `${await formatPrunedTable(query)}
     select greatest(
       (select coalesce(max(event_key), 0) from event),
       (select coalesce(max(newest_event), 0) from pruned_run)
     ) as newest`,
  );
  return counts?.newest ?? 0;
}

/**
 * Returns for a page of runs, oldest first, the last event and its hash that each had when the ledger had `events`
 * events. A pruned run has its very last event instead, and `pruned` says whether it grew after that.
 */
export async function readPastHeads(query: SendQuery, place: HeadPlace): Promise<PlacedHead[]> {
  const rows = await query<HeadRow>(`${await formatPrunedTable(query)} ${HEADS}`, { ...place });
  return rows.map(({ ordinal, runId, sequence, hash, pruned }) => ({
    ordinal,
    runId,
    events: sequence + 1,
    hash: hash.toString("hex"),
    ...(pruned !== null && { pruned }),
  }));
}

const HEADS = `
  (
    select run.run_key as ordinal, run.run_id as "runId", newest.sequence, newest.hash, null as pruned
    from run
    join lateral (
      select event.sequence, event.hash
      from event
      where event.run_key = run.run_key and event.event_key <= @events
      order by event.sequence desc
      limit 1
    ) as newest on true
    where run.run_key > @after
    order by run.run_key
    limit @limit
  )
  union all
  (
    select run_key, run_id, length - 1, head_hash, case when newest_event > @events then 'grown' else 'as-then' end
    from pruned_run
    where first_event <= @events and run_key > @after
    order by run_key
    limit @limit
  )
  order by ordinal
  limit @limit`;

/**
 * Returns the hash of one event of a run, and how long the run is; without hash where the event is not known,
 * `undefined` for a run that the ledger does not know, not even as pruned.
 */
export async function readEventHash(
  query: SendQuery,
  { runId, sequence }: HashPlace,
): Promise<HashAt | undefined> {
  const [row] = await query<{ length: number; hash: Buffer | null; isPruned: boolean }>(
    `${await formatPrunedTable(query)}
     select run.length, event.hash, false as "isPruned"
     from run
     left join event on event.run_key = run.run_key and event.sequence = @sequence
     where run.run_id = @runId
     union all
     select length, case when length = @sequence::bigint + 1 then head_hash end, true
     from pruned_run
     where run_id = @runId`,
    { runId, sequence },
  );
  if (!row) return undefined;
  const { length, hash, isPruned } = row;
  return { length, ...(hash && { hash: hash.toString("hex") }), ...(isPruned && { isPruned }) };
}
