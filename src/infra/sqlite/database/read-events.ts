import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../../agents/coordination/contracts/workflows/run-origin.ts";
import { valueOf, type EventRow } from "./event-row.ts";
import type { EventsStatement, OriginStatement } from "./run-statements.ts";
import { readableOrigin } from "./stored-origin.ts";

interface LogReads {
  readonly events: EventsStatement;
  /** Absent: no run of this kind has an origin. */
  readonly origin?: OriginStatement | undefined;
}

/** The stored events as values; the caller decodes them. @throws `EVENT_UNREADABLE` */
export function readEvents(
  { events, origin }: LogReads,
  { runId, from, limit }: { readonly runId: string; readonly from: number; readonly limit: number },
): unknown[] {
  const rows = events.all(runId, from, limit);
  // Asked for after the events: a run has its origin from the first of them on.
  const found = rows.length === 0 ? undefined : readableOrigin(runId, origin?.get(runId));
  return rows.map((row) => readable(runId, found, row));
}

function readable(runId: string, origin: RunOrigin | undefined, row: EventRow): unknown {
  try {
    return valueOf(runId, origin, row);
  } catch (cause) {
    throw new CoordinationError("EVENT_UNREADABLE", `${runId}:${row.sequence}: the payload is not JSON`, {
      cause,
    });
  }
}
