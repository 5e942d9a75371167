/** Owns: removing runs from a ledger file, and the traces that they leave (docs/adr/0030). N1 and N2 are the port's. */
import { setImmediate as othersTurn } from "node:timers/promises";
import type { Database } from "better-sqlite3";
import type {
  LedgerPruning,
  PrunedCounts,
  PrunedRun,
  PrunedRuns,
  PruningBasis,
  RemovableRun,
  RemovedRuns,
} from "../../../agents/coordination/ports/run-store.ts";
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";
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
  type PageValues,
  type PrunableRow,
} from "../../ledger/prunable-runs.ts";
import { readSchemaVersion } from "./migrate.ts";
import { EXPECTED_LABELS_OF_RUN } from "./run-labels.ts";
import type { OpenLedger } from "./write-queue.ts";

/** The schema that has traces of removed runs. */
export const PRUNED_SINCE_VERSION = 10;

/**
 * Creates the reader of what a ledger file keeps of pruned runs: their counts, a run by its id, and the bindings of a
 * child's session. An older schema has none, which counts as zero.
 */
export function createPrunedRunTraces({ database, guarded }: OpenLedger): PrunedRuns {
  const hasTraces = (): boolean => readSchemaVersion(database) >= PRUNED_SINCE_VERSION;
  // Asked before every call of a session that is nobody's child.
  const prepareBindings = createOnceLoader(() =>
    database.prepare<[{ readonly session: string }], BindingRow>(LIST_BINDINGS),
  );
  return {
    counts: () =>
      guarded(() => (hasTraces() ? countPrunedRuns(database) : { runs: 0, events: 0, claims: 0 })),
    find: (runId) => guarded(() => (hasTraces() ? findPrunedRun(database, runId) : undefined)),
    listBindings: (session) =>
      guarded(() => (hasTraces() ? readBindings(prepareBindings().all({ session })) : [])),
  };
}

/** Returns how many runs have been pruned from the ledger, and how many events and claims went with them. */
export function countPrunedRuns(database: Database): PrunedCounts {
  const counts = database.prepare<[], PrunedCounts>(
    `select count(*) as runs, coalesce(sum(length), 0) as events, coalesce(sum(claims), 0) as claims
     from pruned_run`,
  );
  return counts.get() ?? { runs: 0, events: 0, claims: 0 };
}

function findPrunedRun(database: Database, runId: string): PrunedRun | undefined {
  const trace = database.prepare<[string], PrunedRun>(
    `select run_id as runId, kind, length as events, pruned_at_ms as prunedAtMs
     from pruned_run
     where run_id = ?`,
  );
  return trace.get(runId);
}

export interface PruningLedger extends OpenLedger {
  readonly now: () => number;
}

/**
 * Creates what prunes a ledger file: lists its runs page by page, each with whether it may be removed, and removes
 * runs.
 */
export function createLedgerPruning({ database, guarded, queued, now }: PruningLedger): LedgerPruning {
  const preparePage = createOnceLoader(() => {
    assertSchemaHasTraces(database);
    return database.prepare<[PageValues], PrunableRow>(PAGE);
  });
  const prepareRemoval = createOnceLoader(() => prepareRunRemoval(database));
  return {
    page: async (place) => {
      const page = await guarded(() =>
        preparePage().all(createPruningPageValues(place)).map(createPrunableRun),
      );
      await othersTurn();
      return page;
    },
    remove: async (runs, basis) => {
      const removed = await queued((queue) =>
        queue.run(() => {
          const { listNewer, remove } = prepareRemoval();
          return removeRuns(remove, leaveOutJoinedFamilies(runs, basis, listNewer(basis)), now());
        }),
      );
      await othersTurn();
      return removed;
    },
  };
}

/** @throws CoordinationError `INPUT_INVALID` for a ledger that is only read and has the schema of an older release */
function assertSchemaHasTraces(database: Database): void {
  if (readSchemaVersion(database) < PRUNED_SINCE_VERSION) throw createOlderSchemaError(database.name);
}

/** Removes the runs that are still as they were looked at, and counts them and their events. */
function removeRuns(remove: RunRemover, runs: readonly RemovableRun[], atMs: number): RemovedRuns {
  const removed = runs.filter((run) => remove(run, atMs));
  return { runs: removed.length, events: removed.reduce((sum, { length }) => sum + length, 0) };
}

/** SQLite gives the number of the newest run again once that is removed: so it stays until another one has begun. */
const PAGE = formatPrunableRunsQuery("run.run_key = (select max(run_key) from run)");

/** Returns whether the run was removed: not where it is another than the one that was looked at. */
type RunRemover = (run: RemovableRun, atMs: number) => boolean;

/** The statements that remove runs. */
interface RunRemoval {
  /** Lists the runs that began since. */
  readonly listNewer: (basis: PruningBasis) => readonly NewerRow[];
  readonly remove: RunRemover;
}

function prepareRunRemoval(database: Database): RunRemoval {
  const newer = database.prepare<[{ readonly newest: number }], NewerRow>(SELECT_NEWER_RUNS);
  return { listNewer: ({ newest }) => newer.all({ newest }), remove: prepareRemoveRun(database) };
}

/** Returns the function that removes one run, leaves its trace, and keeps its children bound. */
function prepareRemoveRun(database: Database): RunRemover {
  const leaveTrace = database.prepare<[object]>(
    `${LEAVE_TRACE}
     from run
     where run.run_key = @runKey
       and run.run_id = @runId
       and run.length = @length
       and run.ended = 1
       and run.arrived = 0
       and run.run_key <> (select max(run_key) from run)`,
  );
  const deletions = [
    `update content
     set kept = 0
     where sha256 in (select sha256 from content_use where run_key = @runKey)
       and not exists (select 1 from content_use where sha256 = content.sha256 and run_key <> @runKey)`,
    "delete from content_use where run_key = @runKey",
    `delete from run_label where (kind, value, started_at_ms, run_key, step_id) in (${EXPECTED_LABELS_OF_RUN})`,
    "delete from reference where run_key = @runKey",
    "delete from event where run_key = @runKey",
    "delete from run where run_key = @runKey",
  ].map((sql) => database.prepare<[{ readonly runKey: number }]>(sql));
  const bind = database.prepare<[object]>(
    `insert into run_label (kind, value, started_at_ms, run_key, step_id)
     values (@kind, @session, @atMs, @runKey, @stepId)`,
  );
  return ({ ordinal: runKey, runId, length, boundChildren = [] }, atMs) => {
    if (leaveTrace.run({ runKey, runId, length, atMs }).changes === 0) return false;
    for (const deletion of deletions) deletion.run({ runKey });
    for (const { session, stepId, binding } of boundChildren)
      bind.run({ kind: BINDING_LABELS[binding], session, atMs, runKey, stepId });
    return true;
  };
}
