/**
 * Owns: telling other processes, such as the CLI, whether the gateway coordinates spawns. The file lies beside the ledger,
 * because the ledger may be what is broken.
 */
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { findFileFault } from "../../platform/plain-file.ts";
import type { Health, HealthSink } from "../../agents/coordination/ports/health-sink.ts";

/** Every text is padded to this, so that a later one fits over an earlier one in place. */
const BYTES = 2_048;

export function createHealthFile(path: string): HealthSink {
  return {
    write: (health) => {
      const text = `${JSON.stringify(health)}\n`.padEnd(BYTES);
      try {
        replaceFile(path, text);
      } catch {
        overwriteFile(path, text);
      }
    },
  };
}

function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/**
 * Overwrites the file in place: a full disk has no room for a second file, but has room for other words in this one.
 */
function overwriteFile(path: string, text: string): void {
  try {
    const file = openSync(path, "r+");
    try {
      writeSync(file, text, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    // The log has said it already.
  }
}

/** Reads what the gateway reported last; `undefined` when there is nothing readable. */
export function readHealth(path: string): Health | undefined {
  try {
    if (findFileFault(path) !== undefined) return undefined;
    const health: unknown = JSON.parse(readFileSync(path, "utf8"));
    return isHealth(health) ? health : undefined;
  } catch {
    return undefined;
  }
}

function isHealth(value: unknown): value is Health {
  return typeof value === "object" && value !== null && "state" in value && "uncoordinatedSpawns" in value;
}
