/**
 * Owns: what the queries for coordinations and for events have in common: the labels that a filter asks for, and the
 * conditions on them.
 *
 * Each query names the index that it goes by, so that it cannot be prepared where there is none. An older schema has no
 * labels: they are taken from the log, which takes as long as reading it.
 */
import type { WantedLabel } from "../../ledger/wanted-labels.ts";
import { EXPECTED_LABELS, LABELS_SINCE_VERSION } from "./run-labels.ts";
import { WORKFLOWS_SINCE_VERSION } from "./run-statements.ts";

export interface Query {
  readonly sql: string;
  readonly values: Readonly<Record<string, string | number>>;
}

/** The version of the schema that a query is for. */
export interface Schema {
  readonly version: number;
}

export function formatIsCoordination({ version }: Schema): string {
  return version >= WORKFLOWS_SINCE_VERSION ? "run.kind = 'coordination'" : "true";
}

export function formatIndex(index: string, { version }: Schema): string {
  return version >= LABELS_SINCE_VERSION ? `indexed by ${index}` : "";
}

export function withLabels(sql: string, { version }: Schema): string {
  return version >= LABELS_SINCE_VERSION
    ? sql
    : `with run_label as (select distinct * from (${EXPECTED_LABELS})) ${sql}`;
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
