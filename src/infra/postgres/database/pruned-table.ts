/** Owns: removing runs from a ledger on a server, and the traces that they leave (docs/adr/0030). N1 and N2 are the port's. */
import type { RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type {
  LedgerPruning,
  PrunedCounts,
  PrunedRun,
  PrunedRuns,
  PruningBasis,
  RemovableRun,
  RemovedRuns,
} from "../../../agents/coordination/ports/run-store.ts";
import { listEventLabels, type Label } from "../../ledger/event-labels.ts";
import {
  BINDING_LABELS,
  createOlderSchemaError,
  createPruningPageValues,
  createPrunableRun,
  LIST_BINDINGS,
  LEAVE_TRACE,
  leaveOutJoinedFamilies,
  readBindings,
  SELECT_NEWER_RUNS,
  formatPrunableRunsQuery,
  type BindingRow,
  type NewerRow,
  type PrunableRow,
} from "../../ledger/prunable-runs.ts";
import type { OpenLedger } from "./commit-queue.ts";
import { runTransaction, type SendQuery } from "./connect.ts";
import { clearKeptMarks } from "./delete-texts.ts";
import { lockLedger } from "./lock-ledger.ts";
import { hasMigration } from "./migrate-schema.ts";

/**
 * Creates the reader of what a PostgreSQL ledger keeps of pruned runs: their counts, a run by its id, and the bindings
 * of a child's session. An older schema has none, which counts as zero.
 */
export function createPrunedRunTraces({ database: { query }, guarded }: OpenLedger): PrunedRuns {
  return {
    counts: () =>
      guarded(async () =>
        (await hasPrunedTable(query)) ? countPrunedRuns(query) : { runs: 0, events: 0, claims: 0 },
      ),
    find: (runId) =>
      guarded(async () => ((await hasPrunedTable(query)) ? findPrunedRun(query, runId) : undefined)),
    listBindings: (session) =>
      guarded(async () => readBindings(await query<BindingRow>(LIST_BINDINGS, { session }))),
  };
}

/** The migration that brought traces of removed runs. */
const PRUNED_SINCE_MIGRATION = 5;

/** Returns whether the schema has traces of removed runs. */
function hasPrunedTable(query: SendQuery): Promise<boolean> {
  return hasMigration(query, PRUNED_SINCE_MIGRATION);
}

/**
 * Returns the beginning of a query that reads `pruned_run`: empty where the schema has that table, else an empty table
 * of that name.
 */
export async function formatPrunedTable(query: SendQuery): Promise<string> {
  return (await hasPrunedTable(query)) ? "" : WITHOUT_TRACES;
}

const WITHOUT_TRACES = `
  with pruned_run as (
    select
      null::bigint as run_key, null::text as run_id, null::bigint as length, null::bytea as head_hash,
      null::bigint as first_event, null::bigint as newest_event
    where false
  )`;

async function findPrunedRun(query: SendQuery, runId: string): Promise<PrunedRun | undefined> {
  const [run] = await query<PrunedRun>(
    `select run_id as "runId", kind, length as events, pruned_at_ms as "prunedAtMs"
     from pruned_run
     where run_id = @runId`,
    { runId },
  );
  return run;
}

/** Returns how many runs have been pruned from the ledger, and how many events and claims went with them. */
export async function countPrunedRuns(query: SendQuery): Promise<PrunedCounts> {
  const [counts] = await query<PrunedCounts>(
    `select
       count(*) as runs,
       coalesce(sum(length), 0)::bigint as events,
       coalesce(sum(claims), 0)::bigint as claims
     from pruned_run`,
  );
  return counts ?? { runs: 0, events: 0, claims: 0 };
}

export interface PruningLedger extends OpenLedger {
  readonly busyTimeoutMs: number;
  readonly now: () => number;
}

/**
 * Creates what prunes a PostgreSQL ledger: lists its runs page by page, each with whether it may be removed, and
 * removes runs.
 */
export function createLedgerPruning(ledger: PruningLedger): LedgerPruning {
  const { database, guarded, written } = ledger;
  return {
    page: (place) =>
      guarded(async () => {
        if (!(await hasPrunedTable(database.query))) throw createOlderSchemaError(database.name);
        const rows = await database.query<PrunableRow>(PAGE, { ...createPruningPageValues(place) });
        return rows.map(createPrunableRun);
      }),
    remove: (runs, basis) => written(() => removeRunsBehindLock(ledger, runs, basis)),
  };
}

const PAGE = formatPrunableRunsQuery("false");

/** Removes runs behind the lock of the ledger, as every append: so no run grows, and none begins, meanwhile. */
function removeRunsBehindLock(
  { database, busyTimeoutMs, now }: PruningLedger,
  runs: readonly RemovableRun[],
  basis: PruningBasis,
): Promise<RemovedRuns> {
  return runTransaction(database, async (query) => {
    await Promise.all(lockLedger(query, { busyTimeoutMs }));
    const newer = await query<NewerRow>(SELECT_NEWER_RUNS, { newest: basis.newest });
    return removeRuns(query, leaveOutJoinedFamilies(runs, basis, newer), now());
  });
}

/** Removes the runs that are still as they were looked at, and counts them and their events. */
async function removeRuns(
  query: SendQuery,
  runs: readonly RemovableRun[],
  atMs: number,
): Promise<RemovedRuns> {
  const traces = await query<{ run_key: number; length: number }>(LEAVE_TRACES, {
    runKeys: runs.map(({ ordinal }) => ordinal),
    runIds: runs.map(({ runId }) => runId),
    lengths: runs.map(({ length }) => length),
    atMs,
  });
  const runKeys = traces.map(({ run_key: runKey }) => runKey);
  await releaseTextsOfRuns(query, runKeys);
  await deleteLabels(query, runKeys);
  for (const table of ["reference", "event", "run"])
    await query(`delete from ${table} where run_key = any (@runKeys::bigint[])`, { runKeys });
  const removedKeys = new Set(runKeys);
  await keepChildrenBound(
    query,
    runs.filter(({ ordinal }) => removedKeys.has(ordinal)),
    atMs,
  );
  return { runs: traces.length, events: traces.reduce((sum, { length }) => sum + length, 0) };
}

/** Stores the labels by which the bound children of removed runs are found. */
async function keepChildrenBound(
  query: SendQuery,
  runs: readonly RemovableRun[],
  atMs: number,
): Promise<void> {
  const children = runs.flatMap(({ ordinal: runKey, boundChildren = [] }) =>
    boundChildren.map((child) => ({ runKey, child })),
  );
  if (children.length === 0) return;
  await query(
    `insert into run_label (kind, value, started_at_ms, run_key, step_id)
     select kind, value, cast(@atMs as bigint), run_key, step_id
     from unnest(@kinds::text[], @values::text[], @runKeys::bigint[], @stepIds::text[])
       as label (kind, value, run_key, step_id)`,
    {
      atMs,
      kinds: children.map(({ child }) => BINDING_LABELS[child.binding]),
      values: children.map(({ child }) => child.session),
      runKeys: children.map(({ runKey }) => runKey),
      stepIds: children.map(({ child }) => child.stepId),
    },
  );
}

/** One that is not as it was looked at leaves none, and stays. */
const LEAVE_TRACES = `
  ${LEAVE_TRACE}
  from run
  join unnest(@runKeys::bigint[], @runIds::text[], @lengths::bigint[]) as wanted (run_key, run_id, length)
    using (run_key, run_id, length)
  where run.ended = 1 and run.arrived = 0
  returning run_key, length`;

async function releaseTextsOfRuns(query: SendQuery, runKeys: readonly number[]): Promise<void> {
  const released = await query<{ sha256: string }>(
    "delete from content_use where run_key = any (@runKeys::bigint[]) returning sha256",
    { runKeys },
  );
  await clearKeptMarks(query, released);
}

interface LabelledRow {
  readonly run_key: number;
  readonly started_at_ms: number;
  readonly type: string;
  readonly node_id: string | null;
  readonly payload: string;
}

/** Deletes the labels of runs. They follow from the logs: so they are found without passing over those of others. */
async function deleteLabels(query: SendQuery, runKeys: readonly number[]): Promise<void> {
  const rows = await query<LabelledRow>(
    `select event.run_key, first.timestamp_ms as started_at_ms, event.type, event.node_id, event.payload
     from event
     join event as first on first.run_key = event.run_key and first.sequence = 0
     where event.run_key = any (@runKeys::bigint[])
       and event.type in ('coordination.created', 'step.admitted', 'step.dispatched', 'step.acknowledged')`,
    { runKeys },
  );
  const labels = rows.flatMap((row) => listLabelsOfRow(row).map((label) => ({ ...label, row })));
  await query(
    `delete from run_label
     using unnest(@kinds::text[], @values::text[], @startedAtMs::bigint[], @runKeys::bigint[], @stepIds::text[])
       as label (kind, value, started_at_ms, run_key, step_id)
     where run_label.kind = label.kind
       and run_label.value = label.value
       and run_label.started_at_ms = label.started_at_ms
       and run_label.run_key = label.run_key
       and run_label.step_id = label.step_id`,
    {
      kinds: labels.map(({ kind }) => kind),
      values: labels.map(({ value }) => value),
      startedAtMs: labels.map(({ row }) => row.started_at_ms),
      runKeys: labels.map(({ row }) => row.run_key),
      stepIds: labels.map(({ row }) => row.node_id ?? ""),
    },
  );
}

function listLabelsOfRow({ type, node_id: nodeId, payload }: LabelledRow): readonly Label[] {
  return listEventLabels({
    type,
    nodeId: nodeId ?? undefined,
    payload: JSON.parse(payload) as unknown,
  } as RunEvent);
}
