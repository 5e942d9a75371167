/**
 * Owns: reading which events were the newest of their runs when the ledger had a number of events. Events are numbered as they
 * are appended, so this is the same later, and while others append.
 */
import type { Database } from "better-sqlite3";
import type { HashAt, HashPlace, HeadPlace, PlacedHead } from "../../ledger/opened-ledger.ts";

interface HeadRow {
  readonly ordinal: number;
  readonly runId: string;
  readonly sequence: number;
  readonly hash: Buffer;
}

/** Returns the number of the newest event; 0 for a ledger without events. */
export function readNewestNumber(database: Database): number {
  return database.prepare<[], number | null>("select max(event_key) from event").pluck().get() ?? 0;
}

/** Returns the heads of a page of runs of either kind, oldest run first. */
export function readHeads(database: Database, { events, after, limit }: HeadPlace): PlacedHead[] {
  // The plus keeps SQLite from passing over all events by number: the newest of a run is near the end of the run's index.
  const rows = database
    .prepare<[number, number, number], HeadRow>(
      `select run.run_key as ordinal, run.run_id as runId, event.sequence, event.hash
       from run
       join event on event.event_key = (
         select event_key
         from event as newest
         where newest.run_key = run.run_key and +newest.event_key <= ?
         order by newest.sequence desc
         limit 1
       )
       where run.run_key > ?
       order by run.run_key
       limit ?`,
    )
    .all(events, after, limit);
  return rows.map(({ ordinal, runId, sequence, hash }) => ({
    ordinal,
    runId,
    events: sequence + 1,
    hash: hash.toString("hex"),
  }));
}

/** Returns how long a run is and the hash of its event at this sequence; `undefined` for a run that is not there. */
export function readHashAt(database: Database, { runId, sequence }: HashPlace): HashAt | undefined {
  const run = database
    .prepare<[string], { run_key: number; length: number }>(
      "select run_key, length from run where run_id = ?",
    )
    .get(runId);
  if (!run) return undefined;
  const hash = database
    .prepare<[number, number], Buffer>("select hash from event where run_key = ? and sequence = ?")
    .pluck()
    .get(run.run_key, sequence);
  return { length: run.length, ...(hash && { hash: hash.toString("hex") }) };
}
