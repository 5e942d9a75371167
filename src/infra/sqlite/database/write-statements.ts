/** Owns: the SQL of the ledger, prepared once per connection. */
import type { Database, Statement } from "better-sqlite3";
import { PRUNED_KIND } from "../../ledger/log-conflict.ts";
import { prepareClaimWrites, type ClaimWrites } from "./claim-statements.ts";
import { prepareLabelWrites, type LabelWrites } from "./run-labels.ts";

/** The end of a run's log. */
export interface LogHead {
  readonly run_key: number;
  readonly length: number;
  readonly head_hash: Buffer;
  /** `PRUNED_KIND` for a run that was removed. */
  readonly kind: string;
  /** JSON, of a fork. */
  readonly origin: string | null;
  /** Empty: nobody drives it. */
  readonly owner_id: string;
  readonly owner_token: number;
}

type EventValues = [
  runKey: number,
  sequence: number,
  type: string,
  timestampMs: number,
  nodeId: string | null,
  causationId: string | null,
  payload: string,
  hash: Buffer,
];

/** Only a connection for writing has these: their SQL names what older schemas lack. */
export interface WriteStatements {
  /** Takes the id twice: also of a run that was removed. */
  readonly head: Statement<[runId: string, again: string], LogHead>;
  readonly insertRun: Statement<
    [
      runId: string,
      kind: string,
      length: number,
      headHash: Buffer,
      ended: number,
      summary: string,
      origin: string | null,
      ownerId: string,
      ownerToken: number,
    ]
  >;
  readonly growRun: Statement<[length: number, headHash: Buffer, summary: string, runKey: number]>;
  readonly endRun: Statement<[length: number, headHash: Buffer, summary: string, runKey: number]>;
  /** Tells the owner of the run that somebody else appended. */
  readonly markArrived: Statement<[runKey: number]>;
  /** One event each: a statement for many of them costs as much. */
  readonly insertEvent: Statement<EventValues>;
  readonly insertReference: Statement<[name: string, runKey: number, stepId: string | null]>;
  readonly labels: LabelWrites;
  readonly keepContent: Statement<[runKey: number, sha256: string]>;
  /** Beside `keepContent`, where the text is there already. */
  readonly markKept: Statement<[string]>;
  /** After `keepContent`, which it looks up by the second hash. */
  readonly putContent: Statement<[sha256: string, storedAtMs: number, text: string, again: string]>;
  readonly hasExpired: Statement<[before: number], number>;
  readonly deleteExpired: Statement<[before: number, limit: number]>;
  /** Coordinations that keep texts, in the order of their keys. */
  readonly keepers: Statement<[after: number, limit: number], { run_key: number; ended: number }>;
  /** Takes the mark from the texts whose uses `deleteUses` deletes, where no other coordination keeps them. */
  readonly unmarkKept: Statement<[ContentUses]>;
  readonly deleteUses: Statement<[ContentUses]>;
  readonly claims: ClaimWrites;
}

/** The first uses of one coordination. */
interface ContentUses {
  readonly runKey: number;
  readonly limit: number;
}

/** Works on every schema that this release can read. */
export interface ReadStatements {
  readonly find: Statement<[name: string], { run_id: string; step_id: string | null }>;
  /** Newest reference first; a run as often as it holds the name. */
  readonly holders: Statement<[name: string], string>;
  readonly references: Statement<[runId: string], { name: string; step_id: string | null }>;
  readonly content: Statement<[sha256: string], string>;
  /** Takes `CONTENTS_PER_SELECT` hashes, null for none. */
  readonly contents: Statement<[sha256s: (string | null)[]], { sha256: string; text: string }>;
}

/** Numbers the newest run, also where that was removed, as all may be in a copy of a ledger on a server. */
export const NEWEST_RUN = `
  select max(
    coalesce((select max(run_key) from run), 0),
    coalesce((select max(run_key) from pruned_run), 0)
  )`;

export const CONTENTS_PER_SELECT = 64;

/** Prepares the SQLite statements that append to runs, with all that an append writes besides events. */
export function prepareLedgerWrites(database: Database): WriteStatements {
  return {
    head: database.prepare<[string, string], LogHead>(
      `select run_key, length, head_hash, kind, origin, owner_id, owner_token
       from run
       where run_id = ?
       union all
       select run_key, length, head_hash, '${PRUNED_KIND}', null, '', 0
       from pruned_run
       where run_id = ?`,
    ),
    insertRun: database.prepare<
      [string, string, number, Buffer, number, string, string | null, string, number]
    >(
      `insert into run (run_key, run_id, kind, length, head_hash, ended, summary, origin, owner_id, owner_token)
       values ((${NEWEST_RUN}) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    // Leaves `ended` alone: naming it would rewrite the index of open runs.
    growRun: database.prepare<[number, Buffer, string, number]>(
      "update run set length = ?, head_hash = ?, summary = ? where run_key = ?",
    ),
    endRun: database.prepare<[number, Buffer, string, number]>(
      "update run set length = ?, head_hash = ?, ended = 1, summary = ? where run_key = ?",
    ),
    markArrived: database.prepare<[number]>("update run set arrived = 1 where run_key = ? and arrived = 0"),
    insertEvent: database.prepare<EventValues>(
      `insert into event (run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash)
       values (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    insertReference: database.prepare<[string, number, string | null]>(
      "insert into reference (name, run_key, step_id) values (?, ?, ?)",
    ),
    labels: prepareLabelWrites(database),
    ...prepareContentWrites(database),
    claims: prepareClaimWrites(database),
  };
}

const USES = `(
  select sha256
  from content_use
  where run_key = @runKey
  order by sha256
  limit @limit
)`;

type ContentWrites = Pick<
  WriteStatements,
  | "keepContent"
  | "markKept"
  | "putContent"
  | "hasExpired"
  | "deleteExpired"
  | "keepers"
  | "unmarkKept"
  | "deleteUses"
>;

function prepareContentWrites(database: Database): ContentWrites {
  return {
    keepContent: database.prepare<[number, string]>(
      "insert or ignore into content_use (run_key, sha256) values (?, ?)",
    ),
    markKept: database.prepare<[string]>("update content set kept = 1 where sha256 = ? and kept = 0"),
    putContent: database.prepare<[string, number, string, string]>(
      `insert or replace into content (sha256, stored_at_ms, text, kept)
       values (?, ?, ?, exists (select 1 from content_use where sha256 = ?))`,
    ),
    hasExpired: database
      .prepare<[number], number>("select 1 from content where kept = 0 and stored_at_ms < ? limit 1")
      .pluck(),
    deleteExpired: database.prepare<[number, number]>(
      `delete from content
       where content_key in (
         select content_key
         from content
         where kept = 0 and stored_at_ms < ?
         order by stored_at_ms
         limit ?
       )`,
    ),
    // From one coordination to the next by the primary key: `distinct` would pass over every text that each keeps.
    keepers: database.prepare<[number, number], { run_key: number; ended: number }>(
      `with recursive keeper (run_key) as (
         select min(run_key) from content_use where run_key > ?
         union all
         select (select min(run_key) from content_use where run_key > keeper.run_key)
         from keeper
         where keeper.run_key is not null
         limit ?
       )
       select run_key, run.ended
       from keeper
       join run using (run_key)
       order by run_key`,
    ),
    unmarkKept: database.prepare<[ContentUses]>(
      `update content
       set kept = 0
       where sha256 in ${USES}
         and not exists (
           select 1 from content_use where sha256 = content.sha256 and run_key <> @runKey
         )`,
    ),
    deleteUses: database.prepare<[ContentUses]>(
      `delete from content_use where run_key = @runKey and sha256 in ${USES}`,
    ),
  };
}

/**
 * Prepares the SQLite statements that find runs and steps by a reference, list the references of a run, and read
 * stored texts.
 */
export function prepareLedgerReads(database: Database): ReadStatements {
  return {
    find: database.prepare<[string], { run_id: string; step_id: string | null }>(
      `select run.run_id, reference.step_id
       from reference
       join run using (run_key)
       where reference.name = ?
       order by reference.reference_key desc
       limit 1`,
    ),
    holders: database
      .prepare<[string], string>(
        `select run.run_id
         from reference
         join run using (run_key)
         where reference.name = ?
         order by reference.reference_key desc`,
      )
      .pluck(),
    references: database.prepare<[string], { name: string; step_id: string | null }>(
      `select name, step_id
       from reference
       where run_key = (select run_key from run where run_id = ?)
       order by reference_key`,
    ),
    content: database.prepare<[string], string>("select text from content where sha256 = ?").pluck(),
    contents: database.prepare<[(string | null)[]], { sha256: string; text: string }>(
      `select sha256, text
       from content
       where sha256 in (${Array.from({ length: CONTENTS_PER_SELECT }, () => "?").join(", ")})
       order by sha256`,
    ),
  };
}
