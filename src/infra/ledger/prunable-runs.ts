/** Owns: how pruning reads the row of a run and what it leaves of one, whatever the ledger is kept in. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type {
  ChildBinding,
  PrunableRun,
  PruningBasis,
  PruningPlace,
  RemovableRun,
} from "../../agents/coordination/ports/run-store.ts";
import type { RunKind } from "./stored-run.ts";

export interface PrunableRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly kind: RunKind;
  readonly length: number;
  readonly state: PrunableRun["state"];
  /** JSON. */
  readonly summary: string;
  /** JSON; null for a run that is no fork. */
  readonly origin: string | null;
  /** JSON, of the run's first event. */
  readonly payload: string;
}

/**
 * Returns what a row says about removing a run: its state and the runs that have to go with it. A run whose relatives
 * cannot be read counts as used, so that it is kept and can be looked into.
 */
export function createPrunableRun(row: PrunableRow): PrunableRun {
  const { run_key: ordinal, run_id: runId, kind, length, state } = row;
  const relatives = listRelatives(row);
  const identity = { ordinal, runId, kind, length };
  return relatives
    ? { ...identity, state, relatives: relatives.filter((id) => id !== runId) }
    : { ...identity, state: "used", relatives: [] };
}

/** The paths to ids of other runs, by the kind of run. */
const PATHS: Readonly<
  Record<RunKind, readonly (readonly ["summary" | "origin" | "payload", ...string[]])[]>
> = {
  coordination: [
    ["payload", "parent", "coordinationId"],
    ["payload", "forkedFrom", "coordinationId"],
  ],
  workflow: [
    ["payload", "memoryHome"],
    ["summary", "parent", "runId"],
    ["summary", "root", "runId"],
    ["origin", "sourceRunId"],
  ],
};

/** Lists the ids of other runs that a run names, such as its parent; `undefined` for a row that cannot be read. */
function listRelatives(row: NewerRow): string[] | undefined {
  try {
    const documents = {
      summary: JSON.parse(row.summary) as unknown,
      origin: JSON.parse(row.origin ?? "null") as unknown,
      payload: JSON.parse(row.payload) as unknown,
    };
    return PATHS[row.kind].flatMap(([document, ...path]) => {
      const id = path.reduce<unknown>(
        (value, key) => (value as Readonly<Record<string, unknown>> | null | undefined)?.[key],
        documents[document],
      );
      return typeof id === "string" ? [id] : [];
    });
  } catch {
    return undefined;
  }
}

/** Creates the error of trying to prune a ledger that is only read and has a schema without traces of removed runs. */
export function createOlderSchemaError(name: string): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `${name} was last written by an older release, which knew no pruning; ` +
      "start the gateway of this release on it first, or prune without --dry-run",
  );
}

/** A run that an export has not reached stays for so much longer, while some process holds the export. */
const EXPORT_WAIT_MS = 30 * 86_400_000;

/**
 * Returns the SQL that lists a page of runs, newest first, with what keeps each from being removed. `isStaying`: an
 * SQL condition on a run that counts as recent however old it is.
 */
export function formatPrunableRunsQuery(isStaying: string): string {
  return `
    select
      run.run_key,
      run.run_id,
      run.kind,
      run.length,
      run.summary,
      run.origin,
      first.payload,
      case
        when run.ended = 0 or run.arrived = 1 then 'open'
        when newest.timestamp_ms >= @beforeMs or ${isStaying} then 'recent'
        when exists (select 1 from claim where claim.run_key = run.run_key)
          or exists (select 1 from event join memory_entry using (event_key) where event.run_key = run.run_key)
          or exists (select 1 from event join workspace_version using (event_key) where event.run_key = run.run_key)
          or newest.timestamp_ms >= @beforeMs - ${EXPORT_WAIT_MS}
            and exists (select 1 from export_cursor where holder not in ('', @silentExporter) and position < newest.event_key)
          then 'used'
        else 'prunable'
      end as state
    from run
    join event as first on first.run_key = run.run_key and first.sequence = 0
    join event as newest on newest.run_key = run.run_key and newest.sequence = run.length - 1
    where run.run_key < @before
    order by run.run_key desc
    limit @limit`;
}

/**
 * Returns the values to bind to the SQL of `formatPrunableRunsQuery`: where the page begins, how long it is, and the
 * time before which runs may go.
 */
export function createPruningPageValues({
  before,
  limit,
  beforeMs,
  silentExporter = "",
}: PruningPlace): PageValues {
  return { before, limit, beforeMs, silentExporter };
}

export interface PageValues {
  readonly before: number;
  readonly limit: number;
  readonly beforeMs: number;
  /** Empty: there is none. */
  readonly silentExporter: string;
}

/** The row of a run that began after the runs of a page were looked at. */
export type NewerRow = Omit<PrunableRow, "length" | "state">;

/** Selects the runs that began since. */
export const SELECT_NEWER_RUNS = `
  select run.run_key, run.run_id, run.kind, run.summary, run.origin, first.payload
  from run
  join event as first on first.run_key = run.run_key and first.sequence = 0
  where run.run_key > @newest`;

/** Returns the removable runs without those whose family has got a new run since the pruning was planned. */
export function leaveOutJoinedFamilies(
  runs: readonly RemovableRun[],
  { familyOf }: PruningBasis,
  newer: readonly NewerRow[],
): readonly RemovableRun[] {
  const joined = new Set(newer.flatMap((row) => listRelatives(row) ?? []).map((runId) => familyOf(runId)));
  return joined.size === 0 ? runs : runs.filter(({ runId }) => !joined.has(familyOf(runId)));
}

/** Begins the statement that leaves the traces of runs; which ones, its `from` says. */
export const LEAVE_TRACE = `
  insert into pruned_run (run_key, run_id, kind, length, head_hash, first_event, newest_event, claims, pruned_at_ms)
  select
    run.run_key,
    run.run_id,
    run.kind,
    run.length,
    run.head_hash,
    (select event_key from event where event.run_key = run.run_key and sequence = 0),
    (select event_key from event where event.run_key = run.run_key and sequence = run.length - 1),
    (select count(*) from event where event.run_key = run.run_key and type = 'claim.acquired'),
    cast(@atMs as bigint)`;

/**
 * The labels by which the bound children of removed runs are found. `started_at_ms` is the time of the pruning. No schema has to
 * change for them, and no listing goes by them.
 */
export const BINDING_LABELS = {
  privilege: "pruned_privilege",
  gate: "pruned_gate",
} as const satisfies Record<ChildBinding, string>;

/** Lists the labels of one bound child. */
export const LIST_BINDINGS = `
  select distinct kind
  from run_label
  where kind in ('${BINDING_LABELS.gate}', '${BINDING_LABELS.privilege}') and value = @session
  order by kind`;

export interface BindingRow {
  readonly kind: string;
}

/** Returns for each row how a child was bound to a run that has been removed: by a gate, or by its privileges. */
export function readBindings(rows: readonly BindingRow[]): readonly ChildBinding[] {
  return rows.map(({ kind }) => (kind === BINDING_LABELS.gate ? "gate" : "privilege"));
}
