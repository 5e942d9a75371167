/**
 * Owns: opening a ledger file safely: plain file, release check, mode 0600, no schema but ours, migrations, durability
 * settings.
 *
 * A file that a newer release wrote is recognised from its header, before SQLite touches it.
 */
import { closeSync, existsSync, mkdirSync, openSync, readSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { findFileFault, keepOthersOut } from "../../../platform/plain-file.ts";
import { readSystemErrorCode } from "../../../platform/system-error.ts";
import { createHalfCopyError } from "../../ledger/half-copy.ts";
import { assertSchemaNotNewer } from "../../ledger/migrations.ts";
import { hasCopyMark, readCopyMark } from "./copy-mark-rows.ts";
import { keepPlans } from "./keep-plans.ts";
import { assertNoForeignTables, loadMigrations, migrateSchema, readSchemaVersion } from "./migrate.ts";
import { toSqliteLedgerError } from "./sqlite-errors.ts";

/** "OCCL" in the file header marks a coordination ledger. */
export const APPLICATION_ID = 0x4f_43_43_4c;

const HEADER = { bytes: 100, magic: "SQLite format 3\0", userVersionAt: 60, applicationIdAt: 68 } as const;

export interface OpenOptions {
  readonly path: string;
  /** `read` never creates or changes the file. */
  readonly mode: "read" | "write";
  /** How long SQLite waits for a lock. It blocks the thread, so keep it short inside a gateway. */
  readonly busyTimeoutMs: number;
  /** True for who copies a ledger to this place: nobody else opens a copy that has not been completed. */
  readonly isCopyTarget?: boolean;
}

/**
 * Opens a ledger file and checks that it is a whole one and safe from other users; for writing, creates and migrates
 * it. Returns the connection, which the caller has to close. @throws CoordinationError `LEDGER_NOT_FOUND`,
 * `LEDGER_TOO_NEW`, `LEDGER_INCOMPLETE`, `LEDGER_CORRUPT`, `LEDGER_BUSY`, `LEDGER_UNAVAILABLE` or
 * `RUNTIME_UNSUPPORTED`
 */
export async function openDatabase(options: OpenOptions): Promise<BetterSqlite3.Database> {
  const { path, mode } = options;
  const Database = await loadSqliteDriver();
  let database: BetterSqlite3.Database | undefined;
  try {
    const exists = isFileThere(path);
    if (!exists && mode === "read") throw new CoordinationError("LEDGER_NOT_FOUND", `no ledger at ${path}`);
    assertPlainFiles(path);
    if (!exists) createFile(path);
    assertHeaderReadable(path);
    database = new Database(path, {
      readonly: shouldConnectReadOnly(options),
      timeout: options.busyTimeoutMs,
    });
    keepPlans(database);
    await configureConnection(database, options);
    return database;
  } catch (error) {
    database?.close();
    throw toSqliteLedgerError(error, path);
  }
}

/** Returns whether the file exists. Where this user may not look, it is not absent: that throws the system's error. */
function isFileThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(readSystemErrorCode(error) ?? "")) return false;
    throw error;
  }
}

/** Returns whether there is no file, or one without a byte. @throws the error of the system where this user may not look */
export function isAbsentOrEmpty(path: string): boolean {
  return !isFileThere(path) || statSync(path).size === 0;
}

/**
 * Imports better-sqlite3 and returns its class. @throws CoordinationError `RUNTIME_UNSUPPORTED` on a Node.js older
 * than 22
 */
export async function loadSqliteDriver(): Promise<typeof BetterSqlite3> {
  const major = Number(process.versions.node.split(".")[0]);
  // better-sqlite3 13 crashes the process on Node 20: check before the import.
  if (major < 22)
    throw new CoordinationError("RUNTIME_UNSUPPORTED", `this is Node.js ${process.versions.node}`);
  return (await import("better-sqlite3")).default;
}

/**
 * True where a -wal may hold what a crashed writer left, which only a read-only connection leaves alone. Such a
 * connection creates -wal and -shm and cannot remove them; a `query_only` one removes them when it closes.
 */
function shouldConnectReadOnly({ path, mode }: OpenOptions): boolean {
  return mode === "read" && existsSync(`${path}-wal`);
}

/**
 * Creates an empty file that only its user can read. SQLite gives the -wal and -shm files the mode of the main file.
 */
function createFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, "a", 0o600));
}

/** Throws where a file of the ledger, its `-wal` and `-shm` among them, is not to be trusted. */
function assertPlainFiles(path: string): void {
  for (const file of listFiles(path)) {
    const fault = findFileFault(file);
    if (fault !== undefined) throw new CoordinationError("LEDGER_UNAVAILABLE", `${file} ${fault}`);
  }
}

/**
 * Takes other users' rights to the ledger's files away, and throws where they may still write one. Not before the file
 * is known to be no other program's.
 */
function keepFilesPrivate(path: string): void {
  for (const file of listFiles(path))
    if (!keepOthersOut(file))
      throw new CoordinationError("LEDGER_UNAVAILABLE", `${file} may be written by other users`);
}

function listFiles(path: string): readonly string[] {
  return [path, `${path}-wal`, `${path}-shm`];
}

/** Throws for a file that is no ledger, or that a newer release wrote, before SQLite touches it. */
function assertHeaderReadable(path: string): void {
  const { size } = statSync(path);
  if (size === 0) return;
  const header = Buffer.alloc(HEADER.bytes);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, HEADER.bytes, 0);
  } finally {
    closeSync(file);
  }
  if (size < HEADER.bytes || header.toString("latin1", 0, HEADER.magic.length) !== HEADER.magic) {
    throw new CoordinationError("LEDGER_CORRUPT", `${path} is not a SQLite file`);
  }
  const applicationId = header.readUInt32BE(HEADER.applicationIdAt);
  const version = header.readUInt32BE(HEADER.userVersionAt);
  // Both are written in one transaction: a file with a version and no id is not ours.
  const foreign = applicationId === 0 ? version !== 0 : applicationId !== APPLICATION_ID;
  if (foreign) throw new CoordinationError("LEDGER_CORRUPT", `${path} is another program's database`);
  assertSchemaNotNewer(path, version, loadMigrations());
}

/** Checks the opened file, migrates one that is open for writing, and makes the settings of the connection. */
async function configureConnection(database: BetterSqlite3.Database, options: OpenOptions): Promise<void> {
  const { path, mode } = options;
  if (mode === "read") database.pragma("query_only = on");
  assertNoViews(database, path);
  // Also in a -wal that a newer release left behind.
  assertSchemaNotNewer(path, readSchemaVersion(database), loadMigrations());
  if (options.isCopyTarget !== true && hasCopyMark(database))
    throw createHalfCopyError(path, readCopyMark(database));
  if (mode === "write") {
    assertNoForeignTables(database, path);
    keepFilesPrivate(path);
    // Before WAL, so that the header in the main file always tells the schema version.
    migrateSchema(database, { path, applicationId: APPLICATION_ID });
    await switchToWal(database, options);
    // The build defaults to NORMAL in WAL, which loses acknowledged appends on a power cut (S2).
    setPragma(database, path, { set: "synchronous = full", read: "synchronous", value: 2 });
  }
  database.pragma("foreign_keys = on");
  // A text that was deleted must not stay readable in free pages.
  database.pragma("secure_delete = on");
  if (Number(database.pragma("application_id", { simple: true })) !== APPLICATION_ID) {
    throw new CoordinationError("LEDGER_CORRUPT", `${path} is not a coordination ledger`);
  }
}

/**
 * Turns trust in the schema off, and throws for a view or a virtual table. In the place of a table it may be a query
 * without an end, which nothing interrupts.
 */
function assertNoViews(database: BetterSqlite3.Database, path: string): void {
  database.pragma("trusted_schema = off");
  const foreign = database
    .prepare<[], { type: string; name: string }>(
      `select type, name
      from sqlite_schema
      where type = 'view' or (type = 'table' and sql like 'create virtual%')
      order by name
      limit 1`,
    )
    .get();
  if (!foreign) return;
  const kind = foreign.type === "view" ? "the view" : "the virtual table";
  throw new CoordinationError("LEDGER_CORRUPT", `${path} has ${kind} ${foreign.name}, which no ledger has`);
}

const TRY_AGAIN_MS = 5;

/** Switches to WAL. SQLite does not wait here for another process that is at its migrations, so this does. */
async function switchToWal(
  database: BetterSqlite3.Database,
  { path, busyTimeoutMs }: OpenOptions,
): Promise<void> {
  const untilMs = performance.now() + busyTimeoutMs;
  for (;;)
    try {
      setPragma(database, path, { set: "journal_mode = wal", read: "journal_mode", value: "wal" });
      return;
    } catch (error) {
      const isBusy = (error as { readonly code?: unknown }).code === "SQLITE_BUSY";
      if (!isBusy || performance.now() >= untilMs) throw error;
      await passed(TRY_AGAIN_MS);
    }
}

/** Makes a setting of SQLite, and throws where SQLite stays at another value. */
function setPragma(
  database: BetterSqlite3.Database,
  path: string,
  { set, read, value }: { set: string; read: string; value: string | number },
): void {
  database.pragma(set);
  const actual: unknown = database.pragma(read, { simple: true });
  if (actual === value) return;
  throw new CoordinationError(
    "LEDGER_UNAVAILABLE",
    `${path}: SQLite refused ${set} and stayed at ${String(actual)}`,
  );
}
