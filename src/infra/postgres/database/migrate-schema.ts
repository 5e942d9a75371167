/**
 * Owns: the numbered migrations of the ledger's schema. Each is applied once, in one transaction with its number and hash, and
 * never edited afterwards.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import {
  assertMigrationHashes,
  assertSchemaNotNewer,
  readMigrations,
  type Migration,
} from "../../ledger/migrations.ts";
import { findPackageFile } from "../../../platform/package-files.ts";
import { runTransaction, type PostgresDatabase, type SendQuery } from "./connect.ts";

let loaded: readonly Migration[] | undefined;

/** Returns this release's migrations of PostgreSQL ledgers, in order; reads their files once. */
export function loadMigrations(): readonly Migration[] {
  loaded ??= readMigrations(findPackageFile("postgres/migrations/", import.meta.url));
  return loaded;
}

/** "OCCL", as in the header of a ledger file. All who migrate a ledger of one database wait for each other. */
const MIGRATION_LOCK = 0x4f_43_43_4c;

interface AppliedMigration {
  readonly number: number;
  readonly sha256: string;
}

/**
 * Applies to a PostgreSQL ledger the migrations that it lacks; only checks it where it lacks none. When several
 * processes begin at once, one migrates and the others find it done. @throws CoordinationError `LEDGER_TOO_NEW`,
 * `LEDGER_CORRUPT`, `LEDGER_UNAVAILABLE` and what the server answers
 */
export async function migrateSchema(database: PostgresDatabase): Promise<void> {
  const applied = await readAppliedMigrations(database.query);
  if (applied && applied.length >= loadMigrations().length) {
    assertAppliedMigrations(database.name, applied);
    return;
  }
  await runTransaction(database, async (query) => {
    // With another isolation it would not see what the process did that had the lock before.
    await query("begin isolation level read committed");
    // A lock of the transaction: it ends with it, also behind a pooler.
    await query("select pg_advisory_xact_lock(@lock::bigint)", { lock: MIGRATION_LOCK });
    await applyMigrations(database.name, query);
  });
}

/** Applies the migrations that the ledger lacks, behind the lock that all who migrate take. */
async function applyMigrations(name: string, query: SendQuery): Promise<void> {
  const applied = (await readAppliedMigrations(query)) ?? (await createMigrationTable(name, query));
  assertAppliedMigrations(name, applied);
  // Writes that are under way come first, and those that wait for this find the new number (`lockLedger`). A lock of the row alone
  // would let them lock the table, which a migration may alter: each would wait for the other.
  if (applied.length > 0) await query("lock table ledger_count in access exclusive mode");
  for (const { number, name: title, sql, sha256 } of loadMigrations().slice(applied.length)) {
    await query(sql);
    await query("insert into migration (number, name, sha256) values (@number, @title, @sha256)", {
      number,
      title,
      sha256,
    });
  }
  await query("update ledger_count set newest_migration = @newest", { newest: loadMigrations().length });
}

/** True where the schema of the ledger has a table of that name. */
export async function hasTable(query: SendQuery, name: string): Promise<boolean> {
  const [found] = await query<{ isThere: boolean }>(
    `select exists (
       select 1 from pg_tables where schemaname = current_schema() and tablename = @name
     ) as "isThere"`,
    { name },
  );
  return found?.isThere === true;
}

/** True where a migration was applied to the ledger: one that is only read may be of an older release. */
export async function hasMigration(query: SendQuery, number: number): Promise<boolean> {
  return (await query("select number from migration where number = @number", { number })).length > 0;
}

/**
 * Returns the migrations that a PostgreSQL ledger has recorded as applied, in order; `undefined` where its schema has
 * no ledger.
 */
export async function readAppliedMigrations(
  query: SendQuery,
): Promise<readonly AppliedMigration[] | undefined> {
  if (!(await hasTable(query, "migration"))) return undefined;
  return query<AppliedMigration>("select number, sha256 from migration order by number");
}

/**
 * Checks that the migrations that were applied to a ledger are those of this release. @throws CoordinationError
 * `LEDGER_TOO_NEW`, and `LEDGER_CORRUPT` for migrations that are not this release's
 */
export function assertAppliedMigrations(name: string, applied: readonly AppliedMigration[]): void {
  assertSchemaNotNewer(name, applied.length, loadMigrations());
  assertMigrationHashes(name, applied, loadMigrations().slice(0, applied.length));
}

/** Checks that no newer release has migrated the ledger since it was opened. @throws CoordinationError `LEDGER_TOO_NEW` */
export async function assertNotMigratedSince(name: string, query: SendQuery): Promise<void> {
  const [count] = await query<{ newest_migration: number }>(
    "select newest_migration from ledger_count where only_row = 1",
  );
  assertSchemaNotNewer(name, count?.newest_migration ?? 0, loadMigrations());
}

/** Creates the table of migrations in a schema that is free for a ledger, and returns that none was applied. */
async function createMigrationTable(name: string, query: SendQuery): Promise<readonly AppliedMigration[]> {
  await assertSchemaFree(name, query);
  await query(
    "create table migration (number integer primary key, name text not null, sha256 text not null)",
  );
  return [];
}

interface SchemaFacts {
  /** `null` where the search path has none that the user may use. */
  readonly schema: string | null;
  readonly mayCreate: boolean | null;
  readonly hasLedger: boolean;
  readonly hasTables: boolean;
}

/**
 * Checks that a ledger can be created in the connection's schema, or has just been created there by another process.
 * @throws CoordinationError `LEDGER_UNAVAILABLE` without a schema in which the user may create tables, and
 * `LEDGER_CORRUPT` for one of another program
 */
export async function assertSchemaFree(name: string, query: SendQuery): Promise<void> {
  const [facts] = await query<SchemaFacts>(
    `with found as (select tablename from pg_tables where schemaname = current_schema())
     select current_schema()::text as schema,
       has_schema_privilege(current_schema(), 'create') as "mayCreate",
       exists (select 1 from found where tablename = 'migration') as "hasLedger",
       exists (select 1 from found) as "hasTables"`,
  );
  // Another process has made it meanwhile.
  if (facts?.hasLedger) return;
  const schema = facts?.schema;
  if (typeof schema !== "string")
    throw new CoordinationError(
      "LEDGER_UNAVAILABLE",
      `${name} has no schema that this user may use; create one first, or give the user of the URL one`,
    );
  if (facts?.hasTables)
    throw new CoordinationError(
      "LEDGER_CORRUPT",
      `${name} has tables of another program in the schema ${schema}; give the ledger a database or a schema of its own`,
    );
  if (!facts?.mayCreate)
    throw new CoordinationError(
      "LEDGER_UNAVAILABLE",
      `${name} has no ledger, and this user may not create tables in the schema ${schema}; give the user of the URL the schema of the ledger`,
    );
}
