/**
 * Owns: the SQLite implementation of `RunStore`, for runs of either kind. `RunRules` say where the kinds differ.
 * Invariants S1 to S4 are the port's.
 */
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { ListQuery, RunAppend, RunStore } from "../../agents/coordination/ports/run-store.ts";
import type { StorableEvent } from "../ledger/event-row.ts";
import { findEventDamage, type ReadHashed } from "../ledger/find-damage.ts";
import { findLogConflict, failDependentAppends } from "../ledger/log-conflict.ts";
import { findLostOwnership } from "../ledger/owner-fence.ts";
import { readEvents, type ReadSlice } from "../ledger/read-events.ts";
import { takeSlice } from "../ledger/row-slice.ts";
import {
  computePrefixEnd,
  createStoredRun,
  createUnprovenRun,
  type RunKind,
  type RunRow,
} from "../ledger/stored-run.ts";
import { growRun } from "./database/append-run.ts";
import { createPrunedRunTraces } from "./database/pruned-rows.ts";
import { createRunReads, type RunReads } from "./database/run-reads.ts";
import type { LogHead } from "./database/write-statements.ts";
import type { WriteGroup, OpenLedger } from "./database/write-queue.ts";

/** Holds what runs of one kind have of their own. */
export interface RunRules<Event, Summary, Append> {
  readonly kind: RunKind;
  /** @throws CoordinationError `EVENT_UNREADABLE` for what is no event of such a run. */
  readonly decode: (value: unknown) => Event;
  readonly hasEnded: (summary: Summary) => boolean;
  /** Checks an append by itself, before it is queued. @throws InvariantViolation */
  readonly check?: (request: Append) => void;
  /** Returns why an append cannot be made to the log that is there, with nothing written yet. */
  readonly findConflict: (request: Append, head: LogHead | undefined, group: WriteGroup) => Error | undefined;
  /** Writes what lies beside the log, after the events and in their transaction. */
  readonly writeBeside: (request: Append, runKey: number, group: WriteGroup) => void;
}

/** Events that are appended to a run, with its origin where it is a new fork. */
type StoredAppend<Event, Summary> = RunAppend<Event, Summary> & { readonly origin?: RunOrigin };

/**
 * Creates the store of runs of one kind in a ledger file, which appends to their logs and reads them. `rules`: what is
 * particular to the kind.
 */
export function createSqliteRunStore<
  Event extends StorableEvent,
  Summary,
  Append extends StoredAppend<Event, Summary>,
>(ledger: OpenLedger, rules: RunRules<Event, Summary, Append>): RunStore<Event, Summary, Append> {
  const { database, guarded, queued } = ledger;
  const { kind, decode, check } = rules;
  const reads = createRunReads(database, kind);
  const read = <T>(run: (prepared: RunReads) => T): Promise<T> => guarded(() => run(reads()));
  return {
    append: (request) =>
      queued((queue) => {
        check?.(request);
        return queue.submit((group) => writeAppend(request, group, rules));
      }),
    read: (runId, range) => readEvents(createSliceReader(read), { runId, ...range }, decode),
    damage: (runId, { before }) => findEventDamage(createHashedReader(read), { runId, before, decode }),
    entry: (runId) =>
      read(({ entry }) => {
        const row = entry.get(runId);
        return row && createStoredRun<Summary>(row, kind);
      }),
    pruned: createPrunedRunTraces(ledger),
    list: (query) =>
      read((prepared) => listRows(prepared, query).map((row) => createStoredRun<Summary>(row, kind))),
    listUnproven: (query) =>
      read((prepared) => listRows(prepared, query).map((row) => createUnprovenRun<Summary>(row, kind))),
    findUnproven: (runId) =>
      read(({ entry }) => {
        const row = entry.get(runId);
        return row && createUnprovenRun<Summary>(row, kind);
      }),
  };
}

/** Writes an append, or returns why nothing of it was written (S1). */
function writeAppend<Event extends StorableEvent, Summary, Append extends StoredAppend<Event, Summary>>(
  request: Append,
  group: WriteGroup,
  { kind, hasEnded, findConflict, writeBeside }: RunRules<Event, Summary, Append>,
): Error | undefined {
  const { runId, events, summary, origin, owner, basis } = request;
  if (events.length === 0) return undefined;
  const head = group.statements.head.get(runId, runId);
  const conflict =
    findLogConflict({ runId, kind, events, basis }, head) ??
    findLostOwnership(request, head) ??
    findConflict(request, head, group);
  if (conflict) return failDependentAppends(request, conflict);
  const growth = {
    runId,
    kind,
    events,
    hasEnded: hasEnded(summary),
    summary: JSON.stringify(summary),
    origin: origin && JSON.stringify(origin),
    ...(owner && { owner }),
  };
  writeBeside(request, growRun(growth, group.statements, head), group);
  return undefined;
}

/** Calls a function with the statements that read runs. */
type RunReadCall = <T>(run: (reads: RunReads) => T) => Promise<T>;

function createSliceReader(read: RunReadCall): ReadSlice {
  return ({ runId, from, limit }, bounds) =>
    read(({ events, origin }) => ({
      ...takeSlice(events.iterate(runId, from, limit), bounds),
      origin: origin?.get(runId),
    }));
}

function createHashedReader(read: RunReadCall): ReadHashed {
  return ({ runId, from, before }, bounds) =>
    read(({ head, hashedEvents }) => ({
      head: head.get(runId),
      rows: takeSlice(hashedEvents.iterate(runId, from, before), bounds).rows,
    }));
}

function listRows(reads: RunReads, { limit, status, idPrefix = "", order, after }: ListQuery): RunRow[] {
  const isOldestFirst = order === "oldest";
  return reads[isOldestFirst ? "oldest" : "newest"][status ?? "all"].all({
    limit,
    after: after?.ordinal ?? (isOldestFirst ? 0 : Number.MAX_SAFE_INTEGER),
    prefix: idPrefix,
    prefixEnd: computePrefixEnd(idPrefix),
  });
}
