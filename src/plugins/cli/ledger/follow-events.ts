/** Owns: reading events as they are appended. */
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import type { LedgerFilter } from "./query-options.ts";
import { createInterruptibleWait, type InterruptibleWait } from "../terminal/waiting-line.ts";

const PAGE = 500;
const POLL_MS = 500;

/** The events that are followed, by filter and run. */
interface FollowedEvents {
  readonly filter: LedgerFilter;
  /** Absent: of all coordinations. */
  readonly runId: CoordinationId | undefined;
}

/**
 * Yields pages of the events that are appended from now on, or with `since` from that time on, by polling the ledger
 * until Ctrl-C; while the ledger is busy it tries again.
 */
export async function* followEvents(
  host: CliHost,
  reader: LedgerReader,
  { filter, runId }: FollowedEvents,
): AsyncGenerator<readonly RunEvent[]> {
  using waiting = (host.waiting ?? createInterruptibleWait)();
  const { since } = filter;
  let after = since === undefined ? await reader.newestPosition() : await reader.positionBefore(since);
  while (!waiting.isInterrupted()) {
    const query = { filter, limit: PAGE, after, ...(runId !== undefined && { runId }) };
    const page = await readUnlessBusy(waiting, () => reader.readAppended(query));
    if (page) {
      after = page.reached;
      if (page.items.length > 0) yield page.items;
      if (page.items.length === PAGE) continue;
    }
    await waiting.pause(POLL_MS);
  }
}

/**
 * Returns what `read` returns; `undefined` where the ledger is busy, such as while it is brought to a newer schema.
 * Once the wait is interrupted, it throws for that, too.
 */
async function readUnlessBusy<T>(waiting: InterruptibleWait, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isCoordinationError(error) && error.code === "LEDGER_BUSY" && !waiting.isInterrupted())
      return undefined;
    throw error;
  }
}
