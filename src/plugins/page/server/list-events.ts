/** Owns: a part of a log, forwards or backwards. An event that is missing, changed or unreadable is shown as such, where it is. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import type { EventsPage, LoggedEvent, ReadableEvent } from "../contract/runs.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageRequest } from "./page-dependencies.ts";
import { readNumber, readText } from "./read-query.ts";

/** Reads of either kind of run; the events of both have the same envelope. */
interface Log {
  readonly damage: ReportedLedger["damage"];
  read(
    runId: CoordinationId,
    range: { readonly from: number; readonly limit: number },
  ): Promise<readonly ReadableEvent[]>;
}

interface Range {
  readonly from: number;
  /** None from here on. */
  readonly to: number;
  readonly limit: number;
  readonly type: string | undefined;
}

const READ_AT_ONCE = 250;

/** `undefined` for an id that the ledger does not know. @throws CoordinationError `INPUT_INVALID` for a query that is none */
export async function listEventsPage(
  reader: ReportedLedger,
  id: CoordinationId,
  request: PageRequest,
): Promise<EventsPage | undefined> {
  const coordination = await reader.entry(id);
  const entry = coordination ?? (await reader.workflows.entry(id));
  if (!entry) return undefined;
  const log: Log = coordination ? reader : reader.workflows;
  return readRange(log, id, readRangeOf(request, entry.length));
}

function readRangeOf(request: PageRequest, length: number): Range {
  const place = { min: 0, max: Number.MAX_SAFE_INTEGER };
  const limit =
    readNumber(request, "limit", { min: 1, max: PAGE_BOUNDS.eventsMax }) ?? PAGE_BOUNDS.eventsDefault;
  const after = readNumber(request, "after", place);
  const before = Math.min(readNumber(request, "before", place) ?? length, length);
  const isBackwards = after === undefined && request.query("before") !== undefined;
  const from = isBackwards ? Math.max(0, before - limit) : (after ?? -1) + 1;
  return { from, to: before, limit, type: readText(request, "type") };
}

async function readRange(
  log: Log,
  id: CoordinationId,
  { from, to, limit, type }: Range,
): Promise<EventsPage> {
  const events: LoggedEvent[] = [];
  let reached = from;
  let chars = 0;
  const isFull = (): boolean => events.length === limit || chars >= PAGE_BOUNDS.eventsCharsMax;
  while (reached < to && !isFull()) {
    for (const event of await readSome(log, id, {
      from: reached,
      limit: Math.min(READ_AT_ONCE, to - reached),
    })) {
      if (isFull()) break;
      reached = event.sequence + 1;
      if (!isWanted(event, type)) continue;
      events.push(event);
      chars += JSON.stringify(event).length;
    }
  }
  return { events, ...(reached < to && { next: reached - 1 }) };
}

/** Damage is shown whatever is asked for. */
function isWanted(event: LoggedEvent, type: string | undefined): boolean {
  return type === undefined || !("type" in event) || event.type === type;
}

type Slice = { readonly from: number; readonly limit: number };

/** Reads events of a log; where some cannot be read, one by one, with what is wrong in their place. */
async function readSome(log: Log, id: CoordinationId, slice: Slice): Promise<readonly LoggedEvent[]> {
  try {
    const events = await log.read(id, slice);
    const isWhole = events.length === slice.limit;
    return isWhole ? events : fillGaps(events, slice);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "EVENT_UNREADABLE") throw error;
    return readOneByOne(log, id, slice);
  }
}

async function readOneByOne(log: Log, id: CoordinationId, { from, limit }: Slice): Promise<LoggedEvent[]> {
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

function fillGaps(events: readonly ReadableEvent[], { from, limit }: Slice): LoggedEvent[] {
  const bySequence = new Map(events.map((event) => [event.sequence, event]));
  return Array.from({ length: limit }, (_, index) => {
    const sequence = from + index;
    return bySequence.get(sequence) ?? { sequence, damage: MISSING };
  });
}
