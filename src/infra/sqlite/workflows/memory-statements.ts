/**
 * Owns: the SQL of the memory of workflow runs. Entries before a place of the ledger, at a time, are found newest first by the
 * blocks of `000005_origins.sql`: a wide block without such an entry is one row to pass over, and so is a narrow one.
 */
import type { Database, Statement } from "better-sqlite3";
import type { EntryRow } from "../../ledger/memory-entries.ts";
import { readSchemaVersion } from "../database/migrate.ts";
import { BLOCKS_SINCE_VERSION } from "../database/run-reads.ts";

/** The columns that name a scope of the memory of a tenant. */
interface ScopeColumns {
  readonly tenant: string;
  readonly scope: string;
}

/** Entries written by events before `before`. */
interface EntryFilter extends ScopeColumns {
  readonly before: number;
  readonly now: number;
}

type ListFilter = EntryFilter & { readonly limit: number };

export interface MemoryReads {
  readonly entries: Statement<[ListFilter], EntryRow>;
  readonly taggedEntries: Statement<[ListFilter & { readonly tag: string }], EntryRow>;
  readonly newestEntry: Statement<[EntryFilter & { readonly id: string }], EntryRow>;
}

export interface MemoryWrites {
  readonly putEntry: Statement<[EntryValues]>;
  readonly putTag: Statement<[TagValues]>;
  readonly deleteEntries: Statement<[before: number, limit: number]>;
}

interface EntryValues extends ScopeColumns {
  readonly runKey: number;
  readonly sequence: number;
  readonly id: string;
  readonly content: string;
  readonly tags: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly expiresAtMs: number | null;
  readonly hash: Buffer;
}

interface TagValues extends ScopeColumns {
  readonly tag: string;
  readonly runKey: number;
  readonly sequence: number;
}

const ENTRY_COLUMNS = "memory_id, content, tags, created_at, expires_at";
const HAS_NOT_EXPIRED = "(expires_at_ms is null or expires_at_ms > @now)";

/**
 * Prepares the SQLite statements that read memory entries, by blocks where the schema has them; a ledger of an older
 * schema is read without, until a writer brings it to the newest.
 */
export function prepareMemoryReads(database: Database): MemoryReads {
  return readSchemaVersion(database) < BLOCKS_SINCE_VERSION
    ? prepareReadsWithoutBlocks(database)
    : prepareReadsByBlocks(database);
}

/** Blocks have a column of that name too. */
const ENTRY_HAS_NOT_EXPIRED = HAS_NOT_EXPIRED.replaceAll("expires_at_ms", "memory_entry.expires_at_ms");

/** An entry whose id was written again is there only as it was written last, and not at all when that has expired. */
const IS_NEWEST = "(replaced_by is null or replaced_by >= @before)";

function prepareReadsByBlocks(database: Database): MemoryReads {
  return {
    entries: database.prepare<[ListFilter], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from ${formatBlockJoin("''")}
       cross join memory_entry
       where memory_entry.tenant = @tenant and memory_entry.scope = @scope
         and memory_entry.event_key >= narrow.block << 8
         and memory_entry.event_key < (narrow.block + 1) << 8
         and memory_entry.event_key < @before
         and ${ENTRY_HAS_NOT_EXPIRED}
         and ${IS_NEWEST}
       order by wide.block desc, narrow.block desc, memory_entry.event_key desc
       limit @limit`,
    ),
    taggedEntries: database.prepare<[ListFilter & { tag: string }], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from ${formatBlockJoin("'#' || @tag")}
       cross join memory_tag
       join memory_entry using (event_key)
       where memory_tag.tenant = @tenant and memory_tag.scope = @scope and memory_tag.tag = @tag
         and memory_tag.event_key >= narrow.block << 8
         and memory_tag.event_key < (narrow.block + 1) << 8
         and memory_tag.event_key < @before
         and ${ENTRY_HAS_NOT_EXPIRED}
         and ${IS_NEWEST}
       order by wide.block desc, narrow.block desc, memory_tag.event_key desc
       limit @limit`,
    ),
    newestEntry: prepareNewestEntry(database, `${HAS_NOT_EXPIRED} and ${IS_NEWEST}`),
  };
}

/**
 * Returns the SQL of the blocks that may have an entry, newest first. `cross join` keeps the order, so nothing is
 * sorted; `min` makes one upper bound of two, because SQLite would go by one of them only.
 */
function formatBlockJoin(lane: string): string {
  const formatScopeClause = (name: string, bits: number): string =>
    `${name}.tenant = @tenant and ${name}.scope = @scope and ${name}.lane = ${lane} and ${name}.bits = ${bits}
     and ${name}.expires_at_ms > @now
     and (${name}.newest > 0 or ${name}.replaced_until >= @before)`;
  return `memory_block as wide
       cross join memory_block as narrow
         on ${formatScopeClause("wide", 16)}
         and wide.block <= @before >> 16
         and ${formatScopeClause("narrow", 8)}
         and narrow.block >= wide.block << 8
         and narrow.block <= min((wide.block << 8) + 255, @before >> 8)`;
}

function prepareNewestEntry(database: Database, isThere: string): MemoryReads["newestEntry"] {
  return database.prepare<[EntryFilter & { id: string }], EntryRow>(
    `select ${ENTRY_COLUMNS}
     from (
       select *
       from memory_entry
       where tenant = @tenant and scope = @scope and memory_id = @id and event_key < @before
       order by event_key desc
       limit 1
     )
     where ${isThere}`,
  );
}

const IS_NEWEST_WITHOUT_BLOCKS = `not exists (
  select 1
  from memory_entry as newer
  where newer.tenant = memory_entry.tenant
    and newer.scope = memory_entry.scope
    and newer.memory_id = memory_entry.memory_id
    and newer.event_key > memory_entry.event_key
    and newer.event_key < @before
)`;

function prepareReadsWithoutBlocks(database: Database): MemoryReads {
  return {
    entries: database.prepare<[ListFilter], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from memory_entry
       where tenant = @tenant and scope = @scope and event_key < @before
         and ${HAS_NOT_EXPIRED}
         and ${IS_NEWEST_WITHOUT_BLOCKS}
       order by event_key desc
       limit @limit`,
    ),
    taggedEntries: database.prepare<[ListFilter & { tag: string }], EntryRow>(
      `select ${ENTRY_COLUMNS}
       from memory_tag
       join memory_entry using (event_key)
       where memory_tag.tenant = @tenant and memory_tag.scope = @scope and tag = @tag
         and memory_tag.event_key < @before
         and ${HAS_NOT_EXPIRED}
         and ${IS_NEWEST_WITHOUT_BLOCKS}
       order by memory_tag.event_key desc
       limit @limit`,
    ),
    newestEntry: prepareNewestEntry(database, HAS_NOT_EXPIRED),
  };
}

const EVENT_KEY = "(select event_key from event where run_key = @runKey and sequence = @sequence)";

/** Prepares the SQLite statements that insert memory entries and their tags, and delete expired ones. */
export function prepareMemoryWrites(database: Database): MemoryWrites {
  return {
    putEntry: database.prepare<[EntryValues]>(
      `insert into memory_entry (
         event_key, tenant, scope, memory_id, content, tags, created_at, expires_at, expires_at_ms, hash
       )
       values (
         ${EVENT_KEY}, @tenant, @scope, @id, @content, @tags, @createdAt, @expiresAt, @expiresAtMs, @hash
       )`,
    ),
    putTag: database.prepare<[TagValues]>(
      `insert into memory_tag (tenant, scope, tag, event_key) values (@tenant, @scope, @tag, ${EVENT_KEY})
       on conflict do nothing`,
    ),
    deleteEntries: database.prepare<[number, number]>(
      `delete from memory_entry
       where event_key in (
         select event_key
         from memory_entry
         where expires_at_ms < ?
         order by expires_at_ms
         limit ?
       )`,
    ),
  };
}
