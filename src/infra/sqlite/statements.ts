/** Owns: the SQL of the ledger, prepared once per connection. */
import type { Database, Statement } from "better-sqlite3";
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

export type EventValue = number | string | Buffer | null;

/** Values that an event brings to its insert. */
export const EVENT_COLUMNS = 8;
const EVENTS_PER_INSERT = 16;

function prepareInsert(database: Database, rows: number): Statement<[EventValue[]]> {
  return database.prepare<[EventValue[]]>(
    `insert into event (run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash)
     values ${Array.from({ length: rows }, () => "(?, ?, ?, ?, ?, ?, ?, ?)").join(", ")}`,
  );
}

interface Writes {
  readonly head: Statement<[runId: string], Head>;
  readonly insertRun: Statement<
    [runId: string, length: number, headHash: Buffer, ended: number, summary: string]
  >;
  readonly growRun: Statement<[length: number, headHash: Buffer, summary: string, runKey: number]>;
  readonly endRun: Statement<[length: number, headHash: Buffer, summary: string, runKey: number]>;
  /** The statement for n events is at n - 1. */
  readonly insertEvents: readonly Statement<[EventValue[]]>[];
  readonly insertReference: Statement<[name: string, runKey: number, stepId: string | null]>;
  readonly putContent: Statement<[sha256: string, storedAtMs: number, text: string]>;
  readonly deleteContent: Statement<[contentKey: number]>;
}

interface Reads {
  readonly events: Statement<[runId: string, from: number, limit: number], EventRow>;
  readonly runs: Statement<[RunFilter], RunRow>;
  readonly openRuns: Statement<[RunFilter], RunRow>;
  readonly find: Statement<[name: string], { run_id: string; step_id: string | null }>;
  readonly references: Statement<[runId: string], { name: string; step_id: string | null }>;
  readonly oldestContent: Statement<[limit: number], { content_key: number; stored_at_ms: number }>;
  readonly content: Statement<[sha256: string], string>;
}

export type Statements = Writes & Reads;

export function prepareStatements(database: Database): Statements {
  return { ...prepareWrites(database), ...prepareReads(database) };
}

function prepareWrites(database: Database): Writes {
  return {
    head: database.prepare<[string], Head>("select run_key, length, head_hash from run where run_id = ?"),
    insertRun: database.prepare<[string, number, Buffer, number, string]>(
      "insert into run (run_id, length, head_hash, ended, summary) values (?, ?, ?, ?, ?)",
    ),
    // Leaves `ended` alone: naming it would rewrite the index of open runs.
    growRun: database.prepare<[number, Buffer, string, number]>(
      "update run set length = ?, head_hash = ?, summary = ? where run_key = ?",
    ),
    endRun: database.prepare<[number, Buffer, string, number]>(
      "update run set length = ?, head_hash = ?, ended = 1, summary = ? where run_key = ?",
    ),
    insertEvents: Array.from({ length: EVENTS_PER_INSERT }, (_, index) => prepareInsert(database, index + 1)),
    insertReference: database.prepare<[string, number, string | null]>(
      "insert into reference (name, run_key, step_id) values (?, ?, ?)",
    ),
    putContent: database.prepare<[string, number, string]>(
      "insert or replace into content (sha256, stored_at_ms, text) values (?, ?, ?)",
    ),
    deleteContent: database.prepare<[number]>("delete from content where content_key <= ?"),
  };
}

function prepareReads(database: Database): Reads {
  return {
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
    // `+?` hides the name from the query planner, which would otherwise prepare the statement again for every new one:
    // six times the cost of the look-up.
    find: database.prepare<[string], { run_id: string; step_id: string | null }>(
      `select run.run_id, reference.step_id
       from reference
       join run using (run_key)
       where reference.name = +?
       order by reference.reference_key desc
       limit 1`,
    ),
    references: database.prepare<[string], { name: string; step_id: string | null }>(
      `select name, step_id
       from reference
       where run_key = (select run_key from run where run_id = ?)
       order by reference_key`,
    ),
    oldestContent: database.prepare<[number], { content_key: number; stored_at_ms: number }>(
      `select content_key, stored_at_ms
       from content
       order by content_key
       limit ?`,
    ),
    content: database.prepare<[string], string>("select text from content where sha256 = ?").pluck(),
  };
}
