/**
 * Owns: the labels by which coordinations and their steps are found (`000007_queries.sql`): which an event brings, and
 * which the whole log says there must be.
 */
import type { Database, Statement } from "better-sqlite3";
import { DELIVERY_STEP_ID } from "../../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import { listEventLabels } from "../../ledger/event-labels.ts";

/** The schema that has labels. */
export const LABELS_SINCE_VERSION = 7;

type LabelValues = [kind: string, value: string, startedAtMs: number, runKey: number, stepId: string];

export interface LabelWrites {
  readonly insert: Statement<LabelValues>;
  readonly isOfRun: Statement<[kind: string, value: string, startedAtMs: number, runKey: number], 1>;
}

/** Prepares the SQLite statements that write the labels of runs and steps. */
export function prepareLabelWrites(database: Database): LabelWrites {
  return {
    insert: database.prepare<LabelValues>(
      `insert into run_label (kind, value, started_at_ms, run_key, step_id)
       values (?, ?, ?, ?, ?)
       on conflict do nothing`,
    ),
    isOfRun: database
      .prepare<[string, string, number, number], 1>(
        `select 1
         from run_label
         where kind = ? and value = ? and started_at_ms = ? and run_key = ? and step_id = ''`,
      )
      .pluck(),
  };
}

/** Events of one run whose labels are to be stored. */
interface EventsToLabel {
  readonly events: readonly RunEvent[];
  readonly startedAtMs: number;
  readonly runKey: number;
}

/**
 * Inserts the labels that new events bring, for their coordination or step. A step gets no label that its coordination
 * has, except that of a child.
 */
export function writeLabels(
  { insert, isOfRun }: LabelWrites,
  { events, startedAtMs, runKey }: EventsToLabel,
): void {
  for (const event of events) {
    const stepId = event.nodeId ?? "";
    for (const { kind, value } of listEventLabels(event)) {
      // No coordination has a child's label.
      const isKnown =
        stepId !== "" && kind !== "child" && isOfRun.get(kind, value, startedAtMs, runKey) === 1;
      if (!isKnown) insert.run(kind, value, startedAtMs, runKey, stepId);
    }
  }
}

/** Selects every label that the log says there must be, some of them twice. */
export const EXPECTED_LABELS = formatExpectedLabelsQuery("true");

/** Selects those labels of the run `@runKey`. */
export const EXPECTED_LABELS_OF_RUN = formatExpectedLabelsQuery("event.run_key = @runKey");

/** Returns the SQL that selects the labels that the log says there must be, of the events that meet a condition. */
function formatExpectedLabelsQuery(condition: string): string {
  return `
  with
    label (type, kind, path, owner_path) as (
      values
        ('coordination.created', 'start', null, null),
        ('coordination.created', 'trace', '$.trace.traceId', null),
        ('coordination.created', 'session', '$.ownerSession', null),
        ('coordination.created', 'agent', '$.ownerAgent', null),
        ('coordination.created', 'cause', '$.trace.causalRef', null),
        ('coordination.created', 'cause', '$.parent.coordinationId', null),
        ('coordination.created', 'cause', '$.forkedFrom.coordinationId', null),
        ('step.admitted', 'session', '$.sourceSession', '$.ownerSession'),
        ('step.admitted', 'agent', '$.agentId', '$.ownerAgent'),
        ('step.dispatched', 'child', '$.targetSession', null),
        ('step.acknowledged', 'child', '$.childSessionKey', null)
    ),
    labelled as (
      select
        label.kind,
        iif(json_valid(event.payload), iif(label.kind = 'start', '', event.payload ->> label.path), null) as value,
        opening.timestamp_ms as started_at_ms,
        event.run_key,
        coalesce(event.node_id, '') as step_id,
        iif(json_valid(opening.payload), opening.payload ->> label.owner_path, null) as owner_value
      from event
      cross join label on label.type = event.type
      join event as opening on opening.run_key = event.run_key and opening.sequence = 0
      where event.type in ('coordination.created', 'step.admitted', 'step.dispatched', 'step.acknowledged')
        and event.node_id is not '${DELIVERY_STEP_ID}'
        and ${condition}
    )
  select kind, value, started_at_ms, run_key, step_id
  from labelled
  where value is not null and value is not owner_value`;
}
