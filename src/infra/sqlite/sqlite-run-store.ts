/**
 * Owns: the SQLite implementation of `RunStore`, for runs of either kind. `RunRules` say where the kinds differ.
 * Invariants S1 to S4 are the port's.
 */
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { ListQuery, RunAppend, RunStore } from "../../agents/coordination/ports/run-store.ts";
import type { StorableEvent } from "../ledger/event-row.ts";
import { findDamage, type ReadHashed } from "../ledger/find-damage.ts";
import { findLogConflict, markBasis } from "../ledger/log-conflict.ts";
import { findLostOwner } from "../ledger/owner-fence.ts";
import { readEvents, type ReadSlice } from "../ledger/read-events.ts";
import { takeSlice } from "../ledger/row-slice.ts";
import { prefixEndOf, storedRunOf, unprovenRunOf, type RunKind, type RunRow } from "../ledger/stored-run.ts";
import { growRun } from "./database/append-run.ts";
import { createPrunedRuns } from "./database/pruned-rows.ts";
import { runReadsOf, type RunReads } from "./database/run-statements.ts";
import type { Head } from "./database/statements.ts";
import type { Group, OpenLedger } from "./database/write-queue.ts";

/** Holds what runs of one kind have of their own. */
export interface RunRules<Event, Summary, Append> {
  readonly kind: RunKind;
  /** @throws CoordinationError `EVENT_UNREADABLE` for what is no event of such a run. */
  readonly decode: (value: unknown) => Event;
  readonly hasEnded: (summary: Summary) => boolean;
  /** Checks an append by itself, before it is queued. @throws InvariantViolation */
  readonly check?: (request: Append) => void;
  /** Returns why an append cannot be made to the log that is there, with nothing written yet. */
  readonly findConflict: (request: Append, head: Head | undefined, group: Group) => Error | undefined;
  /** Writes what lies beside the log, after the events and in their transaction. */
  readonly writeBeside: (request: Append, runKey: number, group: Group) => void;
}

type Appended<Event, Summary> = RunAppend<Event, Summary> & { readonly origin?: RunOrigin };

export function createSqliteRunStore<
  Event extends StorableEvent,
  Summary,
  Append extends Appended<Event, Summary>,
>(ledger: OpenLedger, rules: RunRules<Event, Summary, Append>): RunStore<Event, Summary, Append> {
  const { database, guarded, queued } = ledger;
  const { kind, decode, check } = rules;
  const reads = runReadsOf(database, kind);
  const read = <T>(run: (prepared: RunReads) => T): Promise<T> => guarded(() => run(reads()));
  return {
    append: (request) =>
      queued((queue) => {
        check?.(request);
        return queue.submit((group) => appendOne(request, group, rules));
      }),
    read: (runId, range) => readEvents(createReadSlice(read), { runId, ...range }, decode),
    damage: (runId, { before }) => findDamage(createReadHashed(read), { runId, before, decode }),
    entry: (runId) =>
      read(({ entry }) => {
        const row = entry.get(runId);
        return row && storedRunOf<Summary>(row, kind);
      }),
    pruned: createPrunedRuns(ledger),
    list: (query) =>
      read((prepared) => listRows(prepared, query).map((row) => storedRunOf<Summary>(row, kind))),
    listUnproven: (query) =>
      read((prepared) => listRows(prepared, query).map((row) => unprovenRunOf<Summary>(row, kind))),
    findUnproven: (runId) =>
      read(({ entry }) => {
        const row = entry.get(runId);
        return row && unprovenRunOf<Summary>(row, kind);
      }),
  };
}

/** S1: returns the conflict, before writing anything, when the run's log is not as the request expects. */
function appendOne<Event extends StorableEvent, Summary, Append extends Appended<Event, Summary>>(
  request: Append,
  group: Group,
  { kind, hasEnded, findConflict, writeBeside }: RunRules<Event, Summary, Append>,
): Error | undefined {
  const { runId, events, summary, origin, owner, basis } = request;
  if (events.length === 0) return undefined;
  const head = group.statements.head.get(runId, runId);
  const conflict =
    findLogConflict({ runId, kind, events, basis }, head) ??
    findLostOwner(request, head) ??
    findConflict(request, head, group);
  if (conflict) return markBasis(request, conflict);
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

type Read = <T>(run: (reads: RunReads) => T) => Promise<T>;

function createReadSlice(read: Read): ReadSlice {
  return ({ runId, from, limit }, bounds) =>
    read(({ events, origin }) => ({
      ...takeSlice(events.iterate(runId, from, limit), bounds),
      origin: origin?.get(runId),
    }));
}

function createReadHashed(read: Read): ReadHashed {
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
    prefixEnd: prefixEndOf(idPrefix),
  });
}
