/**
 * Owns: opening a ledger file, `LedgerQueries`, and of `LedgerStore` and `ContentStore` what `RunStore` does not have. Invariant S5 is the
 * port's.
 */
import { createExportCursors } from "./database/export-cursor-rows.ts";
import { statSync } from "node:fs";
import { setImmediate as othersTurn } from "node:timers/promises";
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId, StepId } from "../../agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import type { Reference, Summary } from "../../agents/coordination/contracts/coordination-summary.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { AppendRequest, Found } from "../../agents/coordination/ports/ledger-store.ts";
import {
  findClaimChangeConflict,
  createClaimReads,
  listClaims,
  listOverlappingClaims,
  writeClaimChanges,
} from "./database/claim-table.ts";
import {
  findEvents,
  findNewestPosition,
  findPositionBefore,
  readAppendedEvents,
  readEventArrivals,
} from "../ledger/find-events.ts";
import { findRuns } from "../ledger/find-runs.ts";
import { writeLabels } from "./database/run-labels.ts";
import { inspectSqliteLedger } from "./inspect/inspect-database.ts";
import { readEventHash, readPastHeads, readNewestEventNumber } from "./inspect/read-heads.ts";
import { createLedgerPruning } from "./database/pruned-rows.ts";
import { createRunOwners } from "./database/owner-rows.ts";
import { openDatabase, type OpenOptions } from "./database/open-database.ts";
import { createSqliteQuerySource } from "./database/sqlite-dialect.ts";
import { deleteTextsBefore } from "./database/retention.ts";
import { loadMigrations } from "./database/migrate.ts";
import { assertSchemaNotNewer } from "../ledger/migrations.ts";
import type { OpenedLedger } from "../ledger/opened-ledger.ts";
import { countRuns } from "./database/run-reads.ts";
import { createSqliteRunStore, type RunRules } from "./sqlite-run-store.ts";
import { createSqliteWorkflowStore } from "./sqlite-workflow-store.ts";
import { runWithLedgerErrors } from "./database/sqlite-errors.ts";
import {
  CONTENTS_PER_SELECT,
  prepareLedgerReads,
  prepareLedgerWrites,
  type ReadStatements,
  type WriteStatements,
} from "./database/write-statements.ts";
import {
  createWriteQueue,
  type WriteGroup,
  type OpenLedger,
  type WriteQueue,
} from "./database/write-queue.ts";

export type SqliteLedger = OpenedLedger;

/**
 * Opens a ledger file and returns all its stores (coordinations, workflows, texts, claims and the rest), and the
 * function that closes it. @throws CoordinationError as `openDatabase` does
 */
export async function openSqliteLedger(
  options: OpenOptions & { readonly clock: Clock },
): Promise<SqliteLedger> {
  const { path, clock } = options;
  const database = await openDatabase(options);
  const statements = runWithLedgerErrors(path, () => prepareLedgerReads(database));
  const writes = runWithLedgerErrors(path, () => createWriteStatements(database, options));
  const claimReads = createClaimReads(database);
  const queue = createWriteQueue({ database, writes, clock, path });
  let closing = false;
  const runGuarded = <T>(run: () => T): Promise<T> =>
    new Promise((resolve) => {
      if (closing) throw new CoordinationError("LEDGER_CLOSED", `${path} is closed`);
      resolve(runWithLedgerErrors(path, run));
    });
  const runQueued = async <T>(write: (queue: WriteQueue) => Promise<T>): Promise<T> => {
    if (closing) throw new CoordinationError("LEDGER_CLOSED", `${path} is closed`);
    return write(queue);
  };
  const ledger: OpenLedger = { database, guarded: runGuarded, queued: runQueued };
  const source = createSqliteQuerySource(database, runGuarded);
  return {
    path,
    ...createSqliteRunStore(ledger, COORDINATIONS),
    findRuns: (query) => findRuns(source, query),
    findEvents: (query) => findEvents(source, query),
    readAppended: (query) => readAppendedEvents(source, query),
    readArrivals: (query) => readEventArrivals(source, query),
    newestPosition: () => findNewestPosition(source),
    positionBefore: (since) => findPositionBefore(source, since),
    find: (name) => runGuarded(() => findReference(statements, name)),
    holders: (name, limit) => runGuarded(() => listHolders(statements, name, limit)),
    overlapping: (query) => runGuarded(() => listOverlappingClaims(claimReads(), query)),
    claims: (query) => runGuarded(() => listClaims(claimReads(), query)),
    references: (runId) => runGuarded(() => listReferences(statements, runId)),
    inspect: (problems) => runGuarded(() => inspectSqliteLedger(database, problems)),
    get: (sha256) => runGuarded(() => statements.content.get(sha256)),
    getMany: (sha256s) => readStoredTexts(statements, runGuarded, sha256s),
    deleteBefore: (time) => deleteTextsBefore({ database, writes, portion: runGuarded }, time),
    owners: createRunOwners(ledger, COORDINATIONS.kind),
    workflows: createSqliteWorkflowStore(ledger),
    exports: createExportCursors(ledger),
    counts: () => runGuarded(() => countRuns(database)),
    measureBytes: () => runGuarded(() => measureLedgerBytes(path)),
    // A file is one gateway's, whose name nothing in it needs.
    readMovedFrom: () => Promise.resolve(undefined),
    heads: {
      newestNumber: () => runGuarded(() => readNewestEventNumber(database)),
      page: (place) => runGuarded(() => readPastHeads(database, place)),
      hashAt: (place) => runGuarded(() => readEventHash(database, place)),
    },
    pruning: createLedgerPruning({ ...ledger, now: () => clock.now() }),
    close: async () => {
      closing = true;
      await queue.drained();
      database.close();
    },
  };
}

/** Returns the bytes of the ledger file and of its write-ahead log. */
function measureLedgerBytes(path: string): number {
  return [path, `${path}-wal`].reduce(
    (sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

/**
 * Returns a getter of the statements for writing. It throws for a ledger that is open for reading only, which may have
 * an older schema that they cannot be prepared on, and where a newer release has migrated the ledger since.
 */
function createWriteStatements(
  database: BetterSqlite3.Database,
  { path, mode }: OpenOptions,
): () => WriteStatements {
  const writes = mode === "write" ? prepareLedgerWrites(database) : undefined;
  const version = database.prepare<[], number>("pragma user_version").pluck();
  return () => {
    if (!writes) throw new CoordinationError("LEDGER_UNAVAILABLE", `${path} is open for reading only`);
    // A newer release may have migrated the ledger since it was opened.
    assertSchemaNotNewer(path, version.get() ?? 0, loadMigrations());
    return writes;
  };
}

const COORDINATIONS: RunRules<RunEvent, Summary, AppendRequest> = {
  kind: "coordination",
  decode: decodeEvent,
  hasEnded: ({ status }) => status !== "running",
  findConflict: (request, _head, { statements, now }) =>
    findClaimChangeConflict(statements.claims, request, now),
  writeBeside: writeBesideLog,
};

/** Writes what an append brings beside its events: labels, references, texts and claims. */
function writeBesideLog(request: AppendRequest, runKey: number, { statements, now }: WriteGroup): void {
  const { events, summary } = request;
  writeLabels(statements.labels, { events, startedAtMs: summary.createdAtMs, runKey });
  for (const { name, stepId } of request.references)
    statements.insertReference.run(name, runKey, stepId ?? null);
  for (const { ref, text, keepWhileRunning } of request.contents) {
    if (keepWhileRunning) statements.keepContent.run(runKey, ref.sha256);
    statements.putContent.run(ref.sha256, now, text, ref.sha256);
  }
  for (const sha256 of request.keep ?? []) {
    statements.keepContent.run(runKey, sha256);
    statements.markKept.run(sha256);
  }
  writeClaimChanges(statements.claims, runKey, request);
}

/** Returns the run, and the step, that took a name last. */
function findReference(statements: ReadStatements, name: string): Found | undefined {
  const row = statements.find.get(name);
  if (!row) return undefined;
  const runId = row.run_id as CoordinationId;
  return row.step_id === null ? { runId } : { runId, stepId: row.step_id as StepId };
}

/**
 * Lists the runs that hold a name, the newest reference first. Row by row, because one run may hold a name many times.
 */
function listHolders({ holders }: ReadStatements, name: string, limit: number): CoordinationId[] {
  const runIds = new Set<CoordinationId>();
  for (const runId of holders.iterate(name)) {
    if (runIds.size >= limit) break;
    runIds.add(runId as CoordinationId);
  }
  return [...runIds];
}

/** Returns texts by their hashes, in portions between which others have their turn. */
async function readStoredTexts(
  { contents }: ReadStatements,
  portion: <T>(run: () => T) => Promise<T>,
  sha256s: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  let from = 0;
  do {
    if (from > 0) await othersTurn();
    const batch = Array.from({ length: CONTENTS_PER_SELECT }, (_, index) => sha256s[from + index] ?? null);
    for (const { sha256, text } of await portion(() => contents.all(batch))) texts.set(sha256, text);
    from += CONTENTS_PER_SELECT;
  } while (from < sha256s.length);
  return texts;
}

function listReferences(statements: ReadStatements, runId: CoordinationId): Reference[] {
  return statements.references
    .all(runId)
    .map(({ name, step_id }) => (step_id === null ? { name } : { name, stepId: step_id as StepId }));
}
