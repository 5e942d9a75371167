/** Owns: what errors of the server and of its driver mean to us. The password is in none of them. */
import {
  CoordinationError,
  isCoordinationError,
  type ErrorCode,
} from "../../../agents/coordination/contracts/errors.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

/** The error code for an error of the server, and a hint. */
interface ErrorMeaning {
  readonly code: ErrorCode;
  /** Tells more than the server does. */
  readonly hint?: string;
}

/** By SQLSTATE, else by its class. */
const BY_STATE: Readonly<Record<string, ErrorMeaning>> = {
  "08": { code: "LEDGER_UNAVAILABLE" },
  "22": { code: "INPUT_INVALID" },
  "23": { code: "LEDGER_CONFLICT" },
  "25006": {
    code: "LEDGER_UNAVAILABLE",
    hint: "the server takes no writes: it is a standby, or was made one; point the URL at the primary server",
  },
  "25P02": { code: "LEDGER_BUSY" },
  "25P03": { code: "LEDGER_BUSY" },
  "28": { code: "LEDGER_UNAVAILABLE", hint: "check the user of the URL and its password (PGPASSWORD)" },
  "3D000": { code: "LEDGER_UNAVAILABLE", hint: "create the database first" },
  "3F000": { code: "LEDGER_UNAVAILABLE", hint: "create the schema first" },
  "40": { code: "LEDGER_BUSY" },
  "42501": { code: "LEDGER_UNAVAILABLE", hint: "give the user of the URL the schema of the ledger" },
  "42": { code: "LEDGER_CORRUPT" },
  "53": { code: "LEDGER_BUSY" },
  "53100": { code: "LEDGER_FULL" },
  "53300": {
    code: "LEDGER_BUSY",
    hint: "the server has no connection left: raise max_connections or lower pool_max",
  },
  "54": { code: "INPUT_INVALID", hint: "a name is too long for an index of PostgreSQL" },
  "55P03": { code: "LEDGER_BUSY", hint: "another process held the ledger for the whole busy timeout" },
  "57014": { code: "LEDGER_BUSY", hint: "the statement took longer than its timeout" },
  "57": { code: "LEDGER_UNAVAILABLE" },
  "58": { code: "LEDGER_UNAVAILABLE" },
  XX001: { code: "LEDGER_CORRUPT" },
  XX002: { code: "LEDGER_CORRUPT" },
};

/** A text that is longer than texts can be. */
const UNSENDABLE: ErrorMeaning = {
  code: "INPUT_INVALID",
  hint: "what is to be written is too large to be sent to the server",
};

const SQLSTATE = /^[0-9A-Z]{5}$/u;

/** Where a ledger is, as it may be shown. */
export interface LedgerPlace {
  /** Without password and settings. */
  readonly name: string;
  /** Replaces the password in what others wrote. */
  readonly conceal: (text: string) => string;
}

/**
 * Returns the `CoordinationError` that an error of the PostgreSQL server or of its driver means, with its secrets
 * concealed; one that is a `CoordinationError` already stays as it is.
 */
export function toPostgresLedgerError(error: unknown, { name, conceal }: LedgerPlace): CoordinationError {
  if (isCoordinationError(error)) return error;
  const state = readErrorState(error);
  const { code, hint } = error instanceof RangeError ? UNSENDABLE : findMeaning(state);
  // An address with several numbers has an error for each, and none of its own.
  const detail = conceal(describeError(error)) || "the server cannot be reached";
  const more = `${hint === undefined ? "" : `; ${hint}`}${state === "" ? "" : ` (${state})`}`;
  // Not the error itself: those of the driver hold the settings of the connection.
  return new CoordinationError(code, `${name}: ${detail}${more}`, { cause: new Error(detail) });
}

/** Returns the SQLSTATE of an error of the server, else the code of an error of the system, else an empty text. */
export function readErrorState(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** The server cannot read its own files, or cannot make sense of what is in them. */
const UNREADABLE: ReadonlySet<string> = new Set(["58030", "58P01", "XX000"]);

/**
 * Returns whether a statement failed because the server could not read what is stored. A later try may read it; a
 * check cannot say that the ledger is whole.
 */
export function isUnreadableError(error: unknown): boolean {
  return UNREADABLE.has(readErrorState(error));
}

function findMeaning(state: string): ErrorMeaning {
  if (!SQLSTATE.test(state) || state.startsWith("E")) return { code: "LEDGER_UNAVAILABLE" };
  return BY_STATE[state] ?? BY_STATE[state.slice(0, 2)] ?? { code: "LEDGER_UNAVAILABLE" };
}

/**
 * Returns whether an error means that the connection ended, so that it is not known whether the last statement was
 * carried out; false for a statement that the server answered with an error, and where this process itself refused to
 * go on.
 */
export function isConnectionLostError(error: unknown): boolean {
  if (error instanceof RangeError || isCoordinationError(error)) return false;
  const state = readErrorState(error);
  if (!SQLSTATE.test(state) || state.startsWith("E")) return true;
  // A statement that the server answers with an error was not done, unless the server ended the connection:
  // it was told to stop, or this process stood still in the middle of a transaction.
  return state.startsWith("08") || state.startsWith("57P") || state === "25P03";
}
