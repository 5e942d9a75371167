/**
 * Owns: finding coordinations by what they are about. The rarest label leads, and each coordination that has it is looked
 * at for the others. Those that run are few: where no label is rare, they lead.
 */
import type { Summary } from "../../agents/coordination/contracts/coordination-summary.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { LedgerQueries, RunsQuery } from "../../agents/coordination/ports/ledger-queries.ts";
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
import { parseRunSummary, type RunRow } from "./stored-run.ts";

type FoundRow = Omit<RunRow, "origin"> & { readonly started_at_ms: number };

/**
 * Returns a page of the coordinations that match a filter, last opened first, each with its summary, and the place
 * where the next page begins; no such place where this page is not full. Throws `LEDGER_CORRUPT` for a summary that
 * cannot be read.
 */
export async function findRuns(
  source: QuerySource,
  query: RunsQuery,
): Promise<Awaited<ReturnType<LedgerQueries["findRuns"]>>> {
  const rows = await source.all<FoundRow>(createRunsQuery(query, await source.dialect()));
  const last = rows.at(-1);
  const items = rows.map((row) => ({
    runId: row.run_id as CoordinationId,
    ordinal: row.run_key,
    length: row.length,
    summary: parseRunSummary(row, "coordination") as Summary,
  }));
  if (!last || rows.length < query.limit) return { items };
  return { items, next: { startedAtMs: last.started_at_ms, ordinal: last.run_key } };
}

/**
 * Returns the SQL and values that find a page of matching coordinations, last opened first. Goes over the open ones
 * where only those are asked for, no label is rare and they have an index; else over the rarest label.
 */
export function createRunsQuery(query: RunsQuery, dialect: QueryDialect): SqlQuery {
  const labels = listWantedLabels(query.filter);
  const [first = { kind: "start", value: "" } as const, ...others] = labels;
  const isByStatus = query.status === "running" && !isRareLabel(first) && dialect.hasKinds;
  return isByStatus
    ? createOpenRunsQuery(query, dialect, labels)
    : createLabelledRunsQuery(query, dialect, [first, ...others]);
}

function createLabelledRunsQuery(
  query: RunsQuery,
  dialect: QueryDialect,
  labels: readonly WantedLabel[],
): SqlQuery {
  const { filter, status, after, limit } = query;
  const place = { runKey: "label.run_key", startedAtMs: "label.started_at_ms" };
  const conditions = [
    "label.kind = @kind0 and label.value = @value0",
    "label.started_at_ms >= @since",
    "(label.started_at_ms, label.run_key) < (@beforeMs, @beforeKey)",
    ...formatLabelConditions(labels.slice(1), place, 1),
    ...formatCauseConditions(query, dialect, place),
  ];
  if (status) conditions.push(`run.ended = ${status === "ended" ? 1 : 0}`);
  const sql = `
    select found.started_at_ms, run.run_key, run.run_id, run.length, run.summary
    from (
      select distinct label.started_at_ms, label.run_key
      from run_label as label
      ${status ? `${dialect.join} run on run.run_key = label.run_key` : ""}
      where ${joinConditions(conditions)}
      order by label.started_at_ms desc, label.run_key desc
      limit @limit
    ) as found
    ${dialect.join} run on run.run_key = found.run_key
    order by found.started_at_ms desc, found.run_key desc`;
  return {
    sql: dialect.withLabels(sql),
    values: {
      ...createLabelValues(labels),
      ...createCauseValues(query),
      limit,
      since: filter.since ?? 0,
      beforeMs: after?.startedAtMs ?? filter.until ?? TIME_MAX,
      // No run has so small a key: all that were opened before the time alone.
      beforeKey: after?.ordinal ?? 0,
    },
  };
}

function createOpenRunsQuery(
  query: RunsQuery,
  dialect: QueryDialect,
  labels: readonly WantedLabel[],
): SqlQuery {
  const { filter, after, limit } = query;
  const place = { runKey: "run.run_key", startedAtMs: formatStartTime("run.run_key") };
  const conditions = [
    `${dialect.isCoordination} and run.ended = 0`,
    "run.run_key < @beforeKey",
    `${place.startedAtMs} >= @since`,
    `${place.startedAtMs} < @until`,
    ...formatLabelConditions(labels, place),
    ...formatCauseConditions(query, dialect, place),
  ];
  const sql = `
    select ${place.startedAtMs} as started_at_ms, run.run_key, run.run_id, run.length, run.summary
    from run ${dialect.formatIndex("run_open")}
    where ${joinConditions(conditions)}
    order by run.run_key desc
    limit @limit`;
  return {
    sql: dialect.withLabels(sql),
    values: {
      ...createLabelValues(labels),
      ...createCauseValues(query),
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

function formatCauseConditions(
  { filter }: RunsQuery,
  dialect: QueryDialect,
  { runKey, startedAtMs }: FoundPlace,
): string[] {
  if (filter.cause?.eventId === undefined) return [];
  const causeRun = "(select run_key from run where run_id = @causeRun)";
  return [
    `${runKey} = ${causeRun}`,
    // So that a label is found by its whole key.
    `${startedAtMs} = ${formatStartTime(causeRun)}`,
    `exists (
      select 1
      from event ${dialect.formatIndex("event_by_cause")}
      where event.run_key = ${runKey} and event.causation_id = @causeEvent
    )`,
  ];
}

function createCauseValues({ filter }: RunsQuery): SqlQuery["values"] {
  const { cause } = filter;
  if (cause?.eventId === undefined) return {};
  return { causeRun: cause.coordinationId, causeEvent: cause.eventId };
}
