/**
 * Owns: writing a ledger file as the target of a copy. The triggers of a table are away while its rows are written, within one
 * transaction: others never see the table without them.
 */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { BESIDE_TABLES, COPIED_TABLES, OPEN_END, type CopiedTable } from "../../ledger/copy/copied-tables.ts";
import type { CopiedCounts, CopiedRow, CopyTarget } from "../../ledger/copy/copy-sides.ts";
import { createCompletedCopyError } from "../../ledger/half-copy.ts";
import {
  createCopyMark,
  dropCopyMark,
  hasCopyMark,
  hasTable,
  readCopyMark,
  replaceCopyMark,
} from "../database/copy-mark-rows.ts";
import { isAbsentOrEmpty, openDatabase } from "../database/open-database.ts";
import { runWithLedgerErrors } from "../database/sqlite-errors.ts";
import { createRowReader, STORED_OPEN_END } from "./sqlite-row-reader.ts";
import type { FilePlace } from "./sqlite-copy-source.ts";

/**
 * Opens or creates a ledger file, calls `copy` with it as the target, closes it afterwards, and returns what `copy`
 * returned. @throws CoordinationError as `openDatabase`, and `INPUT_INVALID` for a file that is in use as a ledger
 */
export async function withSqliteCopyTarget<T>(
  { path, busyTimeoutMs }: FilePlace,
  copy: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  await assertTargetUnused({ path, busyTimeoutMs });
  const database = await openDatabase({ path, busyTimeoutMs, mode: "write", isCopyTarget: true });
  try {
    // Rows of a damaged ledger are copied as they are.
    database.pragma("foreign_keys = off");
    return await copy(createSqliteCopyTarget(path, database));
  } finally {
    database.close();
  }
}

/**
 * Throws for a target that has rows and is no half copy. It is only read for that: opening a ledger for writing gives
 * it the newest schema.
 */
async function assertTargetUnused({ path, busyTimeoutMs }: FilePlace): Promise<void> {
  if (runWithLedgerErrors(path, () => isAbsentOrEmpty(path))) return;
  const database = await openDatabase({ path, busyTimeoutMs, mode: "read", isCopyTarget: true });
  try {
    runWithLedgerErrors(path, () => {
      if (!hasCopyMark(database)) assertTablesEmpty(path, database);
    });
  } finally {
    database.close();
  }
}

function createSqliteCopyTarget(path: string, database: BetterSqlite3.Database): CopyTarget {
  const run = <T>(work: () => T): Promise<T> =>
    new Promise((resolve) => {
      resolve(runWithLedgerErrors(path, work));
    });
  const change = (work: () => void): Promise<void> =>
    run(() => {
      database.transaction(work).immediate();
    });
  return {
    place: path,
    readRows: createRowReader(database, path),
    readMark: () => run(() => readCopyMark(database)),
    begin: (mark) =>
      change(() => {
        assertTablesEmpty(path, database);
        createCopyMark(database);
        replaceCopyMark(database, mark);
      }),
    beginAgain: (mark) =>
      change(() => {
        replaceCopyMark(database, mark);
        deleteAllButEvents(database);
      }),
    lastKey: (table) => run(() => readLastKey(database, table)),
    writeRows: (table, rows) =>
      change(() => {
        assertHalfCopy(path, database);
        writeWithoutTriggers(database, [table.name], () => insertRows(database, table, rows));
      }),
    finish: async (counts) => {
      await change(() => {
        assertHalfCopy(path, database);
        finishCopy(database, counts);
      });
      await run(() => database.pragma("wal_checkpoint(truncate)"));
    },
  };
}

/** Throws where the ledger is no half copy any more: another process may have completed the copy. */
function assertHalfCopy(path: string, database: BetterSqlite3.Database): void {
  if (!hasCopyMark(database)) throw createCompletedCopyError(path);
}

/** Throws where a table has rows, or the ledger is a half copy. An older schema lacks some of the tables. */
function assertTablesEmpty(path: string, database: BetterSqlite3.Database): void {
  const filled = COPIED_TABLES.find(
    ({ name }) => hasTable(database, name) && database.prepare(`select 1 from ${name} limit 1`).get(),
  );
  if (!filled && !hasCopyMark(database)) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${path} is a ledger that is not empty, and a copy overwrites nothing; name an empty place`,
  );
}

function deleteAllButEvents(database: BetterSqlite3.Database): void {
  const names = BESIDE_TABLES.map(({ name }) => name);
  writeWithoutTriggers(database, names, () => {
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
    `insert into ${name} (${names.join(", ")}) values (${names.map(formatInsertedValue).join(", ")})`,
  );
  for (const row of rows) insert.run(Object.fromEntries(names.map((column, at) => [column, row[at]])));
}

/**
 * Returns the SQL that inserts a column's value. The end of an open version is stored as a number too large for
 * JavaScript.
 */
function formatInsertedValue(name: string): string {
  if (name !== "until_position") return `@${name}`;
  return `iif(@${name} = ${OPEN_END}, ${STORED_OPEN_END}, @${name})`;
}

interface Trigger {
  readonly name: string;
  readonly sql: string;
}

/**
 * Drops the triggers of tables, writes, and creates them again, within a transaction. SQLite keeps the text of a
 * trigger, so that it comes back as it was.
 */
function writeWithoutTriggers(
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

/** Completes what follows from the rows, sets the counts of the source, and takes the mark of a half copy away. */
function finishCopy(database: BetterSqlite3.Database, { events, claimToken }: CopiedCounts): void {
  database.exec(COUNT_MEMORY);
  writeWithoutTriggers(database, ["claim_token"], () => {
    database.prepare("update claim_token set newest = ?").run(claimToken);
  });
  database.exec("delete from sqlite_sequence where name = 'event'");
  if (events > 0)
    database
      .prepare("insert into sqlite_sequence (name, seq) values ('event', cast(? as integer))")
      .run(events);
  dropCopyMark(database);
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
