/**
 * Owns: reading stored events in slices. A page of a log may hold megabytes, and SQLite and JSON stop the event loop: between
 * two slices others have their turn. A log only grows, so a page that is read in slices is as if it were read at once, or
 * a little later.
 */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../../agents/coordination/contracts/workflows/run-origin.ts";
import { giveWay } from "../../../platform/give-way.ts";
import { valueOf, type EventRow } from "./event-row.ts";
import type { RunReads } from "./run-statements.ts";
import { readOrigin } from "./stored-origin.ts";

interface Range {
  readonly runId: string;
  readonly from: number;
  readonly limit: number;
}

/** Runs a read as a call of the ledger. */
type Read = <T>(run: (reads: RunReads) => T) => Promise<T>;

/** Of one slice: a few milliseconds of reading. */
const EVENTS_AT_ONCE_MAX = 250;
const CHARS_AT_ONCE_MAX = 262_144;
/** After so much text of events, others may have their turn. */
const CHARS_PER_TURN = 32_768;

/** The stored events, decoded. @throws `EVENT_UNREADABLE`, and what `decode` throws */
export async function readEvents<T>(
  read: Read,
  { runId, from, limit }: Range,
  decode: (value: unknown) => T,
): Promise<T[]> {
  const events: T[] = [];
  for (;;) {
    const left = { runId, from: from + events.length, limit: limit - events.length };
    const slice = await read((reads) => readSlice(reads, left));
    let chars = 0;
    for (const row of slice.rows) {
      const value = readRow(runId, slice.origin, row);
      chars += row.payload.length;
      if (chars >= CHARS_PER_TURN) {
        chars = 0;
        await giveWay();
      }
      events.push(decode(value));
    }
    if (slice.isLast) return events;
    await giveWay();
  }
}

interface Slice {
  readonly rows: readonly EventRow[];
  readonly origin: RunOrigin | undefined;
  /** Nothing more of the range is there. */
  readonly isLast: boolean;
}

function readSlice({ events, origin }: RunReads, { runId, from, limit }: Range): Slice {
  const rows: EventRow[] = [];
  let chars = 0;
  for (const row of events.iterate(runId, from, Math.min(limit, EVENTS_AT_ONCE_MAX))) {
    rows.push(row);
    chars += row.payload.length;
    if (chars >= CHARS_AT_ONCE_MAX) break;
  }
  const isCut = chars >= CHARS_AT_ONCE_MAX || rows.length === EVENTS_AT_ONCE_MAX;
  return {
    rows,
    // Asked for after the events: a run has its origin from the first of them on.
    origin: rows.length === 0 ? undefined : readOrigin(runId, origin?.get(runId)),
    isLast: !isCut || rows.length >= limit,
  };
}

/** @throws `EVENT_UNREADABLE` */
export function readRow(runId: string, origin: RunOrigin | undefined, row: EventRow): unknown {
  try {
    return valueOf(runId, origin, row);
  } catch (cause) {
    throw new CoordinationError("EVENT_UNREADABLE", `${runId}:${row.sequence}: the payload is not JSON`, {
      cause,
    });
  }
}
