/** Owns: the key that interrupt tokens are signed with, in a file of its own that only its owner can read. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
} from "node:fs";
import { dirname } from "node:path";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { nameFileKind } from "../../platform/plain-file.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import { createWholeFile, isNameTaken } from "../../platform/whole-file.ts";

const KEY_BYTES = 32;
const ADVICE = "name another path, or remove what is there: a new key is made then";

/**
 * Returns the key in a file, which it first creates with random bytes where there is none. Among two processes that
 * create it at once, both get the same. @throws CoordinationError `CONFIG_INVALID` for a key that is unsafe or broken,
 * and as a ledger does where the disk is full (`LEDGER_FULL`) or the system does not let this user have the file
 * (`LEDGER_UNAVAILABLE`)
 */
export function readOrCreateKey(path: string): Uint8Array {
  try {
    return tryReadKey(path) ?? createKey(path);
  } catch (error) {
    if (error instanceof CoordinationError) throw error;
    throw new CoordinationError(
      FULL_CODES.includes(readSystemErrorCode(error) ?? "") ? "LEDGER_FULL" : "LEDGER_UNAVAILABLE",
      `the key in ${path} cannot be used: ${describeError(error)}`,
      { cause: error },
    );
  }
}

const FULL_CODES: readonly string[] = ["ENOSPC", "EDQUOT"];

/** Creates a key, or reads the one that another process made first. */
function createKey(path: string): Uint8Array {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    createWholeFile(path, randomBytes(KEY_BYTES));
  } catch (error) {
    if (!isNameTaken(error)) throw error;
  }
  return readMadeKey(path);
}

const READS_MAX = 25;
const READ_EVERY_MS = 20;

/**
 * Reads a key that is there. Blocks for up to half a second: another process may not have written all of it yet where
 * the file system has no links.
 */
function readMadeKey(path: string): Uint8Array {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let reads = 0; reads < READS_MAX; reads += 1) {
    const key = tryReadKey(path);
    if (key) return key;
    Atomics.wait(pause, 0, 0, READ_EVERY_MS);
  }
  throw createBrokenKeyError(path);
}

function createBrokenKeyError(path: string): CoordinationError {
  return new CoordinationError(
    "CONFIG_INVALID",
    `the key in ${path} is not ${KEY_BYTES} bytes long; ${ADVICE}`,
  );
}

/**
 * Reads the key; `undefined` where there is no file, or not all of the key is in it. @throws CoordinationError
 * `CONFIG_INVALID` for a key that others may have made or changed
 */
function tryReadKey(path: string): Uint8Array | undefined {
  const file = openKeyFile(path);
  if (file === undefined) return undefined;
  try {
    const facts = fstatSync(file);
    const problem = findKeyFileFault(facts);
    if (problem !== undefined) throw createUnsafeError(path, problem);
    // Nothing is changed of another program's file, which the path may name.
    if (facts.size !== KEY_BYTES) return undefined;
    // Whoever could read it until now may have: that is said by `doctor`.
    if ((facts.mode & 0o077) !== 0) fchmodSync(file, 0o600);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Returns in words why another user may have made or changed a key's file, or that it is no plain file; `undefined`
 * where it is safe.
 */
export function findKeyFileFault(found: Stats): string | undefined {
  if (!found.isFile()) return `is ${nameFileKind(found)}, not a plain file`;
  const uid = process.getuid?.() ?? 0;
  if (uid !== 0 && found.uid !== uid && found.uid !== 0)
    return `belongs to user ${found.uid}, and this is user ${uid}`;
  return (found.mode & 0o022) === 0 ? undefined : "may be written by other users";
}

/**
 * Opens a key's file for reading, without following a link or waiting for a pipe, and returns its descriptor, which
 * the caller has to close; `undefined` where there is none. @throws CoordinationError for a link
 */
export function openKeyFile(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    const code = readSystemErrorCode(error);
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw createUnsafeError(path, "is a link");
    throw error;
  }
}

function createUnsafeError(path: string, problem: string): CoordinationError {
  return new CoordinationError("CONFIG_INVALID", `the key in ${path} ${problem}; ${ADVICE}`);
}
