/**
 * Owns: the SQLite implementation of `LedgerStore` and `ContentStore`. Invariants S1 to S5 are the port's.
 */
import { setImmediate as othersTurn } from "node:timers/promises";
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId, StepId } from "../../agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import type { Reference, Summary } from "../../agents/coordination/contracts/summary.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { ContentStore } from "../../agents/coordination/ports/content-store.ts";
import type {
  AppendRequest,
  Found,
  LedgerStore,
  ListQuery,
  RunEntry,
} from "../../agents/coordination/ports/ledger-store.ts";
import { claimConflict, claimReadsOf, listClaims, overlappingClaims, writeClaims } from "./claim-table.ts";
import { chainHash, GENESIS_HASH, rowOf, valueOf, type EventRow } from "./event-row.ts";
import { groupCommit } from "./group-commit.ts";
import { inspectDatabase } from "./inspect-database.ts";
import { openDatabase, type OpenOptions } from "./open-database.ts";
import { deleteTextsBefore } from "./retention.ts";
import { withLedgerErrors } from "./sqlite-errors.ts";
import {
  CONTENTS_PER_SELECT,
  EVENT_COLUMNS,
  prepareReads,
  prepareWrites,
  type EventValue,
  type Head,
  type Reads,
  type Writes,
} from "./statements.ts";

/** Appends committed in one transaction at most: bounds how long a commit blocks the thread. */
const GROUP_MAX = 256;

export type SqliteLedger = LedgerStore & ContentStore & { readonly path: string };

/** @throws CoordinationError as `openDatabase` does. */
export async function openSqliteLedger(
  options: OpenOptions & { readonly clock: Clock },
): Promise<SqliteLedger> {
  const { path, clock } = options;
  const database = await openDatabase(options);
  const statements = withLedgerErrors(path, () => prepareReads(database));
  const writes = withLedgerErrors(path, () => writesOf(database, options));
  const claimReads = claimReadsOf(database);
  const group = groupCommit(
    (requests: readonly AppendRequest[]) =>
      commitGroup(database, { statements: writes(), requests, clock, path }),
    { groupMax: GROUP_MAX },
  );
  let closing = false;
  const guarded = <T>(run: () => T): Promise<T> =>
    new Promise((resolve) => {
      if (closing) throw new CoordinationError("LEDGER_CLOSED", `${path} is closed`);
      resolve(withLedgerErrors(path, run));
    });
  return {
    path,
    append: async (request) => {
      if (closing) throw new CoordinationError("LEDGER_CLOSED", `${path} is closed`);
      await group.submit(request);
    },
    read: (runId, { from, limit }) => guarded(() => readEvents(statements, { runId, from, limit })),
    list: (query) => guarded(() => listRuns(statements, query)),
    find: (name) => guarded(() => findReference(statements, name)),
    holders: (name, limit) => guarded(() => holdersOf(statements, name, limit)),
    overlapping: (query) => guarded(() => overlappingClaims(claimReads(), query)),
    claims: (query) => guarded(() => listClaims(claimReads(), query)),
    references: (runId) => guarded(() => referencesOfRun(statements, runId)),
    inspect: () => guarded(() => inspectDatabase(database)),
    get: (sha256) => guarded(() => statements.content.get(sha256)),
    getMany: (sha256s) => getMany(statements, guarded, sha256s),
    deleteBefore: (time) => deleteTextsBefore({ database, writes, portion: guarded }, time),
    close: async () => {
      closing = true;
      await group.drained();
      database.close();
    },
  };
}

/** A ledger that is only read may have an older schema, on which the statements for writing cannot be prepared. */
function writesOf(database: BetterSqlite3.Database, { path, mode }: OpenOptions): () => Writes {
  const writes = mode === "write" ? prepareWrites(database) : undefined;
  return () => {
    if (!writes) throw new CoordinationError("LEDGER_UNAVAILABLE", `${path} is open for reading only`);
    return writes;
  };
}

interface Commit {
  readonly statements: Writes;
  readonly requests: readonly AppendRequest[];
  readonly clock: Clock;
  readonly path: string;
}

/** One transaction for the group; where a request breaks it, each is tried in a transaction of its own. */
function commitGroup(database: BetterSqlite3.Database, commit: Commit): (Error | undefined)[] {
  const write = database.transaction((requests: readonly AppendRequest[]) => {
    const events: EventValue[] = [];
    // Only now that the database is locked: a claim may run out while it is waited for.
    const now = commit.clock.now();
    const { statements } = commit;
    const errors = requests.map((request) => appendOne(request, { statements, now }, events));
    writeEvents(commit.statements, events);
    return errors;
  });
  try {
    return withLedgerErrors(commit.path, () => write.immediate(commit.requests));
  } catch (error) {
    if (
      !(error instanceof CoordinationError) ||
      error.code !== "LEDGER_CONFLICT" ||
      commit.requests.length === 1
    )
      throw error;
    return commit.requests.map((request) => {
      try {
        return withLedgerErrors(commit.path, () => write.immediate([request]))[0];
      } catch (own) {
        return own as Error;
      }
    });
  }
}

/**
 * S1: returns the conflict, before writing anything, when the run's log or the claims are not as the request expects.
 * The values of its events are added to `events`, to be written with those of the whole group.
 */
function appendOne(
  request: AppendRequest,
  { statements, now }: Pick<Write, "statements" | "now">,
  events: EventValue[],
): CoordinationError | undefined {
  const [first] = request.events;
  if (!first) return undefined;
  const head = statements.head.get(request.runId);
  const length = head?.length ?? 0;
  if (first.sequence !== length) {
    return new CoordinationError(
      "LEDGER_CONFLICT",
      `${request.runId} has ${length} events; the append expected ${first.sequence}`,
    );
  }
  const conflict = claimConflict(statements.claims, request, now);
  if (!conflict) writeAll(request, { statements, now, head, events });
  return conflict;
}

interface Write {
  readonly statements: Writes;
  readonly now: number;
  readonly head: Head | undefined;
  readonly events: EventValue[];
}

function writeAll(request: AppendRequest, { statements, now, head, events }: Write): void {
  const rows = chain(request, head?.head_hash ?? GENESIS_HASH);
  const newest = rows.at(-1)?.hash ?? GENESIS_HASH;
  const runKey = writeRun(request, { statements, head: newest, runKey: head?.run_key });
  pushValues(events, runKey, rows);
  for (const { name, stepId } of request.references)
    statements.insertReference.run(name, runKey, stepId ?? null);
  for (const { ref, text, keepWhileRunning } of request.contents) {
    if (keepWhileRunning) statements.keepContent.run(runKey, ref.sha256);
    statements.putContent.run(ref.sha256, now, text, ref.sha256);
  }
  writeClaims(statements.claims, runKey, request);
}

interface HashedRow {
  readonly row: EventRow;
  readonly hash: Buffer;
}

function chain({ runId, events }: AppendRequest, from: Buffer): HashedRow[] {
  let previous = from;
  return events.map((event) => {
    const row = rowOf(event);
    previous = chainHash(previous, runId, row);
    return { row, hash: previous };
  });
}

function pushValues(values: EventValue[], runKey: number, rows: readonly HashedRow[]): void {
  for (const { row, hash } of rows) {
    const { sequence, type, timestamp_ms, node_id, causation_id, payload } = row;
    values.push(runKey, sequence, type, timestamp_ms, node_id, causation_id, payload, hash);
  }
}

/** One statement for many events costs half of one statement for each. */
function writeEvents({ insertEvents }: Writes, values: readonly EventValue[]): void {
  const valuesMax = insertEvents.length * EVENT_COLUMNS;
  for (let from = 0; from < values.length; from += valuesMax) {
    const part = values.slice(from, from + valuesMax);
    insertEvents[part.length / EVENT_COLUMNS - 1]?.run(part);
  }
}

function writeRun(
  { runId, events, summary }: AppendRequest,
  { statements, head, runKey }: { statements: Writes; head: Buffer; runKey: number | undefined },
): number {
  const running = summary.status === "running";
  const text = JSON.stringify(summary);
  if (runKey === undefined)
    return Number(
      statements.insertRun.run(runId, events.length, head, running ? 0 : 1, text).lastInsertRowid,
    );
  const length = (events.at(-1)?.sequence ?? 0) + 1;
  const update = running ? statements.growRun : statements.endRun;
  update.run(length, head, text, runKey);
  return runKey;
}

function readEvents(
  statements: Reads,
  { runId, from, limit }: { runId: CoordinationId; from: number; limit: number },
): RunEvent[] {
  return statements.events.all(runId, from, limit).map((row) => decodeEvent(readable(runId, row)));
}

function readable(runId: CoordinationId, row: EventRow): unknown {
  try {
    return valueOf(runId, row);
  } catch (cause) {
    throw new CoordinationError("EVENT_UNREADABLE", `${runId}:${row.sequence}: the payload is not JSON`, {
      cause,
    });
  }
}

function listRuns(statements: Reads, { limit, status, idPrefix, after }: ListQuery): RunEntry[] {
  const before = after?.ordinal ?? Number.MAX_SAFE_INTEGER;
  const select = status === "running" ? statements.openRuns : statements.runs;
  const wantEnded = status === "ended" ? 1 : null;
  return select
    .all({
      before,
      limit,
      ended: wantEnded,
      prefix: idPrefix ?? "",
      prefixEnd: `${idPrefix ?? ""}\u{10ffff}`,
    })
    .map((row) => ({
      runId: row.run_id as CoordinationId,
      ordinal: row.run_key,
      length: row.length,
      summary: JSON.parse(row.summary) as Summary,
    }));
}

function findReference(statements: Reads, name: string): Found | undefined {
  const row = statements.find.get(name);
  if (!row) return undefined;
  const runId = row.run_id as CoordinationId;
  return row.step_id === null ? { runId } : { runId, stepId: row.step_id as StepId };
}

/** Row by row, because one run may hold a name many times. */
function holdersOf({ holders }: Reads, name: string, limit: number): CoordinationId[] {
  const runIds = new Set<CoordinationId>();
  for (const runId of holders.iterate(name)) {
    if (runIds.size >= limit) break;
    runIds.add(runId as CoordinationId);
  }
  return [...runIds];
}

async function getMany(
  { contents }: Reads,
  portion: <T>(run: () => T) => Promise<T>,
  sha256s: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  let from = 0;
  do {
    if (from > 0) await othersTurn();
    const some = Array.from({ length: CONTENTS_PER_SELECT }, (_, index) => sha256s[from + index] ?? null);
    for (const { sha256, text } of await portion(() => contents.all(some))) texts.set(sha256, text);
    from += CONTENTS_PER_SELECT;
  } while (from < sha256s.length);
  return texts;
}

function referencesOfRun(statements: Reads, runId: CoordinationId): Reference[] {
  return statements.references
    .all(runId)
    .map(({ name, step_id }) => (step_id === null ? { name } : { name, stepId: step_id as StepId }));
}
