/**
 * Owns: reading stored events in slices. A page of a log may hold megabytes, and a database and JSON stop the event loop: between
 * two slices others have their turn. A log only grows, so a page that is read in slices is as if it were read at once, or
 * a little later.
 */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import { giveWay } from "../../platform/give-way.ts";
import { rebuildEvent, type EventRow } from "./event-row.ts";
import type { RowSlice, SliceBounds } from "./row-slice.ts";
import { readStoredOrigin } from "./stored-origin.ts";

/** A run, and the part of its events that is read. */
interface EventRange {
  readonly runId: string;
  readonly from: number;
  readonly limit: number;
}

export interface EventSlice extends RowSlice<EventRow> {
  /** As it is stored; asked for after the events: a run has its origin from the first of them on. */
  readonly origin: string | null | undefined;
}

/** Reads events from a place on, at most `limit`, within bounds. */
export type ReadSlice = (range: EventRange, bounds: SliceBounds) => Promise<EventSlice>;

const EVENTS_AT_ONCE_MAX = 250;
const CHARS_AT_ONCE_MAX = 262_144;
/** After so much text of events, others may have their turn. */
const CHARS_PER_TURN = 32_768;

/**
 * Reads up to `limit` of a run's stored events from a sequence on, slice by slice, gives way to other work in between,
 * and returns them decoded. @throws CoordinationError `EVENT_UNREADABLE`, and what `decode` throws
 */
export async function readEvents<T>(
  readSlice: ReadSlice,
  { runId, from, limit }: EventRange,
  decode: (value: unknown) => T,
): Promise<T[]> {
  const events: T[] = [];
  for (;;) {
    const remaining = { runId, from: from + events.length, limit: limit - events.length };
    const bounds = { events: Math.min(remaining.limit, EVENTS_AT_ONCE_MAX), chars: CHARS_AT_ONCE_MAX };
    const slice = remaining.limit > 0 ? await readSlice(remaining, bounds) : NOTHING;
    const origin = slice.rows.length === 0 ? undefined : readStoredOrigin(runId, slice.origin);
    let chars = 0;
    for (const row of slice.rows) {
      const value = readStoredEvent(runId, origin, row);
      chars += row.payload.length;
      if (chars >= CHARS_PER_TURN) {
        chars = 0;
        await giveWay();
      }
      events.push(decode(value));
    }
    if (!slice.isCut || events.length >= limit) return events;
    await giveWay();
  }
}

const NOTHING: EventSlice = { rows: [], isCut: false, origin: undefined };

/**
 * Returns the event that a row of the event table stores, not yet validated. @throws CoordinationError
 * `EVENT_UNREADABLE` where the payload is not JSON or the time is none
 */
export function readStoredEvent(runId: string, origin: RunOrigin | undefined, row: EventRow): unknown {
  try {
    return rebuildEvent(runId, origin, row);
  } catch (cause) {
    const reason = cause instanceof RangeError ? "the time is none" : "the payload is not JSON";
    throw new CoordinationError("EVENT_UNREADABLE", `${runId}:${row.sequence}: ${reason}`, { cause });
  }
}
