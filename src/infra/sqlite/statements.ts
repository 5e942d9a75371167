/** Owns: the SQL of the ledger, prepared once per connection. */
import type BetterSqlite3 from "better-sqlite3";
import type { EventRow } from "./event-row.ts";

export interface RunRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly length: number;
  readonly summary: string;
}

interface RunFilter {
  readonly before: number;
  readonly limit: number;
  readonly ended: number | null;
  readonly prefix: string;
  readonly prefixEnd: string;
}

export interface Head {
  readonly run_key: number;
  readonly length: number;
  readonly head_hash: Buffer;
}

export type Statements = ReturnType<typeof prepareStatements>;

export function prepareStatements(database: BetterSqlite3.Database) {
  return {
    head: database.prepare<[string], Head>("select run_key, length, head_hash from run where run_id = ?"),
    insertRun: database.prepare<[string, number, Buffer, number, string]>(
      "insert into run (run_id, length, head_hash, ended, summary) values (?, ?, ?, ?, ?)",
    ),
    updateRun: database.prepare<[number, Buffer, number, string, number]>(
      "update run set length = ?, head_hash = ?, ended = ?, summary = ? where run_key = ?",
    ),
    insertEvent: database.prepare(
      `insert into event (run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash)
       values (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    insertReference: database.prepare<[string, number, string | null]>(
      "insert into reference (name, run_key, step_id) values (?, ?, ?)",
    ),
    putContent: database.prepare<[string, string, number]>(
      `insert into content (sha256, text, stored_at_ms) values (?, ?, ?)
       on conflict (sha256) do update set stored_at_ms = excluded.stored_at_ms`,
    ),
    events: database.prepare<[string, number, number], EventRow>(
      `select sequence, type, timestamp_ms, node_id, causation_id, payload
       from event
       where run_key = (select run_key from run where run_id = ?) and sequence >= ?
       order by sequence
       limit ?`,
    ),
    runs: database.prepare<[RunFilter], RunRow>(
      `select run_key, run_id, length, summary
       from run
       where run_key < @before
         and (@ended is null or ended = @ended)
         and (@prefix = '' or (run_id >= @prefix and run_id < @prefixEnd))
       order by run_key desc
       limit @limit`,
    ),
    openRuns: database.prepare<[RunFilter], RunRow>(
      `select run_key, run_id, length, summary
       from run
       where ended = 0
         and run_key < @before
         and (@prefix = '' or (run_id >= @prefix and run_id < @prefixEnd))
       order by run_key desc
       limit @limit`,
    ),
    find: database.prepare<[string], { run_id: string; step_id: string | null }>(
      `select run.run_id, reference.step_id
       from reference
       join run using (run_key)
       where reference.name = ?
       order by reference.reference_key desc
       limit 1`,
    ),
    content: database.prepare<[string], string>("select text from content where sha256 = ?").pluck(),
    deleteContent: database.prepare<[number]>("delete from content where stored_at_ms < ?"),
  };
}
