/**
 * Owns: the numbered migrations of the ledger's schema. Each is applied once, in one write transaction with its number
 * and hash, and never edited afterwards.
 */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { checkApplied, readMigrations, type Migration } from "../../ledger/migrations.ts";
import { findPackageFile } from "../../../platform/package-files.ts";

let loaded: readonly Migration[] | undefined;

/** Loads all migrations of this release, in order. */
export function loadMigrations(): readonly Migration[] {
  loaded ??= readMigrations(findPackageFile("migrations/", import.meta.url));
  return loaded;
}

export interface MigrateOptions {
  readonly path: string;
  readonly applicationId: number;
  /** The schema to end with; the newest unless named. */
  readonly version?: number;
}

export function migrate(
  database: BetterSqlite3.Database,
  { path, applicationId, version = loadMigrations().length }: MigrateOptions,
): void {
  if (readSchemaVersion(database) === version) {
    checkMigrations(database, path);
    return;
  }
  database
    .transaction(() => {
      for (const migration of loadMigrations().slice(readSchemaVersion(database), version)) {
        if (migration.number === 1) prepare(database, path, applicationId);
        database.exec(migration.sql);
        database
          .prepare("insert into migration (number, name, sha256) values (?, ?, ?)")
          .run(migration.number, migration.name, migration.sha256);
        database.pragma(`user_version = ${migration.number}`);
      }
    })
    .immediate();
  // The header of the main file must tell the new version also when the file was in WAL mode before.
  database.pragma("wal_checkpoint(truncate)");
  checkMigrations(database, path);
}

export function readSchemaVersion(database: BetterSqlite3.Database): number {
  return Number(database.pragma("user_version", { simple: true }));
}

function prepare(database: BetterSqlite3.Database, path: string, applicationId: number): void {
  const tables = database.prepare("select count(*) from sqlite_schema").pluck().get();
  if (tables !== 0) throw new CoordinationError("LEDGER_CORRUPT", `${path} is another program's database`);
  database.pragma(`application_id = ${applicationId}`);
  database.exec(
    "create table migration (number integer primary key, name text not null, sha256 text not null) strict",
  );
}

function checkMigrations(database: BetterSqlite3.Database, path: string): void {
  const applied = database
    .prepare<[], { sha256: string }>("select sha256 from migration order by number")
    .all();
  checkApplied(path, applied, loadMigrations().slice(0, readSchemaVersion(database)));
}
