/** Owns: turning errors of SQLite into errors of the ledger, with the code that says what to do. */
import {
  CoordinationError,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

/** SQLite's primary result codes, as better-sqlite3 puts them on `error.code`, and what they mean to us. */
const BY_PRIMARY_CODE: Readonly<Record<string, ErrorCode>> = {
  SQLITE_BUSY: "LEDGER_BUSY",
  SQLITE_LOCKED: "LEDGER_BUSY",
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

export function toLedgerError(error: unknown, path: string): CoordinationError {
  if (isCoordinationError(error)) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const primary = code.split("_").slice(0, 2).join("_");
  const mapped = BY_PRIMARY_CODE[primary] ?? (code.startsWith("E") ? "LEDGER_UNAVAILABLE" : "LEDGER_CORRUPT");
  const detail = describeError(error);
  return new CoordinationError(mapped, `${path}: ${detail}${code ? ` (${code})` : ""}`, { cause: error });
}

export function withLedgerErrors<T>(path: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw toLedgerError(error, path);
  }
}
