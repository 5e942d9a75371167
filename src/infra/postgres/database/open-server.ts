/** Owns: opening a ledger on a server safely: release check, migrations, durability. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { createHalfCopyError } from "../../ledger/half-copy.ts";
import { connectToServer, type ConnectOptions, type PostgresDatabase } from "./connect.ts";
import { hasCopyMark, readCopyMark } from "./copy-mark-table.ts";
import {
  assertSchemaFree,
  assertAppliedMigrations,
  migrateSchema,
  readAppliedMigrations,
} from "./migrate-schema.ts";

export interface OpenOptions extends ConnectOptions {
  /** `read` never creates or changes anything. */
  readonly mode: "read" | "write";
  /** True for who copies a ledger to this place: nobody else opens a copy that has not been completed. */
  readonly isCopyTarget?: boolean;
}

/**
 * Opens a PostgreSQL ledger and checks that it is a whole one; for writing, creates and migrates it first. Returns its
 * connections, which the caller has to close. @throws CoordinationError `INPUT_INVALID`, `LEDGER_NOT_FOUND`,
 * `LEDGER_TOO_NEW`, `LEDGER_INCOMPLETE`, `LEDGER_CORRUPT`, `LEDGER_BUSY` or `LEDGER_UNAVAILABLE`
 */
export async function openDatabase(options: OpenOptions): Promise<PostgresDatabase> {
  const database = await connectToServer(options);
  try {
    if (options.mode === "write") {
      await migrateSchema(database);
      await assertDurable(database);
    } else await assertLedgerExists(database);
    if (options.isCopyTarget !== true && (await hasCopyMark(database.query)))
      throw createHalfCopyError(database.name, await readCopyMark(database.query));
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Throws where there is no ledger, or one whose migrations are not this release's. */
async function assertLedgerExists(database: PostgresDatabase): Promise<void> {
  const applied = await readAppliedMigrations(database.query);
  if (!applied) {
    await assertSchemaFree(database.name, database.query);
    throw new CoordinationError("LEDGER_NOT_FOUND", `no ledger at ${database.name}`);
  }
  assertAppliedMigrations(database.name, applied);
}

/**
 * Throws where the server runs with `fsync` off (S2), which nobody but its owner can set. `synchronous_commit` is set
 * for each transaction.
 */
async function assertDurable({ name, query }: PostgresDatabase): Promise<void> {
  const [setting] = await query<{ fsync: string | null }>("select current_setting('fsync', true) as fsync");
  if (setting?.fsync !== "off") return;
  throw new CoordinationError(
    "LEDGER_UNAVAILABLE",
    `${name} runs with fsync off, which loses acknowledged appends on a power cut; turn it on`,
  );
}
