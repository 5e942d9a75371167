/**
 * Owns: reading stored events in slices. A page of a log may hold megabytes, and a database and JSON stop the event loop: between
 * two slices others have their turn. A log only grows, so a page that is read in slices is as if it were read at once, or
 * a little later.
 */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import { giveWay } from "../../platform/give-way.ts";
import { valueOf, type EventRow } from "./event-row.ts";
import type { RowSlice, SliceBounds } from "./row-slice.ts";
import { readOrigin } from "./stored-origin.ts";

interface Range {
  readonly runId: string;
  readonly from: number;
  readonly limit: number;
}

export interface EventSlice extends RowSlice<EventRow> {
  /** As it is stored; asked for after the events: a run has its origin from the first of them on. */
  readonly origin: string | null | undefined;
}

/** Reads events from a place on, at most `limit`, within bounds. */
export type ReadSlice = (range: Range, bounds: SliceBounds) => Promise<EventSlice>;

const EVENTS_AT_ONCE_MAX = 250;
const CHARS_AT_ONCE_MAX = 262_144;
/** After so much text of events, others may have their turn. */
const CHARS_PER_TURN = 32_768;

/** The stored events, decoded. @throws `EVENT_UNREADABLE`, and what `decode` throws */
export async function readEvents<T>(
  readSlice: ReadSlice,
  { runId, from, limit }: Range,
  decode: (value: unknown) => T,
): Promise<T[]> {
  const events: T[] = [];
  for (;;) {
    const left = { runId, from: from + events.length, limit: limit - events.length };
    const bounds = { events: Math.min(left.limit, EVENTS_AT_ONCE_MAX), chars: CHARS_AT_ONCE_MAX };
    const slice = left.limit > 0 ? await readSlice(left, bounds) : NOTHING;
    const origin = slice.rows.length === 0 ? undefined : readOrigin(runId, slice.origin);
    let chars = 0;
    for (const row of slice.rows) {
      const value = readRow(runId, origin, row);
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
