/** Owns: finding the place of an event among all events of the ledger. */
import { POSITION_NOW, SELECT_POSITION, type AsOf } from "../../ledger/position-sql.ts";
import type { SendQuery } from "../database/connect.ts";

/**
 * Returns the ledger position as of which memory or a workspace is to be read: that of the event that `asOf` names, or
 * behind the run's last one where the run has no such event; behind everything without `asOf`. `undefined` for a run
 * that the ledger does not know, which says nothing about any time.
 */
export async function findPosition(query: SendQuery, asOf: AsOf | undefined): Promise<number | undefined> {
  if (!asOf) return POSITION_NOW;
  const { runId, sequence } = asOf;
  const [row] = await query<{ position: number | null }>(SELECT_POSITION, { runId, sequence });
  return row?.position ?? undefined;
}
