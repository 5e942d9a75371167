/**
 * Owns: what the queries for coordinations and for events have in common: the labels that a filter asks for, the conditions on
 * them, and in what the databases differ.
 */
import type { WantedLabel } from "./wanted-labels.ts";

/** An SQL query with the values of its parameters. */
export interface SqlQuery {
  readonly sql: string;
  readonly values: Readonly<Record<string, string | number>>;
}

/** How a database is told which way to take. */
export interface QueryDialect {
  /** SQL. */
  readonly isCoordination: string;
  /** The listing of open runs has an index of its own. */
  readonly hasKinds: boolean;
  /** A join whose left side is read first. */
  readonly join: "join" | "cross join";
  /** Names the index to go by. */
  readonly formatIndex: (index: string) => string;
  /** Says to go by the primary key. */
  readonly notIndexed: string;
  /** Makes a query work where labels are not stored. */
  readonly withLabels: (sql: string) => string;
}

/** A ledger that is queried. */
export interface QuerySource {
  dialect(): Promise<QueryDialect>;
  all<Row>(query: SqlQuery): Promise<Row[]>;
}

/**
 * Returns the kinds and values of labels under the names by which the SQL refers to them: `kind0` and `value0` for the
 * first.
 */
export function createLabelValues(labels: readonly WantedLabel[]): SqlQuery["values"] {
  return Object.fromEntries(
    labels.flatMap(({ kind, value }, index) => [
      [`kind${index}`, kind],
      [`value${index}`, value],
    ]),
  );
}

interface LabelledPlace {
  /** SQL. */
  readonly runKey: string;
  /** SQL: when the run was opened. */
  readonly startedAtMs: string;
  /** SQL of a step; absent: any step of the run counts. */
  readonly stepId?: string;
}

/**
 * Returns one SQL condition for each label: that the coordination, or its step, has it too. The labels' bound values
 * are numbered from `first` on.
 */
export function formatLabelConditions(
  labels: readonly WantedLabel[],
  { runKey, startedAtMs, stepId }: LabelledPlace,
  first = 0,
): string[] {
  return labels.map(
    (_, index) => `exists (
      select 1
      from run_label as other
      where other.kind = @kind${first + index}
        and other.value = @value${first + index}
        and other.started_at_ms = ${startedAtMs}
        and other.run_key = ${runKey}
        ${stepId === undefined ? "" : `and other.step_id in ('', ${stepId})`}
    )`,
  );
}

/**
 * Returns the SQL expression for the time of a run's first event, in epoch milliseconds. `runKey`: the SQL of the
 * run's key.
 */
export function formatStartTime(runKey: string): string {
  return `(
    select opening.timestamp_ms
    from event as opening
    where opening.run_key = ${runKey} and opening.sequence = 0
  )`;
}

/** Returns SQL conditions joined by `and`. */
export function joinConditions(conditions: readonly string[]): string {
  return conditions.join("\n  and ");
}
