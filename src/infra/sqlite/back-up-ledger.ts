/**
 * Owns: copying a ledger while others append to it.
 *
 * B1 The copy is the ledger at one moment: one read transaction lasts for the whole copy, so writers neither change it nor make it
 * begin again. B2 Nothing is overwritten. B3 A copy that is not complete never has the name of a complete one.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { openDatabase } from "./database/open-database.ts";
import { toLedgerError } from "./database/sqlite-errors.ts";

/** Some 4 MB: short enough to show how far the copy is. */
const PAGES_PER_PASS = 1_000;

export interface LedgerBackup {
  readonly path: string;
  readonly target: string;
  readonly busyTimeoutMs: number;
  readonly onProgress?: (pages: BetterSqlite3.BackupMetadata) => void;
}

/** Answers the size of the copy in bytes. @throws CoordinationError `INPUT_INVALID` where the target exists, else as `openDatabase` */
export async function backUpLedger(backup: LedgerBackup): Promise<number> {
  const { path, target, busyTimeoutMs } = backup;
  if (isTargetThere(target)) throw createExistsError(target);
  const database = await openDatabase({ path, mode: "read", busyTimeoutMs });
  const draft = `${target}.${process.pid}.partial`;
  try {
    createDraft(draft, target);
    await copyDatabase(database, draft, backup);
    publishDraft(draft, target);
    return statSync(target).size;
  } catch (error) {
    throw toLedgerError(error, target);
  } finally {
    database.close();
    rmSync(draft, { force: true });
  }
}

function isTargetThere(target: string): boolean {
  try {
    return lstatSync(target, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "?";
    throw new CoordinationError("INPUT_INVALID", `file: ${target} cannot be looked at (${code})`, { cause });
  }
}

function createExistsError(target: string): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `file: ${target} already exists, and a backup overwrites nothing; name another file`,
  );
}

/** The copy is as private as the ledger from its first byte on. */
function createDraft(draft: string, target: string): void {
  const folder = dirname(target);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new CoordinationError("INPUT_INVALID", `file: ${folder} is no folder; create it first`);
  closeSync(openSync(draft, "wx", 0o600));
}

async function copyDatabase(
  database: BetterSqlite3.Database,
  draft: string,
  { onProgress }: LedgerBackup,
): Promise<void> {
  database.exec("begin");
  database.prepare("select count(*) from sqlite_schema").get();
  await database.backup(draft, {
    progress: (pages) => {
      onProgress?.(pages);
      return PAGES_PER_PASS;
    },
  });
  database.exec("rollback");
}

/** A link refuses a name that is taken meanwhile; file systems without links get a copy, which refuses as well. */
function publishDraft(draft: string, target: string): void {
  try {
    linkSync(draft, target);
  } catch (error) {
    if (isTaken(error)) throw createExistsError(target);
    copyDraft(draft, target);
  }
  flushToDisk(target);
  if (process.platform !== "win32") flushToDisk(dirname(target));
}

function copyDraft(draft: string, target: string): void {
  try {
    copyFileSync(draft, target, constants.COPYFILE_EXCL);
  } catch (error) {
    throw isTaken(error) ? createExistsError(target) : error;
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

function flushToDisk(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
