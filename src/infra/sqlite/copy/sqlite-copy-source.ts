/** Owns: reading a ledger file as the source of a copy: one read transaction lasts for the whole copy. */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CopySource } from "../../ledger/copy/copy-sides.ts";
import { loadMigrations, readSchemaVersion } from "../database/migrate.ts";
import { openDatabase } from "../database/open-database.ts";
import { NEWEST_RUN } from "../database/statements.ts";
import { withLedgerErrors } from "../database/sqlite-errors.ts";
import { createRowReader } from "./sqlite-row-reader.ts";

export interface FilePlace {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

/** @throws CoordinationError as `openDatabase`, and `INPUT_INVALID` for a ledger of an older schema */
export async function readFromSqlite<T>(
  { path, busyTimeoutMs }: FilePlace,
  copy: (source: CopySource) => Promise<T>,
): Promise<T> {
  const options = { path, busyTimeoutMs, mode: "read" } as const;
  const watching = await openDatabase(options);
  try {
    const reading = await openDatabase(options);
    try {
      return await copy(createSource(path, watching, reading));
    } finally {
      reading.close();
    }
  } finally {
    watching.close();
  }
}

/** `watching` is outside of the transaction that `reading` is in: it sees that others have written. */
function createSource(
  path: string,
  watching: BetterSqlite3.Database,
  reading: BetterSqlite3.Database,
): CopySource {
  checkVersion(path, reading);
  const before = readDataVersion(watching);
  reading.exec("begin");
  return {
    place: path,
    readRows: createRowReader(reading, path),
    counts: () =>
      Promise.resolve(
        withLedgerErrors(path, () => ({
          events: readNumber(reading, "select max(seq) from sqlite_sequence where name = 'event'"),
          runs: readNumber(reading, NEWEST_RUN),
          claimToken: readClaimToken(path, reading),
        })),
      ),
    readMovedFrom: () => Promise.resolve(undefined),
    hasChanged: () => Promise.resolve(withLedgerErrors(path, () => readDataVersion(watching) !== before)),
  };
}

/** Only a writer changes the schema of a ledger. */
function checkVersion(path: string, database: BetterSqlite3.Database): void {
  const version = readSchemaVersion(database);
  if (version === loadMigrations().length) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${path} has schema ${version} of an older release; start the gateway or \`serve\` on it once, stop it, and copy then`,
  );
}

/** Reading something first makes SQLite look whether others have written. */
function readDataVersion(database: BetterSqlite3.Database): number {
  database.prepare("select count(*) from sqlite_schema").get();
  return Number(database.pragma("data_version", { simple: true }));
}

function readNumber(database: BetterSqlite3.Database, sql: string): number {
  return Number(database.prepare(sql).pluck().get() ?? 0);
}

function readClaimToken(path: string, database: BetterSqlite3.Database): number {
  const newest = database.prepare<[], number>("select newest from claim_token").pluck().get();
  if (newest !== undefined) return newest;
  throw new CoordinationError("LEDGER_CORRUPT", `${path}: the newest token of claims is gone`);
}
