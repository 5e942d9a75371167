/** Owns: the mark of a ledger that is a copy which has not been completed, and what is said of it. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";

/** The table that a ledger has from the first transaction of a copy until the last one. */
export const COPY_MARK = "ledger_copy";

/** Says what a half copy is a copy of. */
export interface CopyMark {
  /** The place of the source, as it may be shown. */
  readonly source: string;
  /** The hash of the source's first event; `null` while it had none. */
  readonly firstHash: Buffer | null;
  /** How many events the source had. */
  readonly events: number;
}

/**
 * Creates the `LEDGER_INCOMPLETE` error for opening a ledger that is an unfinished copy. `mark` says of which ledger;
 * the message names none where it is absent.
 */
export function createHalfCopyError(place: string, mark: CopyMark | undefined): CoordinationError {
  const source = mark?.source ?? "another ledger";
  return new CoordinationError(
    "LEDGER_INCOMPLETE",
    `${place} is a copy of ${source} that has not been completed`,
  );
}

/** Returns the refusal to write on to a half copy whose mark is gone. */
export function createCompletedCopyError(place: string): CoordinationError {
  return new CoordinationError(
    "LEDGER_CONFLICT",
    `${place} was completed by another process that copied to it`,
  );
}
