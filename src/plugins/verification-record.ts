/** Owns: where it is kept what `verify` came to last. */
import { dirname, join } from "node:path";
import {
  readLastVerification,
  writeLastVerification,
  type LastVerification,
} from "../infra/health/last-verification.ts";

/** Records what `verify` came to, for `readVerificationBeside`. @throws an error of the system */
export function recordVerification(ledgerPath: string, verification: LastVerification): void {
  writeLastVerification(joinRecordPath(ledgerPath), verification);
}

/** Reads what `verify` came to last for the ledger at this path; `undefined` when nothing readable is known. */
export function readVerificationBeside(ledgerPath: string): LastVerification | undefined {
  return readLastVerification(joinRecordPath(ledgerPath));
}

function joinRecordPath(ledgerPath: string): string {
  return join(dirname(ledgerPath), "verified.json");
}
