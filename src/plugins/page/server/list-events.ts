/** Owns: a part of a log, forwards or backwards. An event that is missing, changed or unreadable is shown as such, where it is. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import type { EventsPage, LoggedEvent, ReadableEvent } from "../contract/runs.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageRequest } from "./page-dependencies.ts";
import { readQueryNumber, readQueryText } from "./read-query.ts";

/** Reads of either kind of run; the events of both have the same envelope. */
interface ReadableLog {
  readonly damage: ReportedLedger["damage"];
  read(
    runId: CoordinationId,
    range: { readonly from: number; readonly limit: number },
  ): Promise<readonly ReadableEvent[]>;
}

/** The part of a log that a request asks for, and the type of its events. */
interface RequestedRange {
  readonly from: number;
  /** None from here on. */
  readonly to: number;
  readonly limit: number;
  readonly type: string | undefined;
}

const READ_AT_ONCE = 250;

/**
 * Returns one page of the events of a coordination or workflow run, forwards or backwards; `undefined` for an id that
 * the ledger does not know. @throws CoordinationError `INPUT_INVALID` for a query that is none
 */
export async function listEventsPage(
  reader: ReportedLedger,
  id: CoordinationId,
  request: PageRequest,
): Promise<EventsPage | undefined> {
  const coordination = await reader.entry(id);
  const entry = coordination ?? (await reader.workflows.entry(id));
  if (!entry) return undefined;
  const log: ReadableLog = coordination ? reader : reader.workflows;
  return collectEvents(log, id, readRequestedRange(request, entry.length));
}

function readRequestedRange(request: PageRequest, length: number): RequestedRange {
  const place = { min: 0, max: Number.MAX_SAFE_INTEGER };
  const limit =
    readQueryNumber(request, "limit", { min: 1, max: PAGE_BOUNDS.eventsMax }) ?? PAGE_BOUNDS.eventsDefault;
  const after = readQueryNumber(request, "after", place);
  const before = Math.min(readQueryNumber(request, "before", place) ?? length, length);
  const isBackwards = after === undefined && request.query("before") !== undefined;
  const from = isBackwards ? Math.max(0, before - limit) : (after ?? -1) + 1;
  return { from, to: before, limit, type: readQueryText(request, "type") };
}

/** Collects the wanted events of a range until the page is full; `next` tells where to go on. */
async function collectEvents(
  log: ReadableLog,
  id: CoordinationId,
  { from, to, limit, type }: RequestedRange,
): Promise<EventsPage> {
  const events: LoggedEvent[] = [];
  let reached = from;
  let chars = 0;
  const isFull = (): boolean => events.length === limit || chars >= PAGE_BOUNDS.eventsCharsMax;
  while (reached < to && !isFull()) {
    for (const event of await readSlice(log, id, {
      from: reached,
      limit: Math.min(READ_AT_ONCE, to - reached),
    })) {
      if (isFull()) break;
      reached = event.sequence + 1;
      if (!isOfTypeOrDamaged(event, type)) continue;
      events.push(event);
      chars += JSON.stringify(event).length;
    }
  }
  return { events, ...(reached < to && { next: reached - 1 }) };
}

/** True for an event of the type, where one is asked for, and for damage whatever is asked for. */
function isOfTypeOrDamaged(event: LoggedEvent, type: string | undefined): boolean {
  return type === undefined || !("type" in event) || event.type === type;
}

/** A part of a log, by its first event and the number of events. */
type LogSlice = { readonly from: number; readonly limit: number };

/** Reads events of a log; where some cannot be read, one by one, with what is wrong in their place. */
async function readSlice(
  log: ReadableLog,
  id: CoordinationId,
  slice: LogSlice,
): Promise<readonly LoggedEvent[]> {
  try {
    const events = await log.read(id, slice);
    const isWhole = events.length === slice.limit;
    return isWhole ? events : markMissingEvents(events, slice);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "EVENT_UNREADABLE") throw error;
    return readOneByOne(log, id, slice);
  }
}

/** Reads each event of a slice by itself, with what is wrong in the place of one that cannot be read. */
async function readOneByOne(
  log: ReadableLog,
  id: CoordinationId,
  { from, limit }: LogSlice,
): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for (let sequence = from; sequence < from + limit; sequence += 1) {
    try {
      const [event] = await log.read(id, { from: sequence, limit: 1 });
      events.push(event ?? { sequence, damage: MISSING });
    } catch (error) {
      if (!isCoordinationError(error) || error.code !== "EVENT_UNREADABLE") throw error;
      events.push({ sequence, damage: error.message });
    }
  }
  return events;
}

const MISSING = "this event is missing from the ledger; run `verify`";

/** Returns all of a slice, with a note of damage in the place of each missing event. */
function markMissingEvents(events: readonly ReadableEvent[], { from, limit }: LogSlice): LoggedEvent[] {
  const bySequence = new Map(events.map((event) => [event.sequence, event]));
  return Array.from({ length: limit }, (_, index) => {
    const sequence = from + index;
    return bySequence.get(sequence) ?? { sequence, damage: MISSING };
  });
}
