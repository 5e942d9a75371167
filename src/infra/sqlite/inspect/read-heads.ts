/**
 * Owns: reading which events were the newest of their runs when the ledger had a number of events. Events are numbered as they
 * are appended, so this is the same later, and while others append.
 */
import type { Database } from "better-sqlite3";
import { readSchemaVersion } from "../database/migrate.ts";
import { PRUNED_SINCE_VERSION } from "../database/pruned-rows.ts";
import type { HashAt, HashPlace, HeadPlace, PlacedHead } from "../../ledger/opened-ledger.ts";

interface HeadRow {
  readonly ordinal: number;
  readonly runId: string;
  readonly sequence: number;
  readonly hash: Buffer;
}

/**
 * Returns the highest number that an event of the ledger ever had, as far as the stored events and the traces of
 * pruned runs tell; 0 for a ledger without events.
 */
export function readNewestEventNumber(database: Database): number {
  const rows =
    readSchemaVersion(database) < PRUNED_SINCE_VERSION
      ? "event"
      : "(select event_key from event union all select newest_event from pruned_run)";
  return database.prepare<[], number | null>(`select max(event_key) from ${rows}`).pluck().get() ?? 0;
}

/**
 * Returns for a page of runs, oldest first, the last event and its hash that each had when the ledger had `events`
 * events. A pruned run has its very last event instead, and `pruned` says whether it grew after that.
 */
export function readPastHeads(database: Database, place: HeadPlace): PlacedHead[] {
  const { limit } = place;
  const heads = [...readPrunedPastHeads(database, place), ...readStoredPastHeads(database, place)];
  return heads.toSorted((one, other) => one.ordinal - other.ordinal).slice(0, limit);
}

/** Returns the traces of removed runs that had begun when the ledger had so many events. */
function readPrunedPastHeads(database: Database, { events, after, limit }: HeadPlace): PlacedHead[] {
  if (readSchemaVersion(database) < PRUNED_SINCE_VERSION) return [];
  const rows = database
    .prepare<[number, number, number, number], HeadRow & { readonly hasGrown: number }>(
      `select
         run_key as ordinal,
         run_id as runId,
         length - 1 as sequence,
         head_hash as hash,
         newest_event > ? as hasGrown
       from pruned_run
       where first_event <= ? and run_key > ?
       order by run_key
       limit ?`,
    )
    .all(events, events, after, limit);
  return rows.map((row) => ({ ...createPlacedHead(row), pruned: row.hasGrown === 1 ? "grown" : "as-then" }));
}

function readStoredPastHeads(database: Database, { events, after, limit }: HeadPlace): PlacedHead[] {
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
  return rows.map(createPlacedHead);
}

function createPlacedHead({ ordinal, runId, sequence, hash }: HeadRow): PlacedHead {
  return { ordinal, runId, events: sequence + 1, hash: hash.toString("hex") };
}

/**
 * Returns the hash of one event of a run, and how long the run is; without hash where the event is not known,
 * `undefined` for a run that the ledger does not know, not even as pruned.
 */
export function readEventHash(database: Database, { runId, sequence }: HashPlace): HashAt | undefined {
  const run = database
    .prepare<[string], { run_key: number; length: number }>(
      "select run_key, length from run where run_id = ?",
    )
    .get(runId);
  if (!run) return readPrunedEventHash(database, { runId, sequence });
  const hash = database
    .prepare<[number, number], Buffer>("select hash from event where run_key = ? and sequence = ?")
    .pluck()
    .get(run.run_key, sequence);
  return { length: run.length, ...(hash && { hash: hash.toString("hex") }) };
}

/** Returns the same for a removed run, of which only the newest event has left its hash. */
function readPrunedEventHash(database: Database, { runId, sequence }: HashPlace): HashAt | undefined {
  if (readSchemaVersion(database) < PRUNED_SINCE_VERSION) return undefined;
  const run = database
    .prepare<[string], { length: number; head_hash: Buffer }>(
      "select length, head_hash from pruned_run where run_id = ?",
    )
    .get(runId);
  if (!run) return undefined;
  const { length, head_hash: hash } = run;
  const isNewest = sequence === length - 1;
  return { length, isPruned: true, ...(isNewest && { hash: hash.toString("hex") }) };
}
