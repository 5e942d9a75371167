/**
 * Owns: finding events by what they are about. One of these leads, the first that is asked for: the cause, the
 * coordination, a rare label, the time, any label. Every event that is found so is looked at for the rest.
 */
import type { Database } from "better-sqlite3";
import type { CoordinationId, EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type {
  AppendedQuery,
  EventPlace,
  EventsQuery,
  LedgerQueries,
} from "../../../agents/coordination/ports/ledger-queries.ts";
import type { EventRow } from "./event-row.ts";
import { readSchemaVersion } from "./migrate.ts";
import {
  formatIndex,
  formatIsCoordination,
  formatLabelConditions,
  formatStart,
  isRare,
  joinConditions,
  listWantedLabels,
  nameValues,
  TIME_MAX,
  withLabels,
  type Query,
  type Schema,
  type WantedLabel,
} from "./query-sql.ts";
import { readRow } from "./read-events.ts";

type FoundRow = EventRow & { readonly event_key: number; readonly run_id: string };

const COLUMNS = `event.event_key, run.run_id, event.sequence, event.type, event.timestamp_ms, event.node_id,
  event.causation_id, event.payload`;

const BEGINNING: EventPlace = { startedAtMs: -1, ordinal: -1, stepId: "", position: -1 };

type Filtered = Pick<EventsQuery, "filter" | "runId">;

/** How the events of a query are found. */
type Lead =
  { readonly kind: "cause" | "run" | "time" } | { readonly kind: "label"; readonly label: WantedLabel };

function chooseLead({ filter, runId }: Filtered): Lead {
  if (filter.cause?.eventId !== undefined) return { kind: "cause" };
  if (runId !== undefined) return { kind: "run" };
  const [label] = listWantedLabels(filter);
  if (!label) return { kind: "time" };
  return isRare(label) || filter.since === undefined ? { kind: "label", label } : { kind: "time" };
}

export function findEvents(
  database: Database,
  query: EventsQuery,
): Awaited<ReturnType<LedgerQueries["findEvents"]>> {
  const schema = { version: readSchemaVersion(database) };
  const lead = chooseLead(query);
  if (lead.kind === "label") return findLabelled(database, query, { schema, label: lead.label });
  const rows =
    lead.kind === "time"
      ? readByTime(database, query, schema)
      : allOf(database, createEventsQuery(query, schema));
  const items = rows.map(decodeRow);
  const last = rows.at(-1);
  if (!last || rows.length < query.limit) return { items };
  return { items, next: { ...BEGINNING, startedAtMs: last.timestamp_ms, position: last.event_key } };
}

/** SQLite does not go into an index by a column and the row's key at once: so a time is ended first, then later ones. */
function readByTime(database: Database, query: EventsQuery, schema: Schema): FoundRow[] {
  const same = query.after ? allOf(database, createTimeQuery(query, schema, "same")) : [];
  const limit = query.limit - same.length;
  if (limit === 0) return same;
  return [...same, ...allOf(database, createTimeQuery({ ...query, limit }, schema, "later"))];
}

/** The events of the time that was reached, or those of later times. */
export function createTimeQuery(query: EventsQuery, schema: Schema, part: "same" | "later"): Query {
  const { filter, after } = query;
  const reachedMs = after?.startedAtMs ?? (filter.since ?? 0) - 1;
  const isSame = part === "same";
  return createQuery(query, schema, {
    from: `event ${formatIndex("event_by_time", schema)}`,
    conditions: isSame
      ? ["event.timestamp_ms = @reachedMs", "event.event_key > @after"]
      : ["event.timestamp_ms > @reachedMs", "event.timestamp_ms < @until"],
    order: "event.timestamp_ms, event.event_key",
    values: isSame
      ? { reachedMs, after: after?.position ?? -1 }
      : { reachedMs, until: filter.until ?? TIME_MAX },
  });
}

/** The events of a query that a cause or a coordination leads. */
export function createEventsQuery(query: EventsQuery, schema: Schema): Query {
  const { filter } = query;
  const after = query.after ?? BEGINNING;
  const { kind } = chooseLead(query);
  const ofRun = [...IS_OF_RUN, ...IN_TIME];
  const values = { ...boundTime(query), after: after.position };
  if (kind === "run")
    return createQuery(query, schema, {
      from: "event",
      conditions: [...ofRun, IS_BEHIND],
      order: "event.sequence",
      values: { ...values, runId: query.runId ?? "" },
    });
  const { coordinationId = "", eventId = "" } = filter.cause ?? {};
  return createQuery(query, schema, {
    from: `event ${formatIndex("event_by_cause", schema)}`,
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

function boundTime({ filter }: Filtered): Query["values"] {
  return { since: filter.since ?? 0, until: filter.until ?? TIME_MAX };
}

interface EventsSql {
  readonly from: string;
  readonly conditions: readonly string[];
  readonly order: string;
  readonly values: Query["values"];
  /** Absent: all that the filter asks for. */
  readonly labels?: readonly WantedLabel[];
}

function createQuery(
  { filter, limit }: Pick<EventsQuery, "filter" | "limit">,
  schema: Schema,
  { from, conditions, order, values, labels = listWantedLabels(filter) }: EventsSql,
): Query {
  const place = {
    runKey: "event.run_key",
    startedAtMs: formatStart("event.run_key"),
    stepId: "event.node_id",
  };
  const sql = `
    select ${COLUMNS}
    from ${from}
    cross join run on run.run_key = event.run_key
    where ${joinConditions([
      ...conditions,
      formatIsCoordination(schema),
      ...formatLabelConditions(labels, place),
    ])}
    order by ${order}
    limit @limit`;
  return { sql: withLabels(sql, schema), values: { ...nameValues(labels), ...values, limit } };
}

interface LabelRow {
  readonly started_at_ms: number;
  readonly run_key: number;
  readonly step_id: string;
}

interface Labelled {
  readonly schema: Schema;
  readonly label: WantedLabel;
}

const LABELS_AT_ONCE = 100;
/** Behind the labels of the steps of a run. */
const STEP_MAX = "\u{10ffff}";

function findLabelled(
  database: Database,
  query: EventsQuery,
  { schema, label }: Labelled,
): Awaited<ReturnType<LedgerQueries["findEvents"]>> {
  const items: RunEvent[] = [];
  for (const row of listLabelRows(database, { schema, label, after: query.after })) {
    const place = { startedAtMs: row.started_at_ms, ordinal: row.run_key, stepId: row.step_id };
    const position = isSamePlace(query.after, place) ? query.after.position : -1;
    const limit = query.limit - items.length;
    const rows = allOf(database, createLabelledQuery({ ...query, limit }, schema, { ...place, position }));
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
function* listLabelRows(
  database: Database,
  { schema, label, after }: Labelled & { readonly after: EventPlace | undefined },
): Generator<LabelRow> {
  const { sql } = createLabelRowsQuery(schema);
  const statement = database.prepare<[Query["values"]], LabelRow>(sql);
  const { startedAtMs, ordinal, stepId } = after ?? BEGINNING;
  let next = { startedAtMs, ordinal, stepId };
  for (;;) {
    const rows = statement.all({ ...label, ...next, limit: LABELS_AT_ONCE });
    let whole = -1;
    for (const row of rows) {
      if (row.step_id === "") whole = row.run_key;
      if (row.step_id === "" || row.run_key !== whole) yield row;
    }
    const last = rows.at(-1);
    if (!last || rows.length < LABELS_AT_ONCE) return;
    const lastStep = last.run_key === whole ? STEP_MAX : `${last.step_id}\0`;
    next = { startedAtMs: last.started_at_ms, ordinal: last.run_key, stepId: lastStep };
  }
}

export function createLabelRowsQuery(schema: Schema): Pick<Query, "sql"> {
  const sql = `
    select started_at_ms, run_key, step_id
    from run_label
    where kind = @kind
      and value = @value
      and (started_at_ms, run_key, step_id) >= (@startedAtMs, @ordinal, @stepId)
    order by started_at_ms, run_key, step_id
    limit @limit`;
  return { sql: withLabels(sql, schema) };
}

/** The events of one place of the label that leads. */
export function createLabelledQuery(query: EventsQuery, schema: Schema, place: EventPlace): Query {
  const { ordinal, stepId, position } = place;
  const isWhole = stepId === "";
  const ofStep = ["event.node_id = @stepId", "event.event_key > @after"];
  return createQuery(query, schema, {
    from: isWhole ? "event" : `event ${formatIndex("event_by_step", schema)}`,
    conditions: ["event.run_key = @runKey", ...(isWhole ? [IS_BEHIND] : ofStep), ...IN_TIME],
    order: isWhole ? "event.sequence" : "event.event_key",
    values: {
      ...boundTime(query),
      runKey: ordinal,
      after: position,
      ...(!isWhole && { stepId }),
    },
    labels: listWantedLabels(query.filter).slice(1),
  });
}

export function readAppended(
  database: Database,
  query: AppendedQuery,
): Awaited<ReturnType<LedgerQueries["readAppended"]>> {
  const newest = findNewestPosition(database);
  const schema = { version: readSchemaVersion(database) };
  const rows = allOf(database, createAppendedQuery(query, schema, newest));
  const last = rows.at(-1);
  const isCut = last !== undefined && rows.length === query.limit;
  return { items: rows.map(decodeRow), reached: isCut ? last.event_key : newest };
}

interface ArrivalRow {
  readonly event_key: number;
  readonly run_id: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp_ms: number;
}

export function readArrivals(
  database: Database,
  { after, limit }: Parameters<LedgerQueries["readArrivals"]>[0],
): Awaited<ReturnType<LedgerQueries["readArrivals"]>> {
  const newest = findNewestPosition(database);
  const rows = database
    .prepare<[number, number, number], ArrivalRow>(
      `select event.event_key, run.run_id, event.sequence, event.type, event.timestamp_ms
       from event not indexed
       cross join run on run.run_key = event.run_key
       where event.event_key > ? and event.event_key <= ?
       order by event.event_key
       limit ?`,
    )
    .all(after, newest, limit);
  const items = rows.map(({ run_id: runId, sequence, type, timestamp_ms: atMs }) => ({
    runId: runId as CoordinationId,
    sequence,
    type,
    atMs: atMs as EpochMs,
  }));
  const last = rows.at(-1);
  return { items, reached: last !== undefined && rows.length === limit ? last.event_key : newest };
}

export function createAppendedQuery(query: AppendedQuery, schema: Schema, newest: number): Query {
  const { filter, runId, after } = query;
  const cause = filter.cause?.eventId;
  return createQuery(query, schema, {
    from: "event not indexed",
    conditions: [
      "event.event_key > @after and event.event_key <= @newest",
      ...IN_TIME,
      ...(runId === undefined ? [] : ["run.run_id = @runId"]),
      ...(cause === undefined ? [] : ["event.causation_id = @cause"]),
    ],
    order: "event.event_key",
    values: {
      ...boundTime(query),
      after,
      newest,
      ...(runId !== undefined && { runId }),
      ...(cause !== undefined && { cause }),
    },
  });
}

export function findNewestPosition(database: Database): number {
  return Number(database.prepare("select coalesce(max(event_key), 0) from event").pluck().get());
}

/** All of them are looked at: clocks may go back, so the first in time need not be the first that was appended. */
export function findPositionBefore(database: Database, since: number): number {
  const index = formatIndex("event_by_time", { version: readSchemaVersion(database) });
  const first = database
    .prepare<[number], number | null>(`select min(event_key) from event ${index} where timestamp_ms >= ?`)
    .pluck()
    .get(since);
  return first ? first - 1 : findNewestPosition(database);
}

function allOf(database: Database, { sql, values }: Query): FoundRow[] {
  return database.prepare<[Query["values"]], FoundRow>(sql).all(values);
}

/** A coordination has no origin. @throws CoordinationError `EVENT_UNREADABLE` */
function decodeRow(row: FoundRow): RunEvent {
  return decodeEvent(readRow(row.run_id, undefined, row));
}
