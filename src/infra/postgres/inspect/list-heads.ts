/**
 * Owns: reading which events were the newest of their runs when the ledger had a number of events. Events are numbered as they
 * are appended, so this is the same later, and while others append.
 */
import type { HashAt, HashPlace, HeadPlace, PlacedHead } from "../../ledger/opened-ledger.ts";
import type { SendQuery } from "../database/connect.ts";

interface HeadRow {
  readonly ordinal: number;
  readonly runId: string;
  readonly sequence: number;
  readonly hash: Buffer;
}

/** Returns the heads of a page of runs of either kind, oldest run first. */
export async function readHeads(
  query: SendQuery,
  { events, after, limit }: HeadPlace,
): Promise<PlacedHead[]> {
  const rows = await query<HeadRow>(
    `select run.run_key as ordinal, run.run_id as "runId", newest.sequence, newest.hash
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
     limit @limit`,
    { events, after, limit },
  );
  return rows.map(({ ordinal, runId, sequence, hash }) => ({
    ordinal,
    runId,
    events: sequence + 1,
    hash: hash.toString("hex"),
  }));
}

/** Returns how long a run is and the hash of its event at this sequence; `undefined` for a run that is not there. */
export async function readHashAt(
  query: SendQuery,
  { runId, sequence }: HashPlace,
): Promise<HashAt | undefined> {
  const [row] = await query<{ length: number; hash: Buffer | null }>(
    `select run.length, event.hash
     from run
     left join event on event.run_key = run.run_key and event.sequence = @sequence
     where run.run_id = @runId`,
    { runId, sequence },
  );
  if (!row) return undefined;
  return { length: row.length, ...(row.hash && { hash: row.hash.toString("hex") }) };
}
