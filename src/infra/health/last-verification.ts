/** Owns: what `verify` came to last, in a file beside the ledger, because the ledger's reader writes nothing into it. */
import { readFileSync } from "node:fs";
import { findFileFault } from "../../platform/plain-file.ts";
import { replaceWholeFile } from "../../platform/whole-file.ts";

/** When `verify` ended, whether the ledger was sound, and how many problems it found in how many events. */
export interface LastVerification {
  readonly atMs: number;
  readonly ok: boolean;
  readonly problems: number;
  readonly events: number;
}

/** @throws an error of the system, as where the folder is not writable */
export function writeLastVerification(path: string, verification: LastVerification): void {
  replaceWholeFile(path, `${JSON.stringify(verification)}\n`);
}

/** Returns `undefined` where there is none, or none that can be read. */
export function readLastVerification(path: string): LastVerification | undefined {
  try {
    if (findFileFault(path) !== undefined) return undefined;
    const stored = JSON.parse(readFileSync(path, "utf8")) as Readonly<
      Record<keyof LastVerification, unknown>
    >;
    const { atMs, ok, problems, events } = stored;
    if (typeof ok !== "boolean" || !isCount(atMs) || !isCount(problems) || !isCount(events)) return undefined;
    return { atMs, ok, problems, events };
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
