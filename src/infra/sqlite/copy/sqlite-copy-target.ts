/**
 * Owns: writing a ledger file as the target of a copy. The triggers of a table are away while its rows are written, within one
 * transaction: others never see the table without them.
 */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { BESIDE_TABLES, COPIED_TABLES, OPEN_END, type CopiedTable } from "../../ledger/copy/copied-tables.ts";
import type { CopiedCounts, CopiedRow, CopyMark, CopyTarget } from "../../ledger/copy/copy-sides.ts";
import { COPY_MARK } from "../../ledger/half-copy.ts";
import { isBlank, openDatabase } from "../database/open-database.ts";
import { withLedgerErrors } from "../database/sqlite-errors.ts";
import { createRowReader, STORED_OPEN_END } from "./sqlite-row-reader.ts";
import type { FilePlace } from "./sqlite-copy-source.ts";

/** @throws CoordinationError as `openDatabase` */
export async function writeToSqlite<T>(
  { path, busyTimeoutMs }: FilePlace,
  copy: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  await refuseFilled({ path, busyTimeoutMs });
  const database = await openDatabase({ path, busyTimeoutMs, mode: "write", isCopyTarget: true });
  try {
    // Rows of a damaged ledger are copied as they are.
    database.pragma("foreign_keys = off");
    return await copy(createTarget(path, database));
  } finally {
    database.close();
  }
}

/** Opening a ledger for writing gives it the newest schema: one that will be refused has to be only read before. */
async function refuseFilled({ path, busyTimeoutMs }: FilePlace): Promise<void> {
  if (withLedgerErrors(path, () => isBlank(path))) return;
  const database = await openDatabase({ path, busyTimeoutMs, mode: "read", isCopyTarget: true });
  try {
    withLedgerErrors(path, () => {
      if (!hasMark(database)) refuseRows(path, database);
    });
  } finally {
    database.close();
  }
}

function createTarget(path: string, database: BetterSqlite3.Database): CopyTarget {
  const run = <T>(work: () => T): Promise<T> =>
    new Promise((resolve) => {
      resolve(withLedgerErrors(path, work));
    });
  const change = (work: () => void): Promise<void> =>
    run(() => {
      database.transaction(work).immediate();
    });
  return {
    place: path,
    readRows: createRowReader(database, path),
    readMark: () => run(() => readMark(database)),
    begin: (mark) =>
      change(() => {
        refuseRows(path, database);
        createMark(database);
        replaceMark(database, mark);
      }),
    beginAgain: (mark) =>
      change(() => {
        replaceMark(database, mark);
        deleteRows(database);
      }),
    lastKey: (table) => run(() => readLastKey(database, table)),
    writeRows: (table, rows) =>
      change(() => {
        checkMark(path, database);
        withoutTriggers(database, [table.name], () => insertRows(database, table, rows));
      }),
    finish: async (counts) => {
      await change(() => {
        checkMark(path, database);
        finishCopy(database, counts);
      });
      await run(() => database.pragma("wal_checkpoint(truncate)"));
    },
  };
}

interface MarkRow {
  readonly source: string;
  readonly first_hash: Buffer | null;
  readonly events: number;
}

function readMark(database: BetterSqlite3.Database): CopyMark | undefined {
  if (!hasMark(database)) return undefined;
  const row = database
    .prepare<[], MarkRow>(`select source, first_hash, events from ${COPY_MARK} order by only_row`)
    .get();
  return row && { source: row.source, firstHash: row.first_hash, events: row.events };
}

function hasMark(database: BetterSqlite3.Database): boolean {
  return hasTable(database, COPY_MARK);
}

function hasTable(database: BetterSqlite3.Database, name: string): boolean {
  const found = database.prepare("select 1 from sqlite_schema where type = 'table' and name = ?");
  return found.get(name) !== undefined;
}

/** Another process may have completed the copy. */
function checkMark(path: string, database: BetterSqlite3.Database): void {
  if (hasMark(database)) return;
  throw new CoordinationError(
    "LEDGER_CONFLICT",
    `${path} was completed by another process that copied to it`,
  );
}

/** An older schema lacks some of the tables. */
function refuseRows(path: string, database: BetterSqlite3.Database): void {
  const filled = COPIED_TABLES.find(
    ({ name }) => hasTable(database, name) && database.prepare(`select 1 from ${name} limit 1`).get(),
  );
  if (!filled && !hasMark(database)) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${path} is a ledger that is not empty, and a copy overwrites nothing; name an empty place`,
  );
}

/** A process that had the empty ledger open before is kept from appending to it. */
function createMark(database: BetterSqlite3.Database): void {
  const refusal = "select raise(abort, 'the ledger is a copy that has not been completed')";
  database.exec(
    `create table ${COPY_MARK} (
       only_row integer primary key check (only_row = 1),
       source text not null,
       first_hash blob,
       events integer not null
     ) strict;
     create trigger copy_not_appended before insert on run begin ${refusal}; end;
     create trigger copy_not_changed before update on run begin ${refusal}; end;`,
  );
}

function replaceMark(database: BetterSqlite3.Database, { source, firstHash, events }: CopyMark): void {
  database
    .prepare(`insert or replace into ${COPY_MARK} (only_row, source, first_hash, events) values (1, ?, ?, ?)`)
    .run(source, firstHash, events);
}

function deleteRows(database: BetterSqlite3.Database): void {
  const names = BESIDE_TABLES.map(({ name }) => name);
  withoutTriggers(database, names, () => {
    for (const name of names.toReversed()) database.exec(`delete from ${name}`);
  });
}

function readLastKey(database: BetterSqlite3.Database, { name, key }: CopiedTable): CopiedRow | undefined {
  const order = key.map((column) => `${column} desc`).join(", ");
  return database
    .prepare<[], CopiedRow>(`select ${key.join(", ")} from ${name} order by ${order} limit 1`)
    .raw()
    .get();
}

function insertRows(
  database: BetterSqlite3.Database,
  { name, columns }: CopiedTable,
  rows: readonly CopiedRow[],
): void {
  const names = Object.keys(columns);
  const insert = database.prepare<[Record<string, unknown>]>(
    `insert into ${name} (${names.join(", ")}) values (${names.map(bindColumn).join(", ")})`,
  );
  for (const row of rows) insert.run(Object.fromEntries(names.map((column, at) => [column, row[at]])));
}

function bindColumn(name: string): string {
  if (name !== "until_position") return `@${name}`;
  return `iif(@${name} = ${OPEN_END}, ${STORED_OPEN_END}, @${name})`;
}

interface Trigger {
  readonly name: string;
  readonly sql: string;
}

/** Runs within a transaction. SQLite keeps the text of a trigger, so that it comes back as it was. */
function withoutTriggers(
  database: BetterSqlite3.Database,
  tables: readonly string[],
  write: () => void,
): void {
  const triggers = database
    .prepare<[string], Trigger>(
      `select name, sql
       from sqlite_schema
       where type = 'trigger' and tbl_name in (select value from json_each(?))
       order by name`,
    )
    .all(JSON.stringify(tables));
  for (const { name } of triggers) database.exec(`drop trigger ${name}`);
  write();
  for (const { sql } of triggers) database.exec(sql);
}

function finishCopy(database: BetterSqlite3.Database, { events, claimToken }: CopiedCounts): void {
  database.exec(COUNT_MEMORY);
  withoutTriggers(database, ["claim_token"], () => {
    database.prepare("update claim_token set newest = ?").run(claimToken);
  });
  database.exec("delete from sqlite_sequence where name = 'event'");
  if (events > 0)
    database
      .prepare("insert into sqlite_sequence (name, seq) values ('event', cast(? as integer))")
      .run(events);
  database.exec(
    `drop trigger copy_not_appended;
     drop trigger copy_not_changed;
     drop table ${COPY_MARK};`,
  );
}

/** Counts the entries of memory by blocks anew, as its triggers do with each change: for tables that were filled without them. */
export const COUNT_MEMORY = `
  insert into memory_block (tenant, scope, lane, bits, block, entries, newest, replaced_until, expires_at_ms)
  select
    tenant,
    scope,
    lane,
    bits,
    event_key >> bits,
    count(*),
    sum(replaced_by is null),
    max(coalesce(replaced_by, 0)),
    max(coalesce(expires_at_ms, 9007199254740991))
  from (
    select tenant, scope, '' as lane, event_key, replaced_by, expires_at_ms
    from memory_entry
    union all
    select memory_tag.tenant, memory_tag.scope, '#' || tag, event_key, replaced_by, expires_at_ms
    from memory_tag
    join memory_entry using (event_key)
  )
  join (select 8 as bits union all select 16)
  group by 1, 2, 3, 4, 5`;
