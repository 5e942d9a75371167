/**
 * Owns: telling other processes, such as the CLI, whether the gateway coordinates spawns, and by which configuration. The
 * file lies beside the ledger, because the ledger may be what is broken.
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

/** The gateway that wrote the file last. */
export interface WritingGateway {
  /** The name of its process. */
  readonly process: string;
  /** The name of the boot of its machine; absent where the system does not tell. */
  readonly boot?: string;
  /** The hash of the configuration by which it coordinates; absent once it coordinates no more. */
  readonly configSha256?: string;
}

/**
 * Creates the sink that writes the gateway's health to a file, in place of what was there. `describeGateway` is asked
 * at each write; absent: the file says nothing of the gateway.
 */
export function createHealthFile(
  path: string,
  describeGateway?: () => WritingGateway | undefined,
): HealthSink {
  return {
    write: (health) => {
      const text = `${JSON.stringify({ ...health, gateway: describeGateway?.() })}\n`.padEnd(BYTES);
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

/** Reads the health that a gateway wrote to the file last; `undefined` when there is nothing readable. */
export function readHealth(path: string): Health | undefined {
  const { gateway: _, ...health } = readHealthFile(path) ?? {};
  return isHealth(health) ? health : undefined;
}

/** Reads which gateway wrote the health file last; `undefined` where it cannot be read or does not say that. */
export function readWritingGateway(path: string): WritingGateway | undefined {
  const gateway = readHealthFile(path)?.gateway;
  return isWritingGateway(gateway) ? gateway : undefined;
}

function readHealthFile(path: string): { readonly gateway?: unknown } | undefined {
  try {
    if (findFileFault(path) !== undefined) return undefined;
    const content: unknown = JSON.parse(readFileSync(path, "utf8"));
    return typeof content === "object" && content !== null ? content : undefined;
  } catch {
    return undefined;
  }
}

function isHealth(value: object): value is Health {
  return "state" in value && "uncoordinatedSpawns" in value;
}

function isWritingGateway(value: unknown): value is WritingGateway {
  if (typeof value !== "object" || value === null) return false;
  const { process, boot }: { readonly process?: unknown; readonly boot?: unknown } = value;
  return typeof process === "string" && (boot === undefined || typeof boot === "string");
}
