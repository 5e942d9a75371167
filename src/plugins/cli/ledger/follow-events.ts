/** Owns: reading events as they are appended. */
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import type { LedgerFilter } from "./query-options.ts";
import { createWaiting, type Waiting } from "../terminal/waiting-line.ts";

const PAGE = 500;
const POLL_MS = 500;

interface Followed {
  readonly filter: LedgerFilter;
  /** Absent: of all coordinations. */
  readonly runId: CoordinationId | undefined;
}

/** Yields what is appended from now on, and first what is there since a time, until Ctrl-C. */
export async function* followEvents(
  host: CliHost,
  reader: LedgerReader,
  { filter, runId }: Followed,
): AsyncGenerator<readonly RunEvent[]> {
  using waiting = (host.waiting ?? createWaiting)();
  const { since } = filter;
  let after = since === undefined ? await reader.newestPosition() : await reader.positionBefore(since);
  while (!waiting.isInterrupted()) {
    const query = { filter, limit: PAGE, after, ...(runId !== undefined && { runId }) };
    const page = await readWhenFree(waiting, () => reader.readAppended(query));
    if (page) {
      after = page.reached;
      if (page.items.length > 0) yield page.items;
      if (page.items.length === PAGE) continue;
    }
    await waiting.pause(POLL_MS);
  }
}

/** While another process brings the ledger to a newer schema, there is nothing to read. */
async function readWhenFree<T>(waiting: Waiting, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isCoordinationError(error) && error.code === "LEDGER_BUSY" && !waiting.isInterrupted())
      return undefined;
    throw error;
  }
}
