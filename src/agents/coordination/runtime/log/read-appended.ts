/** Owns: reading what was appended to a ledger, past events that cannot be read. */
import { isCoordinationError } from "../../contracts/errors.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import type { EventArrival, LedgerQueries } from "../../ports/ledger-queries.ts";

interface AppendedSlice {
  readonly items: readonly RunEvent[];
  /** The position that was reached: it is read on from there. */
  readonly reached: number;
  /**
   * The arrival that was passed over, because it cannot be read, or is of a workflow run and the one behind it cannot.
   * Nothing else is in the slice then.
   */
  readonly skipped?: EventArrival;
}

/**
 * Returns the next events of coordinations in the order in which they were appended, at most `limit`; an event that
 * cannot be read comes alone, as `skipped`. There may be more where less were read: slices before such an event are
 * shorter. @throws CoordinationError as `LedgerQueries.readAppended`, but for `EVENT_UNREADABLE`
 */
export async function readAppendedPastDamage(
  ledger: Pick<LedgerQueries, "readAppended" | "readArrivals">,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<AppendedSlice> {
  for (let most = limit; ; most = Math.ceil(most / 2)) {
    try {
      return await ledger.readAppended({ filter: {}, limit: most, after });
    } catch (error) {
      if (!isCoordinationError(error) || error.code !== "EVENT_UNREADABLE") throw error;
      if (most > 1) continue;
      const { items, reached } = await ledger.readArrivals({ after, limit: 1 });
      const [skipped] = items;
      return { items: [], reached, ...(skipped && { skipped }) };
    }
  }
}
