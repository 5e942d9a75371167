/** Owns: opening a ledger on a server safely: release check, migrations, durability. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { COPY_MARK, createHalfCopyError } from "../../ledger/half-copy.ts";
import { connect, type ConnectOptions, type PostgresDatabase } from "./connect.ts";
import { checkIsFree, checkSchema, migrate, readApplied } from "./migrate-schema.ts";

export interface OpenOptions extends ConnectOptions {
  /** `read` never creates or changes anything. */
  readonly mode: "read" | "write";
  /** True for who copies a ledger to this place: nobody else opens a copy that has not been completed. */
  readonly isCopyTarget?: boolean;
}

/**
 * @throws CoordinationError `INPUT_INVALID`, `LEDGER_NOT_FOUND`, `LEDGER_TOO_NEW`, `LEDGER_INCOMPLETE`, `LEDGER_CORRUPT`,
 * `LEDGER_BUSY` or `LEDGER_UNAVAILABLE`.
 */
export async function openDatabase(options: OpenOptions): Promise<PostgresDatabase> {
  const database = await connect(options);
  try {
    if (options.mode === "write") {
      await migrate(database);
      await checkDurability(database);
    } else await checkLedger(database);
    if (options.isCopyTarget !== true) await refuseHalfCopy(database);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function checkLedger(database: PostgresDatabase): Promise<void> {
  const applied = await readApplied(database.query);
  if (!applied) {
    await checkIsFree(database.name, database.query);
    throw new CoordinationError("LEDGER_NOT_FOUND", `no ledger at ${database.name}`);
  }
  checkSchema(database.name, applied);
}

/** @throws CoordinationError `LEDGER_INCOMPLETE` */
async function refuseHalfCopy({ name, query }: PostgresDatabase): Promise<void> {
  const [found] = await query<{ isThere: boolean }>(
    `select exists (
       select 1 from pg_tables where schemaname = current_schema() and tablename = @mark
     ) as "isThere"`,
    { mark: COPY_MARK },
  );
  if (found?.isThere !== true) return;
  const [mark] = await query<{ source: string }>(`select source from ${COPY_MARK} order by only_row`);
  throw createHalfCopyError(name, mark?.source ?? "another ledger");
}

/** `synchronous_commit` is set for each transaction; nobody but the server's owner can set this one (S2). */
async function checkDurability({ name, query }: PostgresDatabase): Promise<void> {
  const [setting] = await query<{ fsync: string | null }>("select current_setting('fsync', true) as fsync");
  if (setting?.fsync !== "off") return;
  throw new CoordinationError(
    "LEDGER_UNAVAILABLE",
    `${name} runs with fsync off, which loses acknowledged appends on a power cut; turn it on`,
  );
}
