import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { valueOf, type EventRow } from "./event-row.ts";
import type { EventsStatement } from "./run-statements.ts";

/** The stored events as values; the caller decodes them. @throws `EVENT_UNREADABLE` */
export function readEvents(
  statement: EventsStatement,
  { runId, from, limit }: { readonly runId: string; readonly from: number; readonly limit: number },
): unknown[] {
  return statement.all(runId, from, limit).map((row) => readable(runId, row));
}

function readable(runId: string, row: EventRow): unknown {
  try {
    return valueOf(runId, row);
  } catch (cause) {
    throw new CoordinationError("EVENT_UNREADABLE", `${runId}:${row.sequence}: the payload is not JSON`, {
      cause,
    });
  }
}
