/**
 * Owns: copying a ledger while others append to it.
 *
 * B1 The copy is the ledger at one moment: one read transaction lasts for the whole copy, so writers neither change it nor make it
 * begin again. B2 Nothing is overwritten. B3 A copy that is not complete never has the name of a complete one.
 */
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, lstatSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import { isNameTaken, linkDraft } from "../../platform/whole-file.ts";
import { openDatabase } from "./database/open-database.ts";
import { toSqliteLedgerError } from "./database/sqlite-errors.ts";

/** Some 4 MB: short enough to show how far the copy is. */
const PAGES_PER_PASS = 1_000;

export interface LedgerBackup {
  readonly path: string;
  readonly target: string;
  readonly busyTimeoutMs: number;
  readonly onProgress?: (pages: BetterSqlite3.BackupMetadata) => void;
}

/**
 * Copies a ledger file as it is at one moment to a new file, and returns the size of the copy in bytes. Until the copy
 * is whole it has another name, and it is removed where copying fails. @throws CoordinationError `INPUT_INVALID` where
 * the target exists, else as `openDatabase`
 */
export async function backUpLedger(backup: LedgerBackup): Promise<number> {
  const { path, target, busyTimeoutMs } = backup;
  if (isTargetThere(target)) throw createTargetExistsError(target);
  const database = await openDatabase({ path, mode: "read", busyTimeoutMs });
  // Another backup to the same target has a draft of its own, also one of this process.
  const draft = `${target}.${randomBytes(6).toString("hex")}.partial`;
  try {
    createDraft(draft, target);
    await copyDatabase(database, draft, backup);
    publishDraft(draft, target);
    return statSync(target).size;
  } catch (error) {
    throw toSqliteLedgerError(error, target);
  } finally {
    database.close();
    rmSync(draft, { force: true });
  }
}

/** Returns whether something has the target's name, a broken link included. Throws where this user may not look. */
function isTargetThere(target: string): boolean {
  try {
    return lstatSync(target, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    const code = readSystemErrorCode(cause) ?? "?";
    throw new CoordinationError("INPUT_INVALID", `file: ${target} cannot be looked at (${code})`, { cause });
  }
}

function createTargetExistsError(target: string): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `file: ${target} already exists, and a backup overwrites nothing; name another file`,
  );
}

/** Creates the empty file that the copy grows in. It is as private as the ledger from its first byte on. */
function createDraft(draft: string, target: string): void {
  const folder = dirname(target);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new CoordinationError("INPUT_INVALID", `file: ${folder} is no folder; create it first`);
  closeSync(openSync(draft, "wx", 0o600));
}

/** Copies all pages within one read transaction, so that no writer changes the copy or makes it begin again (B1). */
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

/**
 * Gives the complete copy the target's name, and flushes both to disk. A link refuses a name that is taken meanwhile;
 * file systems without links get a copy, which refuses as well.
 */
function publishDraft(draft: string, target: string): void {
  try {
    linkDraft(draft, target);
  } catch (error) {
    throw isNameTaken(error) ? createTargetExistsError(target) : error;
  }
  flushToDisk(target);
  if (process.platform !== "win32") flushToDisk(dirname(target));
}

function flushToDisk(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
