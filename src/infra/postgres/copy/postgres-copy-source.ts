/** Owns: reading a ledger on a server as the source of a copy: one read transaction lasts for the whole copy. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CopiedCounts, CopySource } from "../../ledger/copy/copy-sides.ts";
import {
  runTransaction,
  WITHOUT_TIME_LIMIT,
  type ConnectOptions,
  type PostgresDatabase,
  type SendQuery,
} from "../database/connect.ts";
import { loadMigrations, readAppliedMigrations } from "../database/migrate-schema.ts";
import { openDatabase } from "../database/open-server.ts";
import { readMovedFrom } from "../database/read-log-rows.ts";
import { toPostgresLedgerError } from "../database/postgres-errors.ts";
import { createRowReader, stampTables } from "./postgres-row-reader.ts";

/**
 * Opens a PostgreSQL ledger for reading, calls `copy` with one snapshot of it as the source, closes the ledger
 * afterwards, and returns what `copy` returned. @throws CoordinationError as `openDatabase`, and `INPUT_INVALID` for a
 * ledger of an older schema
 */
export async function withPostgresCopySource<T>(
  options: ConnectOptions,
  copy: (source: CopySource) => Promise<T>,
): Promise<T> {
  const database = await openDatabase({ ...options, mode: "read" });
  try {
    await assertNewestSchema(database);
    return await database.snapshot(async (query) => {
      // It is idle while the target is written.
      await query("set local idle_in_transaction_session_timeout = 0");
      return copy(createPostgresCopySource(database, query, await stampTables(query)));
    });
  } finally {
    await database.close();
  }
}

function createPostgresCopySource(database: PostgresDatabase, query: SendQuery, before: string): CopySource {
  const withErrors: SendQuery = async (sql, values) => {
    try {
      return await query(sql, values);
    } catch (error) {
      throw toPostgresLedgerError(error, database);
    }
  };
  return {
    place: database.name,
    readRows: createRowReader(withErrors),
    counts: () => readCounts(database.name, withErrors),
    readMovedFrom: () => readMovedFrom(withErrors),
    hasChanged: async () => (await stampCurrentTables(database)) !== before,
  };
}

/**
 * Returns the stamp of the tables as they are now, which the snapshot does not show. The snapshot may hold the only
 * connection for reading.
 */
function stampCurrentTables(database: PostgresDatabase): Promise<string> {
  const stamp = async (query: SendQuery): Promise<string> => {
    await query(`begin isolation level read committed read only; ${WITHOUT_TIME_LIMIT}`);
    return stampTables(query);
  };
  return runTransaction(database, stamp, { isUnlimited: true });
}

/** Throws for a ledger of an older schema, which only a writer brings to the newest. */
async function assertNewestSchema({ name, query }: PostgresDatabase): Promise<void> {
  const version = (await readAppliedMigrations(query))?.length ?? 0;
  if (version === loadMigrations().length) return;
  throw new CoordinationError(
    "INPUT_INVALID",
    `${name} has schema ${version} of an older release; start \`serve\` on it once, stop it, and copy then`,
  );
}

async function readCounts(name: string, query: SendQuery): Promise<CopiedCounts> {
  const [counts] = await query<CopiedCounts>(
    `select events, runs, claim_token as "claimToken" from ledger_count order by only_row`,
  );
  if (counts) return counts;
  throw new CoordinationError("LEDGER_CORRUPT", `${name}: the count of the ledger is gone`);
}
