/** Owns: going on where a damaged ledger has no answer, but not where the ledger cannot be used right now. */
import { isLedgerOutage } from "../../contracts/errors.ts";

/**
 * Returns `undefined` for an error of a reading, which then counts as no answer. @throws the error itself where the
 * ledger cannot be used right now
 */
export function ignoreDamage(error: unknown): undefined {
  if (isLedgerOutage(error)) throw error;
  return undefined;
}
