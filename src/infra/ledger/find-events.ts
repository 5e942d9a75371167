/**
 * Owns: finding events by what they are about. One of these leads, the first that is asked for: the cause, the
 * coordination, a rare label, the time, any label. Every event that is found so is looked at for the rest.
 */
import type { CoordinationId, EpochMs } from "../../agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import type {
  AppendedQuery,
  EventPlace,
  EventsQuery,
  LedgerQueries,
} from "../../agents/coordination/ports/ledger-queries.ts";
import type { EventRow } from "./event-row.ts";
import { isRareLabel, listWantedLabels, TIME_MAX, type WantedLabel } from "./wanted-labels.ts";
import {
  formatLabelConditions,
  formatStartTime,
  joinConditions,
  createLabelValues,
  type SqlQuery,
  type QueryDialect,
  type QuerySource,
} from "./query-sql.ts";
import { readStoredEvent } from "./read-events.ts";

type FoundRow = EventRow & { readonly event_key: number; readonly run_id: string };

const COLUMNS = `event.event_key, run.run_id, event.sequence, event.type, event.timestamp_ms, event.node_id,
  event.causation_id, event.payload`;

const BEGINNING: EventPlace = { startedAtMs: -1, ordinal: -1, stepId: "", position: -1 };

/** The filter of a query for events, and the run it is confined to. */
type EventSelection = Pick<EventsQuery, "filter" | "runId">;

/** How the events of a query are found. */
type SearchLead =
  { readonly kind: "cause" | "run" | "time" } | { readonly kind: "label"; readonly label: WantedLabel };

/** Chooses by what the events of a query are found: cause, coordination, time or a label. */
function chooseLead({ filter, runId }: EventSelection): SearchLead {
  if (filter.cause?.eventId !== undefined) return { kind: "cause" };
  if (runId !== undefined) return { kind: "run" };
  const [label] = listWantedLabels(filter);
  if (!label) return { kind: "time" };
  return isRareLabel(label) || filter.since === undefined ? { kind: "label", label } : { kind: "time" };
}

/**
 * Returns a page of the stored events that match a filter, decoded, and the place where the next page begins; no such
 * place where this page is not full.
 */
export async function findEvents(
  source: QuerySource,
  query: EventsQuery,
): Promise<Awaited<ReturnType<LedgerQueries["findEvents"]>>> {
  const dialect = await source.dialect();
  const lead = chooseLead(query);
  if (lead.kind === "label") return findLabelledEvents(source, query, { dialect, label: lead.label });
  const rows =
    lead.kind === "time"
      ? await readEventsByTime(source, query, dialect)
      : await source.all<FoundRow>(createRunOrCauseQuery(query, dialect));
  const items = rows.map(decodeRow);
  const last = rows.at(-1);
  if (!last || rows.length < query.limit) return { items };
  return { items, next: { ...BEGINNING, startedAtMs: last.timestamp_ms, position: last.event_key } };
}

/**
 * Reads a page of events in the order of time: first the rest of those at the time that the last page reached, then
 * later ones. SQLite cannot search an index by a column and the row's key at once.
 */
async function readEventsByTime(
  source: QuerySource,
  query: EventsQuery,
  dialect: QueryDialect,
): Promise<FoundRow[]> {
  const same = query.after ? await source.all<FoundRow>(createTimeQuery(query, dialect, "same")) : [];
  const limit = query.limit - same.length;
  if (limit === 0) return same;
  const later = await source.all<FoundRow>(createTimeQuery({ ...query, limit }, dialect, "later"));
  return [...same, ...later];
}

/**
 * Returns the SQL and values that find a page of events in the order of their times: with `same` those of the very
 * time that the last page reached, with `later` those of later times.
 */
export function createTimeQuery(query: EventsQuery, dialect: QueryDialect, part: "same" | "later"): SqlQuery {
  const { filter, after } = query;
  const reachedMs = after?.startedAtMs ?? (filter.since ?? 0) - 1;
  const isSame = part === "same";
  return createFilteredQuery(query, dialect, {
    from: `event ${dialect.formatIndex("event_by_time")}`,
    conditions: isSame
      ? ["event.timestamp_ms = @reachedMs", "event.event_key > @after"]
      : ["event.timestamp_ms > @reachedMs", "event.timestamp_ms < @until"],
    order: "event.timestamp_ms, event.event_key",
    values: isSame
      ? { reachedMs, after: after?.position ?? -1 }
      : { reachedMs, until: filter.until ?? TIME_MAX },
  });
}

/**
 * Returns the SQL and values that find a page of the events that one event caused, or where the filter names no such
 * event, of the events of one coordination.
 */
export function createRunOrCauseQuery(query: EventsQuery, dialect: QueryDialect): SqlQuery {
  const { filter } = query;
  const after = query.after ?? BEGINNING;
  const { kind } = chooseLead(query);
  const ofRun = [...IS_OF_RUN, ...IN_TIME];
  const values = { ...createTimeBounds(query), after: after.position };
  if (kind === "run")
    return createFilteredQuery(query, dialect, {
      from: "event",
      conditions: [...ofRun, IS_BEHIND],
      order: "event.sequence",
      values: { ...values, runId: query.runId ?? "" },
    });
  const { coordinationId = "", eventId = "" } = filter.cause ?? {};
  return createFilteredQuery(query, dialect, {
    from: `event ${dialect.formatIndex("event_by_cause")}`,
    conditions: [...ofRun, "event.causation_id = @cause", "event.event_key > @after"],
    order: "event.event_key",
    // A cause lies in the log of what it caused (L3): in another coordination there is none.
    values: { ...values, runId: coordinationId, cause: eventId, ...(query.runId && { runId: query.runId }) },
  });
}

const IS_OF_RUN = ["event.run_key = (select run_key from run where run_id = @runId)"];
const IN_TIME = ["event.timestamp_ms >= @since", "event.timestamp_ms < @until"];
/** Behind the event at a position, of the same run. */
const IS_BEHIND =
  "event.sequence > coalesce((select reached.sequence from event as reached where reached.event_key = @after), -1)";

function createTimeBounds({ filter }: EventSelection): SqlQuery["values"] {
  return { since: filter.since ?? 0, until: filter.until ?? TIME_MAX };
}

interface EventsSql {
  readonly from: string;
  readonly conditions: readonly string[];
  readonly order: string;
  readonly values: SqlQuery["values"];
  /** Absent: all that the filter asks for. */
  readonly labels?: readonly WantedLabel[];
}

/** Creates the query for events by conditions and by the labels that the filter asks for. */
function createFilteredQuery(
  { filter, limit }: Pick<EventsQuery, "filter" | "limit">,
  dialect: QueryDialect,
  { from, conditions, order, values, labels = listWantedLabels(filter) }: EventsSql,
): SqlQuery {
  const place = {
    runKey: "event.run_key",
    startedAtMs: formatStartTime("event.run_key"),
    stepId: "event.node_id",
  };
  const sql = `
    select ${COLUMNS}
    from ${from}
    ${dialect.join} run on run.run_key = event.run_key
    where ${joinConditions([...conditions, dialect.isCoordination, ...formatLabelConditions(labels, place)])}
    order by ${order}
    limit @limit`;
  return { sql: dialect.withLabels(sql), values: { ...createLabelValues(labels), ...values, limit } };
}

interface LabelRow {
  readonly started_at_ms: number;
  readonly run_key: number;
  readonly step_id: string;
}

/** A search for events by a label, and the dialect of its SQL. */
interface LabelSearch {
  readonly dialect: QueryDialect;
  readonly label: WantedLabel;
}

const LABELS_AT_ONCE = 100;
/** Behind the labels of the steps of a run. */
const STEP_MAX = "\u{10ffff}";

/** Finds a page of events place by place of the label that leads: a coordination, or one of its steps. */
async function findLabelledEvents(
  source: QuerySource,
  query: EventsQuery,
  { dialect, label }: LabelSearch,
): Promise<Awaited<ReturnType<LedgerQueries["findEvents"]>>> {
  const items: RunEvent[] = [];
  for await (const row of readLabelPlaces(source, { dialect, label, after: query.after })) {
    const place = { startedAtMs: row.started_at_ms, ordinal: row.run_key, stepId: row.step_id };
    const position = isSamePlace(query.after, place) ? query.after.position : -1;
    const limit = query.limit - items.length;
    const labelled = createLabelledEventsQuery({ ...query, limit }, dialect, { ...place, position });
    const rows = await source.all<FoundRow>(labelled);
    items.push(...rows.map(decodeRow));
    const last = rows.at(-1);
    if (last && items.length === query.limit) return { items, next: { ...place, position: last.event_key } };
  }
  return { items };
}

function isSamePlace(
  after: EventPlace | undefined,
  { startedAtMs, ordinal, stepId }: Omit<EventPlace, "position">,
): after is EventPlace {
  return after?.startedAtMs === startedAtMs && after.ordinal === ordinal && after.stepId === stepId;
}

/** Yields where a label is, the place that was reached included. A run that has it hides those of its steps. */
async function* readLabelPlaces(
  source: QuerySource,
  { dialect, label, after }: LabelSearch & { readonly after: EventPlace | undefined },
): AsyncGenerator<LabelRow> {
  const { sql } = createLabelPlacesQuery(dialect);
  const { startedAtMs, ordinal, stepId } = after ?? BEGINNING;
  let next = { startedAtMs, ordinal, stepId };
  for (;;) {
    const values = { ...label, ...next, limit: LABELS_AT_ONCE };
    const rows = await source.all<LabelRow>({ sql, values });
    let wholeRunKey = -1;
    for (const row of rows) {
      if (row.step_id === "") wholeRunKey = row.run_key;
      if (row.step_id === "" || row.run_key !== wholeRunKey) yield row;
    }
    const last = rows.at(-1);
    if (!last || rows.length < LABELS_AT_ONCE) return;
    const lastStep = last.run_key === wholeRunKey ? STEP_MAX : `${last.step_id}\0`;
    next = { startedAtMs: last.started_at_ms, ordinal: last.run_key, stepId: lastStep };
  }
}

/**
 * Returns the SQL that lists the coordinations and steps that have a label, in the order in which the coordinations
 * were opened; the caller binds the values.
 */
export function createLabelPlacesQuery(dialect: QueryDialect): Pick<SqlQuery, "sql"> {
  const sql = `
    select started_at_ms, run_key, step_id
    from run_label
    where kind = @kind
      and value = @value
      and (started_at_ms, run_key, step_id) >= (@startedAtMs, @ordinal, @stepId)
    order by started_at_ms, run_key, step_id
    limit @limit`;
  return { sql: dialect.withLabels(sql) };
}

/**
 * Returns the SQL and values that find a page of the events of one place that has a label: of a whole coordination, or
 * of one step where the place names it.
 */
export function createLabelledEventsQuery(
  query: EventsQuery,
  dialect: QueryDialect,
  place: EventPlace,
): SqlQuery {
  const { ordinal, stepId, position } = place;
  const isWhole = stepId === "";
  const ofStep = ["event.node_id = @stepId", "event.event_key > @after"];
  return createFilteredQuery(query, dialect, {
    from: isWhole ? "event" : `event ${dialect.formatIndex("event_by_step")}`,
    conditions: ["event.run_key = @runKey", ...(isWhole ? [IS_BEHIND] : ofStep), ...IN_TIME],
    order: isWhole ? "event.sequence" : "event.event_key",
    values: {
      ...createTimeBounds(query),
      runKey: ordinal,
      after: position,
      ...(!isWhole && { stepId }),
    },
    labels: listWantedLabels(query.filter).slice(1),
  });
}

/**
 * Returns at most `limit` matching events appended behind a position, decoded, in the order of appending, and the
 * position up to which the ledger has been read: never one before `after`, even where events were pruned.
 */
export async function readAppendedEvents(
  source: QuerySource,
  query: AppendedQuery,
): Promise<Awaited<ReturnType<LedgerQueries["readAppended"]>>> {
  const newest = await findNewestPosition(source);
  const rows = await source.all<FoundRow>(createAppendedQuery(query, await source.dialect(), newest));
  const last = rows.at(-1);
  const isCut = last !== undefined && rows.length === query.limit;
  return { items: rows.map(decodeRow), reached: isCut ? last.event_key : Math.max(newest, query.after) };
}

interface ArrivalRow {
  readonly event_key: number;
  readonly run_id: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp_ms: number;
}

/**
 * Returns run, sequence, type and time of at most `limit` of the events appended behind a position, without their
 * payloads, and the position up to which the ledger has been read.
 */
export async function readEventArrivals(
  source: QuerySource,
  { after, limit }: Parameters<LedgerQueries["readArrivals"]>[0],
): Promise<Awaited<ReturnType<LedgerQueries["readArrivals"]>>> {
  const newest = await findNewestPosition(source);
  const { notIndexed, join } = await source.dialect();
  const rows = await source.all<ArrivalRow>({
    sql: `select event.event_key, run.run_id, event.sequence, event.type, event.timestamp_ms
      from event ${notIndexed}
      ${join} run on run.run_key = event.run_key
      where event.event_key > @after and event.event_key <= @newest
      order by event.event_key
      limit @limit`,
    values: { after, newest, limit },
  });
  const items = rows.map(({ run_id: runId, sequence, type, timestamp_ms: atMs }) => ({
    runId: runId as CoordinationId,
    sequence,
    type,
    atMs: atMs as EpochMs,
  }));
  const last = rows.at(-1);
  const isCut = last !== undefined && rows.length === limit;
  return { items, reached: isCut ? last.event_key : Math.max(newest, after) };
}

/**
 * Returns the SQL and values that find a page of the events that match a filter and were appended behind a position,
 * up to `newest`.
 */
export function createAppendedQuery(query: AppendedQuery, dialect: QueryDialect, newest: number): SqlQuery {
  const { filter, runId, after } = query;
  const cause = filter.cause?.eventId;
  return createFilteredQuery(query, dialect, {
    from: `event ${dialect.notIndexed}`,
    conditions: [
      "event.event_key > @after and event.event_key <= @newest",
      ...IN_TIME,
      ...(runId === undefined ? [] : ["run.run_id = @runId"]),
      ...(cause === undefined ? [] : ["event.causation_id = @cause"]),
    ],
    order: "event.event_key",
    values: {
      ...createTimeBounds(query),
      after,
      newest,
      ...(runId !== undefined && { runId }),
      ...(cause !== undefined && { cause }),
    },
  });
}

/** Returns the number of the newest event in the ledger that has not been pruned; 0 without events. */
export async function findNewestPosition(source: QuerySource): Promise<number> {
  const sql = "select coalesce(max(event_key), 0) as newest from event";
  const [row] = await source.all<{ newest: number }>({ sql, values: {} });
  return row?.newest ?? 0;
}

/**
 * Returns the position before the first-appended of all events that bear a time of `since` or later, or the newest
 * position where there is no such event. All of them are looked at: clocks may go back, so the first in time need not
 * be the first that was appended.
 */
export async function findPositionBefore(source: QuerySource, since: number): Promise<number> {
  const index = (await source.dialect()).formatIndex("event_by_time");
  const sql = `select min(event_key) as first from event ${index} where timestamp_ms >= @since`;
  const [row] = await source.all<{ first: number | null }>({ sql, values: { since } });
  return row?.first ? row.first - 1 : findNewestPosition(source);
}

/** A coordination has no origin. @throws CoordinationError `EVENT_UNREADABLE` */
function decodeRow(row: FoundRow): RunEvent {
  return decodeEvent(readStoredEvent(row.run_id, undefined, row));
}
