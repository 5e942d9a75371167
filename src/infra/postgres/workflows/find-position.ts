/** Owns: finding the place of an event among all events of the ledger. */
import { POSITION_NOW, SELECT_POSITION, type AsOf } from "../../ledger/position-sql.ts";
import type { SendQuery } from "../database/connect.ts";

/** `undefined` for a run that the ledger does not know: it says nothing about any time. */
export async function findPosition(query: SendQuery, asOf: AsOf | undefined): Promise<number | undefined> {
  if (!asOf) return POSITION_NOW;
  const { runId, sequence } = asOf;
  const [row] = await query<{ position: number | null }>(SELECT_POSITION, { runId, sequence });
  return row?.position ?? undefined;
}
