/**
 * Owns: the PostgreSQL implementation of `RunStore`, for runs of either kind. `RunRules` say where the kinds differ.
 * Invariants S1 to S4 are the port's.
 */
import { hash } from "node:crypto";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { ListQuery, RunAppend, RunStore } from "../../agents/coordination/ports/run-store.ts";
import { createEventRow, type StorableEvent } from "../ledger/event-row.ts";
import { findEventDamage } from "../ledger/find-damage.ts";
import { findLogConflict, failDependentAppends } from "../ledger/log-conflict.ts";
import { findLostOwnership } from "../ledger/owner-fence.ts";
import { readEvents } from "../ledger/read-events.ts";
import {
  computePrefixEnd,
  createStoredRun,
  createUnprovenRun,
  type RunKind,
  type RunRow,
} from "../ledger/stored-run.ts";
import { growRun, type GrownLog } from "./database/grow-log.ts";
import { createPrunedRunTraces } from "./database/pruned-table.ts";
import type { SendQuery } from "./database/connect.ts";
import {
  countChars,
  formatEventKey,
  type GroupState,
  type LogHead,
  type NeededRows,
  type GroupedWrite,
} from "./database/group.ts";
import { createHashedReader, createSliceReader, RUN_COLUMNS } from "./database/read-log-rows.ts";
import type { OpenLedger } from "./database/commit-queue.ts";

/** Holds what runs of one kind have of their own. */
export interface RunRules<Event, Summary, Append> {
  readonly kind: RunKind;
  /** @throws CoordinationError `EVENT_UNREADABLE` for what is no event of such a run. */
  readonly decode: (value: unknown) => Event;
  readonly hasEnded: (summary: Summary) => boolean;
  /** Checks an append by itself, before it is queued. @throws InvariantViolation */
  readonly check?: (request: Append) => void;
  /** Names what `findConflict` must know beside the log. */
  readonly want: (request: Append, wanted: NeededRows) => void;
  /** Returns why an append cannot be made to the log that is there, with nothing written yet. */
  readonly findConflict: (request: Append, head: LogHead | undefined, group: GroupState) => Error | undefined;
  /** Adds what lies beside the log, in the transaction of the events. */
  readonly writeBeside: (request: Append, grown: GrownLog, group: GroupState) => void;
}

/** Events that are appended to a run, with its origin where it is a new fork. */
type StoredAppend<Event, Summary> = RunAppend<Event, Summary> & { readonly origin?: RunOrigin };

/**
 * Creates the store of runs of one kind in a PostgreSQL ledger, which appends to their logs and reads them. `rules`:
 * what is particular to the kind.
 */
export function createPostgresRunStore<
  Event extends StorableEvent,
  Summary,
  Append extends StoredAppend<Event, Summary>,
>(ledger: OpenLedger, rules: RunRules<Event, Summary, Append>): RunStore<Event, Summary, Append> {
  const {
    database: { query },
    guarded,
    queued,
  } = ledger;
  const { kind, decode, check } = rules;
  const lostAppends: LostAppends = new Map();
  const readSlice = createSliceReader(query, kind);
  const readHashed = createHashedReader(query, kind);
  return {
    append: (request) =>
      queued(async (queue) => {
        check?.(request);
        if (request.events.length > 0) await queue.submit(createAppendWrite(request, rules, lostAppends));
      }),
    read: (runId, range) =>
      readEvents((slice, bounds) => guarded(() => readSlice(slice, bounds)), { runId, ...range }, decode),
    damage: (runId, { before }) =>
      findEventDamage((range, bounds) => guarded(() => readHashed(range, bounds)), { runId, before, decode }),
    entry: (runId) =>
      guarded(async () => {
        const row = await findRow(query, kind, runId);
        return row && createStoredRun<Summary>(row, kind);
      }),
    pruned: createPrunedRunTraces(ledger),
    list: (listing) =>
      guarded(async () =>
        (await listRows(query, kind, listing)).map((row) => createStoredRun<Summary>(row, kind)),
      ),
    listUnproven: (listing) =>
      guarded(async () =>
        (await listRows(query, kind, listing)).map((row) => createUnprovenRun<Summary>(row, kind)),
      ),
    findUnproven: (runId) =>
      guarded(async () => {
        const row = await findRow(query, kind, runId);
        return row && createUnprovenRun<Summary>(row, kind);
      }),
  };
}

/** Appends of which it is not known whether they were committed: by their place, what they would be found as. */
type LostAppends = Map<string, LostAppend>;

interface LostAppend {
  /** Over what is appended. */
  readonly digest: string;
  readonly sequence: number;
  readonly hash: Buffer;
}

/** Whoever tries again does so soon. */
const LOST_MAX = 1_000;

/** Creates the write of an append. After a commit whose answer was lost it finds its own events, and is done. */
function createAppendWrite<Event extends StorableEvent, Summary, Append extends StoredAppend<Event, Summary>>(
  request: Append,
  { kind, hasEnded, want, findConflict, writeBeside }: RunRules<Event, Summary, Append>,
  lostAppends: LostAppends,
): GroupedWrite {
  const { runId, events, summary, origin, owner, basis } = request;
  const place = formatEventKey({ runId, sequence: events[0]?.sequence ?? 0 });
  let newest: Buffer | undefined;
  const isCommitted = (group: GroupState): boolean => {
    const tried = lostAppends.get(place);
    if (tried?.digest !== hashEvents(events)) return false;
    return group.hashes.get(formatEventKey({ runId, sequence: tried.sequence }))?.equals(tried.hash) === true;
  };
  return {
    chars: countChars(request),
    want: (wanted) => {
      wanted.runIds.add(runId);
      want(request, wanted);
      const tried = lostAppends.get(place);
      if (tried) wanted.events.set(place, { runId, sequence: tried.sequence });
    },
    apply: (group) => {
      if (lostAppends.has(place) && isCommitted(group)) {
        lostAppends.delete(place);
        return undefined;
      }
      const head = group.heads.get(runId);
      const conflict =
        findLogConflict({ runId, kind, events, basis }, head) ??
        findLostOwnership(request, head) ??
        findConflict(request, head, group);
      if (conflict) return failDependentAppends(request, conflict);
      const texts = { summary: JSON.stringify(summary), origin: origin && JSON.stringify(origin) };
      const growth = { runId, kind, events, hasEnded: hasEnded(summary), ...texts, ...(owner && { owner }) };
      const grown = growRun(growth, head, group);
      newest = grown.newest;
      writeBeside(request, grown, group);
      return undefined;
    },
    lose: () => {
      if (!newest) return;
      const [oldest] = lostAppends.keys();
      if (lostAppends.size >= LOST_MAX && oldest !== undefined) lostAppends.delete(oldest);
      lostAppends.set(place, {
        digest: hashEvents(events),
        sequence: events.at(-1)?.sequence ?? 0,
        hash: newest,
      });
    },
    settle: () => {
      lostAppends.delete(place);
    },
  };
}

function hashEvents(events: readonly StorableEvent[]): string {
  return hash("sha256", JSON.stringify(events.map(createEventRow)));
}

async function findRow(query: SendQuery, kind: RunKind, runId: CoordinationId): Promise<RunRow | undefined> {
  const [row] = await query<RunRow>(
    `select ${RUN_COLUMNS[kind]} from run where run_id = @runId and kind = '${kind}'`,
    { runId },
  );
  return row;
}

const IS_OF_STATUS = { all: "true", running: "ended = 0", ended: "ended = 1" } as const;

async function listRows(
  query: SendQuery,
  kind: RunKind,
  { limit, status, idPrefix = "", order, after }: ListQuery,
): Promise<RunRow[]> {
  const isOldestFirst = order === "oldest";
  return query<RunRow>(
    `select ${RUN_COLUMNS[kind]}
     from run
     where kind = '${kind}'
       and ${IS_OF_STATUS[status ?? "all"]}
       and run_key ${isOldestFirst ? ">" : "<"} @after
       ${idPrefix === "" ? "" : "and run_id >= @prefix and run_id < @prefixEnd"}
     order by run_key ${isOldestFirst ? "" : "desc"}
     limit @limit`,
    {
      limit,
      after: after?.ordinal ?? (isOldestFirst ? 0 : Number.MAX_SAFE_INTEGER),
      ...(idPrefix !== "" && { prefix: idPrefix, prefixEnd: computePrefixEnd(idPrefix) }),
    },
  );
}
