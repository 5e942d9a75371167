/** Owns: the mark of a ledger file that is a copy which has not been completed. */
import type BetterSqlite3 from "better-sqlite3";
import { COPY_MARK, type CopyMark } from "../../ledger/half-copy.ts";

export function hasTable(database: BetterSqlite3.Database, name: string): boolean {
  const found = database.prepare("select 1 from sqlite_schema where type = 'table' and name = ?");
  return found.get(name) !== undefined;
}

export function hasCopyMark(database: BetterSqlite3.Database): boolean {
  return hasTable(database, COPY_MARK);
}

/** Reads the mark; `undefined` for a ledger that is no half copy. */
export function readCopyMark(database: BetterSqlite3.Database): CopyMark | undefined {
  if (!hasCopyMark(database)) return undefined;
  return database
    .prepare<[], CopyMark>(
      `select source, first_hash as firstHash, events from ${COPY_MARK} order by only_row`,
    )
    .get();
}

/** Marks the ledger as a half copy. A process that had the empty ledger open before is kept from appending to it. */
export function createCopyMark(database: BetterSqlite3.Database): void {
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

/** Writes what the mark says, in place of what it said before. */
export function replaceCopyMark(database: BetterSqlite3.Database, mark: CopyMark): void {
  database
    .prepare(`insert or replace into ${COPY_MARK} (only_row, source, first_hash, events) values (1, ?, ?, ?)`)
    .run(mark.source, mark.firstHash, mark.events);
}

/** Takes the mark of a half copy away. */
export function dropCopyMark(database: BetterSqlite3.Database): void {
  database.exec(
    `drop trigger copy_not_appended;
     drop trigger copy_not_changed;
     drop table ${COPY_MARK};`,
  );
}
