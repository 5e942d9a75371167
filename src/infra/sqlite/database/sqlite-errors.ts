/** Owns: turning errors of SQLite into errors of the ledger, with the code that says what to do. */
import {
  CoordinationError,
  isCoordinationError,
  isLedgerOutage,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

/** SQLite's result codes, as better-sqlite3 puts them on `error.code`, and what they mean to us; else by the primary code. */
const BY_CODE: Readonly<Record<string, ErrorCode>> = {
  SQLITE_BUSY: "LEDGER_BUSY",
  SQLITE_LOCKED: "LEDGER_BUSY",
  SQLITE_PROTOCOL: "LEDGER_BUSY",
  SQLITE_NOMEM: "LEDGER_BUSY",
  SQLITE_FULL: "LEDGER_FULL",
  SQLITE_CORRUPT: "LEDGER_CORRUPT",
  SQLITE_NOTADB: "LEDGER_CORRUPT",
  SQLITE_CANTOPEN: "LEDGER_UNAVAILABLE",
  SQLITE_READONLY: "LEDGER_UNAVAILABLE",
  SQLITE_PERM: "LEDGER_UNAVAILABLE",
  SQLITE_IOERR: "LEDGER_UNAVAILABLE",
  SQLITE_CONSTRAINT: "LEDGER_CONFLICT",
  SQLITE_ERROR: "LEDGER_CORRUPT",
};

/** Bytes of the file cannot be read. A call may succeed later; a check cannot say that the ledger is whole. */
const BYTES_UNREADABLE: ReadonlySet<string> = new Set([
  "SQLITE_IOERR_READ",
  "SQLITE_IOERR_SHORT_READ",
  "SQLITE_IOERR_DATA",
  "SQLITE_IOERR_CORRUPTFS",
]);

/**
 * Returns the `CoordinationError` that an error of SQLite or of the system means; one that is a `CoordinationError`
 * already stays as it is.
 */
export function toSqliteLedgerError(error: unknown, path: string): CoordinationError {
  if (isCoordinationError(error)) return error;
  const code = readSqliteErrorCode(error);
  const primary = code.split("_").slice(0, 2).join("_");
  const other = code.startsWith("E") ? "LEDGER_UNAVAILABLE" : "LEDGER_CORRUPT";
  const mapped = BY_CODE[code] ?? BY_CODE[primary] ?? other;
  const detail = describeError(error);
  return new CoordinationError(mapped, `${path}: ${detail}${code ? ` (${code})` : ""}`, { cause: error });
}

/**
 * Returns whether an error means that SQLite or the system could not do something right now, which says nothing of
 * what the ledger holds; false for damage and for a value that SQLite cannot take.
 */
export function isSqliteOutage(error: unknown): boolean {
  const code = readSqliteErrorCode(error);
  // Codes of Node itself begin with ERR: it was given a value that it cannot work with.
  const isOfValue = code.startsWith("ERR_");
  return !isOfValue && !BYTES_UNREADABLE.has(code) && isLedgerOutage(toSqliteLedgerError(error, ""));
}

/** Returns the code of SQLite or of the system; an empty text where there is none. */
function readSqliteErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/**
 * Runs synchronous work and returns its result; what it throws is thrown as the `CoordinationError` that it means.
 * `path`: the ledger file that the error names.
 */
export function runWithLedgerErrors<T>(path: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw toSqliteLedgerError(error, path);
  }
}
