/** Owns: memory entries put into a ledger by SQL, ten million in minutes. The rows are those that the store writes, but for hashes. */
import Database from "better-sqlite3";
import { COUNT_MEMORY } from "../../src/infra/sqlite/copy/sqlite-copy-target.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";

export const TENANT = "acme";
/** How many of the oldest are always there. */
export const LISTED = 100;

/**
 * Entry n is told by the event at n of the only run. One of four that follow each other is kept, one has expired, one is written
 * again and again, and one is another tenant's.
 */
export function fillMemory(path: string, range: { readonly from: number; readonly to: number }): void {
  const database = new Database(path);
  database.pragma("journal_mode = off");
  database.pragma("synchronous = off");
  database.pragma("foreign_keys = off");
  const triggers = database
    .prepare<[], { name: string; sql: string }>("select name, sql from sqlite_schema where type = 'trigger'")
    .all();
  for (const { name } of triggers) database.exec(`drop trigger ${name}`);
  for (const sql of STEPS)
    database.prepare(sql).run({ ...range, tenant: TENANT, listed: LISTED, now: TEST_EPOCH_MS });
  database.exec(COUNT);
  for (const { sql } of triggers) database.exec(sql);
  database.pragma("journal_mode = wal");
  database.close();
}

/** Entries are numbered from 1; `n >> 2` is their number within a scope. */
const NUMBERS = `with recursive number (n) as (
  select cast(@from as integer) + 1
  union all
  select n + 1 from number where n < @to
)`;

const STEPS = [
  `insert into event (run_key, sequence, type, timestamp_ms, payload, hash)
   ${NUMBERS}
   select 1, n, 'memory.written', @now, '{"memoryRef":"kept","memoryId":"m-' || n || '"}', zeroblob(32) from number`,
  "update run set length = @to + 1",
  `insert into memory_entry (
     event_key, tenant, scope, memory_id, content, tags, created_at, expires_at, expires_at_ms, hash, replaced_by
   )
   ${NUMBERS}
   select
     n + 1,
     iif(n % 4 = 3, 'other', @tenant),
     iif(n % 4 = 1, 'expired', iif(n % 4 = 2, 'replaced', 'kept')),
     iif(n % 4 = 2 and n >> 2 >= @listed, 'again', 'm-' || n),
     'what was found out about number ' || printf('%08d', n),
     iif(n % 4 = 0 and n % 16 = 0, '["rare"]', '[]'),
     '2026-01-02T03:04:05.678Z',
     iif(n % 4 = 1 and n >> 2 >= @listed, '2026-01-02T03:04:05.678Z', null),
     iif(n % 4 = 1 and n >> 2 >= @listed, @now, null),
     zeroblob(32),
     iif(n % 4 = 2 and n >> 2 >= @listed and n + 4 <= @to, n + 5, null)
   from number`,
  `insert into memory_tag (tenant, scope, tag, event_key)
   select tenant, scope, 'rare', event_key
   from memory_entry
   where tags <> '[]' and event_key > @from + 1`,
];

/** As the migration counts what lay there before it. */
const COUNT = `
  update memory_entry
  set replaced_by = event_key + 4
  where replaced_by is null
    and memory_id = 'again'
    and event_key + 4 <= (select max(event_key) from memory_entry);
  delete from memory_block;
  ${COUNT_MEMORY}`;
