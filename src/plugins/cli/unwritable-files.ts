/** Owns: whether the gateway can write its files: where it cannot, it can note no failure either. */
import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { ERROR_CODES } from "../../agents/coordination/contracts/errors.ts";
import type { Check } from "./doctor-checks.ts";
import { isLedgerFile, resolveLedgerPath, resolvePathBeside } from "./ledger/open-ledger.ts";
import type { CliHost } from "./terminal/cli-host.ts";
import type { ReaderOptions } from "./terminal/run-command.ts";

/**
 * Returns which file of the gateway this user cannot write, as a sentence; `undefined` where there is none, and for a ledger that is
 * named: that is only to be read.
 */
export async function findUnwritable(host: CliHost, options: ReaderOptions): Promise<string | undefined> {
  if (options.ledger !== undefined) return undefined;
  const beside = await resolvePathBeside(host, options);
  const ledger = await resolveLedgerPath(host, options).catch(() => beside);
  // In place of `health.json` the gateway puts a new file, which needs the folder alone.
  return [dirname(beside), ...((await isLedgerFile(ledger)) ? [ledger] : [])]
    .map((path) => describeUnwritable(path))
    .find((sentence) => sentence !== undefined);
}

/** Returns the check; none where the files can be written. */
export function checkWritable(unwritable: string | undefined): Check[] {
  if (unwritable === undefined) return [];
  const { advice } = ERROR_CODES.LEDGER_UNAVAILABLE;
  return [{ name: "writable", status: "fail", message: unwritable, advice }];
}

/** Returns the path itself or the nearest folder above it that exists. */
export function findExisting(path: string): string {
  let nearest = path;
  while (!statSync(nearest, { throwIfNoEntry: false }) && dirname(nearest) !== nearest)
    nearest = dirname(nearest);
  return nearest;
}

function describeUnwritable(path: string): string | undefined {
  let nearest = path;
  try {
    nearest = findExisting(path);
    accessSync(nearest, constants.W_OK);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    return `${nearest} cannot be written (${code})`;
  }
}
