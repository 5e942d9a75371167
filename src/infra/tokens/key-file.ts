/** Owns: the key that interrupt tokens are signed with, in a file of its own that only its owner can read. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";

const KEY_BYTES = 32;

/** Made where there is none; of two processes that make it at once, both get the same. */
export function keyIn(path: string): Uint8Array {
  const had = keyAt(path);
  if (had) return had;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomBytes(8).toString("hex")}`;
  const file = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    writeSync(file, randomBytes(KEY_BYTES));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const made = keyAt(path);
  if (!made) throw broken(path);
  return made;
}

function broken(path: string): CoordinationError {
  return new CoordinationError(
    "CONFIG_INVALID",
    `the key in ${path} is not ${KEY_BYTES} bytes long; remove the file, and a new one is made`,
  );
}

function keyAt(path: string): Uint8Array | undefined {
  try {
    const key = readFileSync(path);
    return key.length === KEY_BYTES ? key : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
