/**
 * Owns: the numbered migrations of the ledger's schema. Each is applied once, in one write transaction with its number
 * and hash, and never edited afterwards.
 */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { assertMigrationHashes, readMigrations, type Migration } from "../../ledger/migrations.ts";
import { findPackageFile } from "../../../platform/package-files.ts";

let loaded: readonly Migration[] | undefined;

/** Returns this release's migrations of ledger files, in order; reads their files once. */
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

/**
 * Applies to a ledger file the migrations up to a version, in one transaction; only checks it where it has that
 * version. Throws where the applied migrations are not this release's.
 */
export function migrateSchema(
  database: BetterSqlite3.Database,
  { path, applicationId, version = loadMigrations().length }: MigrateOptions,
): void {
  if (readSchemaVersion(database) === version) {
    assertAppliedMigrations(database, path);
    return;
  }
  database
    .transaction(() => {
      for (const migration of loadMigrations().slice(readSchemaVersion(database), version)) {
        if (migration.number === 1) createMigrationTable(database, path, applicationId);
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
  assertAppliedMigrations(database, path);
}

/** Returns the version of a ledger file's schema, which is the number of its last migration; 0 for an empty file. */
export function readSchemaVersion(database: BetterSqlite3.Database): number {
  return Number(database.pragma("user_version", { simple: true }));
}

/** Throws for another program's database: one with tables and without the version of a ledger. */
export function assertNoForeignTables(database: BetterSqlite3.Database, path: string): void {
  const tables = database.prepare("select count(*) from sqlite_schema").pluck().get();
  // In this order: another process may migrate an empty file in between.
  if (tables !== 0 && readSchemaVersion(database) === 0)
    throw new CoordinationError("LEDGER_CORRUPT", `${path} is another program's database`);
}

/** Marks an empty file as a ledger and creates the table of its migrations. Throws for another program's database. */
function createMigrationTable(database: BetterSqlite3.Database, path: string, applicationId: number): void {
  assertNoForeignTables(database, path);
  database.pragma(`application_id = ${applicationId}`);
  database.exec(
    "create table migration (number integer primary key, name text not null, sha256 text not null) strict",
  );
}

function assertAppliedMigrations(database: BetterSqlite3.Database, path: string): void {
  const applied = database
    .prepare<[], { sha256: string }>("select sha256 from migration order by number")
    .all();
  assertMigrationHashes(path, applied, loadMigrations().slice(0, readSchemaVersion(database)));
}
