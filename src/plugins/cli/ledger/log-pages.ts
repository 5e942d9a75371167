/** Owns: walking over the events of one coordination. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type { LedgerReader } from "../../compose.ts";

const PAGE = 1_000;

/**
 * Reads a log from a sequence number on, in pages that are not empty. @throws CoordinationError as
 * `LedgerStore.read`
 */
export async function* logPages(
  reader: Pick<LedgerReader, "read">,
  coordinationId: CoordinationId,
  from = 0,
): AsyncGenerator<RunEvent[]> {
  for (let next = from; ; next += PAGE) {
    const page = await reader.read(coordinationId, { from: next, limit: PAGE });
    if (page.length > 0) yield page;
    if (page.length < PAGE) return;
  }
}
