/**
 * Owns: what the queries for coordinations and for events have in common: the labels that a filter asks for, the conditions on
 * them, and in what the databases differ.
 */
import type { WantedLabel } from "./wanted-labels.ts";

export interface Query {
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
  all<Row>(query: Query): Promise<Row[]>;
}

/** Names the values of labels: `kind0` and `value0` of the first. */
export function nameValues(labels: readonly WantedLabel[]): Query["values"] {
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

/** Formats the condition that a place has each of the labels, which are numbered from `first` on. */
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

export function formatStart(runKey: string): string {
  return `(
    select opening.timestamp_ms
    from event as opening
    where opening.run_key = ${runKey} and opening.sequence = 0
  )`;
}

export function joinConditions(conditions: readonly string[]): string {
  return conditions.join("\n  and ");
}
