/** Owns: the mark of a ledger that is a copy which has not been completed, and what is said of it. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";

/** The table that a ledger has from the first transaction of a copy until the last one. */
export const COPY_MARK = "ledger_copy";

/** Returns the refusal to open a half copy. `source`: as it may be shown. */
export function createHalfCopyError(place: string, source: string): CoordinationError {
  return new CoordinationError(
    "LEDGER_INCOMPLETE",
    `${place} is a copy of ${source} that has not been completed`,
  );
}
