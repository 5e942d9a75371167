/** Owns: whether the gateway can write its files: where it cannot, it can note no failure either. */
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { ERROR_CODES } from "../../agents/coordination/contracts/errors.ts";
import type { DoctorCheck } from "./doctor-checks.ts";
import { isFileLedger, resolveLedgerPath, resolveSidecarPath } from "./ledger/open-ledger.ts";
import type { CliHost } from "./terminal/cli-host.ts";
import type { ReaderOptions } from "./terminal/run-command.ts";

/**
 * Returns a sentence about a file or folder of the gateway that this user cannot write; `undefined` where there is
 * none, and where a ledger is named, because that is only to be read.
 */
export async function findUnwritableFile(host: CliHost, options: ReaderOptions): Promise<string | undefined> {
  if (options.ledger !== undefined) return undefined;
  const beside = await resolveSidecarPath(host, options);
  const ledger = await resolveLedgerPath(host, options).catch(() => beside);
  // In place of `health.json` the gateway puts a new file, which needs the folder alone.
  return [dirname(beside), ...((await isFileLedger(ledger)) ? [ledger] : [])]
    .map((path) => describeUnwritable(path))
    .find((sentence) => sentence !== undefined);
}

/**
 * Returns the failed check of a file that this user cannot write, as a list; empty where there is none. `unwritable`:
 * the sentence about it.
 */
export function checkWritable(unwritable: string | undefined): DoctorCheck[] {
  if (unwritable === undefined) return [];
  const { advice } = ERROR_CODES.LEDGER_UNAVAILABLE;
  return [{ name: "writable", status: "fail", message: unwritable, advice }];
}

/** Returns a path itself where it exists, else the nearest folder above it that does. */
export function findNearestExistingPath(path: string): string {
  let nearest = path;
  while (!statSync(nearest, { throwIfNoEntry: false }) && dirname(nearest) !== nearest)
    nearest = dirname(nearest);
  return nearest;
}

/** Returns a sentence where the path, or what exists above it, cannot be written; `undefined` where it can. */
function describeUnwritable(path: string): string | undefined {
  let nearest = path;
  try {
    nearest = findNearestExistingPath(path);
    accessSync(nearest, constants.W_OK);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    return `${nearest} cannot be written (${code})`;
  }
}
