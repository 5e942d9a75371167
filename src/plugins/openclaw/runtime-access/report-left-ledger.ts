/** Owns: telling the operator that coordinations stay open in the ledger which the gateway used before a reload. */
import { isOpenedIn } from "../../../agents/coordination/contracts/coordination-summary.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerLocation } from "../../compose.ts";
import { openLedgerForReading } from "../../ledger-reader.ts";
import { nameAmongGateways } from "../../ledger-setting.ts";
import { formatLedgerPlace } from "../../open-ledger-store.ts";
import type { SharedRuntime } from "./shared-runtime.ts";

/** Beyond that it is enough to know that there are many. */
const OPEN_MAX = 1_000;

/**
 * Logs an error where the replaced runtime left open coordinations in another ledger, which the ledger of the next
 * runtime does not have. Never throws.
 */
export async function reportLeftLedger(previous: SharedRuntime, next: SharedRuntime): Promise<void> {
  const open = await listOpenCoordinations(previous.ledger);
  const [newest] = open;
  if (newest === undefined || (await hasCoordination(next, newest))) return;
  const place = formatLedgerPlace(previous.ledger.place);
  next.logger.error(
    { open: open.length },
    `coordination.phase1.ledger.url was changed under a running gateway: ${formatCount(open.length, "open coordination")} left in ${place}, and nobody goes on with what is there. Set it back. To move a ledger, stop the gateway, copy the ledger by \`openclaw-coordination ledger copy\`, change the setting, and start the gateway.`,
  );
}

/**
 * Lists the coordinations of this gateway among the newest 1,000 running ones of a ledger, the newest first; none
 * where it cannot be read, as where it never was there.
 */
async function listOpenCoordinations(location: LedgerLocation): Promise<readonly CoordinationId[]> {
  try {
    const reader = await openLedgerForReading(location.place);
    try {
      const found = await reader.list({ status: "running", limit: OPEN_MAX });
      const here = { gateway: nameAmongGateways(location), movedFrom: await reader.readMovedFrom() };
      return found.filter(({ summary }) => isOpenedIn(summary, here)).map(({ runId }) => runId);
    } finally {
      await reader.close();
    }
  } catch {
    return [];
  }
}

/** True where the runtime's ledger has the coordination, because the old ledger was taken along. */
async function hasCoordination(runtime: SharedRuntime, runId: CoordinationId): Promise<boolean> {
  try {
    const { reads } = await runtime.coordinator();
    return (await reads.entry(runId)) !== undefined;
  } catch {
    return false;
  }
}
