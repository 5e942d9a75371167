/** Owns: the outcome of the last `verify`, in a file beside the ledger, because the ledger's reader writes nothing into it. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isPostgresUrl } from "../infra/ledger/ledger-place.ts";
import { findFileFault } from "../platform/plain-file.ts";
import { replaceWholeFile } from "../platform/whole-file.ts";
import type { LastVerification } from "./page/contract/health.ts";

/**
 * Writes the outcome of `verify` to a file beside the ledger, for `readVerificationBeside`. @throws an error of the
 * system, as where the folder is not writable
 */
export function recordVerification(ledgerPath: string, verification: LastVerification): void {
  replaceWholeFile(joinRecordPath(ledgerPath), `${JSON.stringify(verification)}\n`);
}

/**
 * Returns the outcome of the last `verify` from the file beside the ledger; `undefined` for a ledger on a server, and
 * where there is no record, or none that can be read.
 */
export function readVerificationBeside(ledgerPath: string): LastVerification | undefined {
  // Beside a ledger on a server there are no files.
  if (isPostgresUrl(ledgerPath)) return undefined;
  const path = joinRecordPath(ledgerPath);
  try {
    if (findFileFault(path) !== undefined) return undefined;
    const stored = JSON.parse(readFileSync(path, "utf8")) as Readonly<
      Record<keyof LastVerification, unknown>
    >;
    const { atMs, ok, problems, isCut, events } = stored;
    if (typeof ok !== "boolean" || !isCount(atMs) || !isCount(problems) || !isCount(events)) return undefined;
    return { atMs, ok, problems, ...(isCut === true && { isCut }), events };
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const joinRecordPath = (ledgerPath: string): string => join(dirname(ledgerPath), "verified.json");
