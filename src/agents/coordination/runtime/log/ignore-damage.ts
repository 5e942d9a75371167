/** Owns: going on where a damaged ledger has no answer, but not where the ledger cannot be used right now. */
import { isLedgerOutage } from "../../contracts/errors.ts";

/** Turns what a reading throws into no answer. @throws the error of a ledger that cannot be used right now */
export function ignoreDamage(error: unknown): undefined {
  if (isLedgerOutage(error)) throw error;
  return undefined;
}
