/** Owns: reading a ledger file as the source of a copy: one read transaction lasts for the whole copy. */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CopySource } from "../../ledger/copy/copy-sides.ts";
import { loadMigrations, readSchemaVersion } from "../database/migrate.ts";
import { openDatabase } from "../database/open-database.ts";
import { NEWEST_RUN } from "../database/write-statements.ts";
import { runWithLedgerErrors } from "../database/sqlite-errors.ts";
import { createRowReader } from "./sqlite-row-reader.ts";

export interface FilePlace {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

/**
 * Opens a ledger file for reading, calls `copy` with it as the source, closes it afterwards, and returns what `copy`
 * returned. @throws CoordinationError as `openDatabase`, and `INPUT_INVALID` for a ledger of an older schema
 */
export async function withSqliteCopySource<T>(
  { path, busyTimeoutMs }: FilePlace,
  copy: (source: CopySource) => Promise<T>,
): Promise<T> {
  const options = { path, busyTimeoutMs, mode: "read" } as const;
  const watching = await openDatabase(options);
  try {
    const reading = await openDatabase(options);
    try {
      return await copy(createSqliteCopySource(path, watching, reading));
    } finally {
      reading.close();
    }
  } finally {
    watching.close();
  }
}

/**
 * Creates the source of a copy and begins its read transaction. `watching` is outside of the transaction that
 * `reading` is in: it sees that others have written.
 */
function createSqliteCopySource(
  path: string,
  watching: BetterSqlite3.Database,
  reading: BetterSqlite3.Database,
): CopySource {
  assertNewestSchema(path, reading);
  const before = readDataVersion(watching);
  reading.exec("begin");
  return {
    place: path,
    readRows: createRowReader(reading, path),
    counts: () =>
      Promise.resolve(
        runWithLedgerErrors(path, () => ({
          events: queryNumber(reading, "select max(seq) from sqlite_sequence where name = 'event'"),
          runs: queryNumber(reading, NEWEST_RUN),
          claimToken: readNewestClaimToken(path, reading),
        })),
      ),
    readMovedFrom: () => Promise.resolve(undefined),
    hasChanged: () => Promise.resolve(runWithLedgerErrors(path, () => readDataVersion(watching) !== before)),
  };
}

/** Throws for a ledger of an older schema, which only a writer brings to the newest. */
function assertNewestSchema(path: string, database: BetterSqlite3.Database): void {
  const version = readSchemaVersion(database);
  if (version === loadMigrations().length) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${path} has schema ${version} of an older release; start the gateway or \`serve\` on it once, stop it, and copy then`,
  );
}

/** Returns a number that changes when others have written to the file. Reading something first makes SQLite look. */
function readDataVersion(database: BetterSqlite3.Database): number {
  database.prepare("select count(*) from sqlite_schema").get();
  return Number(database.pragma("data_version", { simple: true }));
}

function queryNumber(database: BetterSqlite3.Database, sql: string): number {
  return Number(database.prepare(sql).pluck().get() ?? 0);
}

function readNewestClaimToken(path: string, database: BetterSqlite3.Database): number {
  const newest = database.prepare<[], number>("select newest from claim_token").pluck().get();
  if (newest !== undefined) return newest;
  throw new CoordinationError("LEDGER_CORRUPT", `${path}: the newest token of claims is gone`);
}
