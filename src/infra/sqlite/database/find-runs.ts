/**
 * Owns: finding coordinations by what they are about. The rarest label leads, and each coordination that has it is looked
 * at for the others. Those that run are few: where no label is rare, they lead.
 */
import type { Database } from "better-sqlite3";
import type { Summary } from "../../../agents/coordination/contracts/coordination-summary.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { LedgerQueries, RunsQuery } from "../../../agents/coordination/ports/ledger-queries.ts";
import { isRare, listWantedLabels, TIME_MAX, type WantedLabel } from "../../ledger/wanted-labels.ts";
import { readSchemaVersion } from "./migrate.ts";
import {
  formatIndex,
  formatIsCoordination,
  formatLabelConditions,
  formatStart,
  joinConditions,
  nameValues,
  withLabels,
  type Query,
  type Schema,
} from "./query-sql.ts";
import type { RunRow } from "../../ledger/stored-run.ts";
import { WORKFLOWS_SINCE_VERSION } from "./run-statements.ts";

type FoundRow = Omit<RunRow, "origin"> & { readonly started_at_ms: number };

export function findRuns(
  database: Database,
  query: RunsQuery,
): Awaited<ReturnType<LedgerQueries["findRuns"]>> {
  const { sql, values } = createRunsQuery(query, { version: readSchemaVersion(database) });
  const rows = database.prepare<[Query["values"]], FoundRow>(sql).all(values);
  const last = rows.at(-1);
  const items = rows.map((row) => ({
    runId: row.run_id as CoordinationId,
    ordinal: row.run_key,
    length: row.length,
    summary: JSON.parse(row.summary) as Summary,
  }));
  if (!last || rows.length < query.limit) return { items };
  return { items, next: { startedAtMs: last.started_at_ms, ordinal: last.run_key } };
}

/** The one that was opened last first. */
export function createRunsQuery(query: RunsQuery, schema: Schema): Query {
  const labels = listWantedLabels(query.filter);
  const [first = { kind: "start", value: "" } as const, ...others] = labels;
  const isByStatus =
    query.status === "running" && !isRare(first) && schema.version >= WORKFLOWS_SINCE_VERSION;
  return isByStatus
    ? createOpenRunsQuery(query, schema, labels)
    : createLabelQuery(query, schema, [first, ...others]);
}

function createLabelQuery(query: RunsQuery, schema: Schema, labels: readonly WantedLabel[]): Query {
  const { filter, status, after, limit } = query;
  const place = { runKey: "label.run_key", startedAtMs: "label.started_at_ms" };
  const conditions = [
    "label.kind = @kind0 and label.value = @value0",
    "label.started_at_ms >= @since",
    "(label.started_at_ms, label.run_key) < (@beforeMs, @beforeKey)",
    ...formatLabelConditions(labels.slice(1), place, 1),
    ...formatCause(query, schema, place),
  ];
  if (status) conditions.push(`run.ended = ${status === "ended" ? 1 : 0}`);
  const sql = `
    select found.started_at_ms, run.run_key, run.run_id, run.length, run.summary
    from (
      select distinct label.started_at_ms, label.run_key
      from run_label as label
      ${status ? "cross join run on run.run_key = label.run_key" : ""}
      where ${joinConditions(conditions)}
      order by label.started_at_ms desc, label.run_key desc
      limit @limit
    ) as found
    cross join run on run.run_key = found.run_key
    order by found.started_at_ms desc, found.run_key desc`;
  return {
    sql: withLabels(sql, schema),
    values: {
      ...nameValues(labels),
      ...nameCause(query),
      limit,
      since: filter.since ?? 0,
      beforeMs: after?.startedAtMs ?? filter.until ?? TIME_MAX,
      // No run has so small a key: all that were opened before the time alone.
      beforeKey: after?.ordinal ?? 0,
    },
  };
}

function createOpenRunsQuery(query: RunsQuery, schema: Schema, labels: readonly WantedLabel[]): Query {
  const { filter, after, limit } = query;
  const place = { runKey: "run.run_key", startedAtMs: formatStart("run.run_key") };
  const conditions = [
    `${formatIsCoordination(schema)} and run.ended = 0`,
    "run.run_key < @beforeKey",
    `${place.startedAtMs} >= @since`,
    `${place.startedAtMs} < @until`,
    ...formatLabelConditions(labels, place),
    ...formatCause(query, schema, place),
  ];
  const sql = `
    select ${place.startedAtMs} as started_at_ms, run.run_key, run.run_id, run.length, run.summary
    from run indexed by run_open
    where ${joinConditions(conditions)}
    order by run.run_key desc
    limit @limit`;
  return {
    sql: withLabels(sql, schema),
    values: {
      ...nameValues(labels),
      ...nameCause(query),
      limit,
      since: filter.since ?? 0,
      until: filter.until ?? TIME_MAX,
      beforeKey: after?.ordinal ?? TIME_MAX,
    },
  };
}

interface FoundPlace {
  readonly runKey: string;
  readonly startedAtMs: string;
}

function formatCause({ filter }: RunsQuery, schema: Schema, { runKey, startedAtMs }: FoundPlace): string[] {
  if (filter.cause?.eventId === undefined) return [];
  const causeRun = "(select run_key from run where run_id = @causeRun)";
  return [
    `${runKey} = ${causeRun}`,
    // So that a label is found by its whole key.
    `${startedAtMs} = ${formatStart(causeRun)}`,
    `exists (
      select 1
      from event ${formatIndex("event_by_cause", schema)}
      where event.run_key = ${runKey} and event.causation_id = @causeEvent
    )`,
  ];
}

function nameCause({ filter }: RunsQuery): Query["values"] {
  const { cause } = filter;
  if (cause?.eventId === undefined) return {};
  return { causeRun: cause.coordinationId, causeEvent: cause.eventId };
}
