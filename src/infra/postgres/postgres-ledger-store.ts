/**
 * Owns: opening a ledger on a PostgreSQL server, `LedgerQueries`, and of `LedgerStore` and `ContentStore` what `RunStore` does not
 * have. Invariant S5 is the port's.
 */
import { createExportCursors } from "./database/export-cursor-table.ts";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId, StepId } from "../../agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import type { Reference, Summary } from "../../agents/coordination/contracts/coordination-summary.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { AppendRequest, Found } from "../../agents/coordination/ports/ledger-store.ts";
import { listEventLabels } from "../ledger/event-labels.ts";
import {
  findEvents,
  findNewestPosition,
  findPositionBefore,
  readAppendedEvents,
  readEventArrivals,
} from "../ledger/find-events.ts";
import { findRuns } from "../ledger/find-runs.ts";
import type { OpenedLedger } from "../ledger/opened-ledger.ts";
import type { GrownLog } from "./database/grow-log.ts";
import {
  addClaimChanges,
  findClaimChangeConflict,
  listClaims,
  listOverlappingClaims,
  addWantedClaims,
} from "./database/claim-queries.ts";
import type { SendQuery } from "./database/connect.ts";
import type { GroupState } from "./database/group.ts";
import { createRunOwners } from "./database/owner-table.ts";
import { openDatabase, type OpenOptions } from "./database/open-server.ts";
import { createPostgresQuerySource } from "./database/postgres-dialect.ts";
import { countRuns, readMovedFrom } from "./database/read-log-rows.ts";
import { createLedgerPruning } from "./database/pruned-table.ts";
import { deleteTextsBefore } from "./database/delete-texts.ts";
import { createWriteQueue, type OpenLedger } from "./database/commit-queue.ts";
import { inspectPostgresLedger } from "./inspect/inspect-server.ts";
import { readEventHash, readPastHeads, readNewestEventNumber } from "./inspect/list-heads.ts";
import { createPostgresRunStore, type RunRules } from "./postgres-run-store.ts";
import { createPostgresWorkflowStore } from "./postgres-workflow-store.ts";

export type PostgresLedger = OpenedLedger;

/**
 * Opens a PostgreSQL ledger and returns all its stores (coordinations, workflows, texts, claims and the rest), and the
 * function that closes it. @throws CoordinationError as `openDatabase` does
 */
export async function openPostgresLedger(
  options: OpenOptions & { readonly clock: Clock },
): Promise<PostgresLedger> {
  const { mode, clock, busyTimeoutMs } = options;
  const database = await openDatabase(options);
  const { name, query } = database;
  const queue = createWriteQueue({ database, clock, busyTimeoutMs });
  let closing: Promise<void> | undefined;
  const runGuarded = async <T>(run: () => Promise<T>): Promise<T> => {
    if (closing) throw new CoordinationError("LEDGER_CLOSED", `${name} is closed`);
    return run();
  };
  const runWriting = <T>(run: (write: SendQuery) => Promise<T>): Promise<T> =>
    runGuarded(() => {
      if (mode === "write") return run(database.write);
      throw new CoordinationError("LEDGER_UNAVAILABLE", `${name} is open for reading only`);
    });
  const ledger: OpenLedger = {
    database,
    guarded: runGuarded,
    written: runWriting,
    queued: (write) => runWriting(() => write(queue)),
  };
  const source = createPostgresQuerySource(query, runGuarded);
  return {
    path: name,
    ...createPostgresRunStore(ledger, COORDINATIONS),
    findRuns: (runsQuery) => findRuns(source, runsQuery),
    findEvents: (eventsQuery) => findEvents(source, eventsQuery),
    readAppended: (appendedQuery) => readAppendedEvents(source, appendedQuery),
    readArrivals: (arrivalsQuery) => readEventArrivals(source, arrivalsQuery),
    newestPosition: () => findNewestPosition(source),
    positionBefore: (since) => findPositionBefore(source, since),
    find: (reference) => runGuarded(() => findReference(query, reference)),
    holders: (reference, limit) => runGuarded(() => listHolders(query, reference, limit)),
    overlapping: (claimsQuery) => runGuarded(() => listOverlappingClaims(query, claimsQuery)),
    claims: (claimsQuery) => runGuarded(() => listClaims(query, claimsQuery)),
    references: (runId) => runGuarded(() => listReferences(query, runId)),
    inspect: (problems) => runGuarded(() => inspectPostgresLedger(database, problems)),
    get: (sha256) => runGuarded(async () => (await readStoredTexts(query, [sha256])).get(sha256)),
    getMany: (sha256s) => runGuarded(() => readStoredTexts(query, sha256s)),
    deleteBefore: (time) => deleteTextsBefore({ database, busyTimeoutMs, written: runWriting }, time),
    owners: createRunOwners(ledger, COORDINATIONS.kind),
    workflows: createPostgresWorkflowStore(ledger),
    exports: createExportCursors(ledger),
    counts: () => runGuarded(() => countRuns(query)),
    measureBytes: () => runGuarded(() => measureLedgerBytes(query)),
    readMovedFrom: () => runGuarded(() => readMovedFrom(query)),
    heads: {
      newestNumber: () => runGuarded(() => readNewestEventNumber(query)),
      page: (place) => runGuarded(() => readPastHeads(query, place)),
      hashAt: (place) => runGuarded(() => readEventHash(query, place)),
    },
    pruning: createLedgerPruning({ ...ledger, busyTimeoutMs, now: () => clock.now() }),
    close: () => (closing ??= queue.drained().then(() => database.close())),
  };
}

async function measureLedgerBytes(query: SendQuery): Promise<number> {
  const [size] = await query<{ bytes: number | null }>(
    `select sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass))::bigint as bytes
     from pg_tables
     where schemaname = current_schema()`,
  );
  return size?.bytes ?? 0;
}

const COORDINATIONS: RunRules<RunEvent, Summary, AppendRequest> = {
  kind: "coordination",
  decode: decodeEvent,
  hasEnded: ({ status }) => status !== "running",
  want: addWantedClaims,
  findConflict: (request, _head, group) => findClaimChangeConflict(request, group),
  writeBeside: addBesideLog,
};

/** Adds what an append brings beside its events to its group: labels, references, texts and claims. */
function addBesideLog(request: AppendRequest, { runKey }: GrownLog, group: GroupState): void {
  const { events, summary } = request;
  const { rows } = group;
  for (const event of events)
    for (const { kind, value } of listEventLabels(event))
      rows.labels.push({
        kind,
        value,
        startedAtMs: summary.createdAtMs,
        runKey,
        stepId: event.nodeId ?? "",
      });
  for (const { name, stepId } of request.references)
    rows.references.push({ name, runKey, stepId: stepId ?? null });
  for (const { ref, text, keepWhileRunning } of request.contents) {
    if (keepWhileRunning) rows.uses.push({ runKey, sha256: ref.sha256 });
    rows.contents.set(ref.sha256, text);
  }
  for (const sha256 of request.keep ?? []) {
    rows.uses.push({ runKey, sha256 });
    rows.kept.add(sha256);
  }
  addClaimChanges(request, runKey, group);
}

interface ReferenceRow {
  readonly run_id: string;
  readonly step_id: string | null;
}

/** Returns the run, and the step, that took a name last. */
async function findReference(query: SendQuery, name: string): Promise<Found | undefined> {
  const [row] = await query<ReferenceRow>(
    `select run.run_id, reference.step_id
     from reference
     join run using (run_key)
     where reference.name = @name
     order by reference.reference_key desc
     limit 1`,
    { name },
  );
  if (!row) return undefined;
  const runId = row.run_id as CoordinationId;
  return row.step_id === null ? { runId } : { runId, stepId: row.step_id as StepId };
}

/** Lists the runs that hold a name, the newest reference first. */
async function listHolders(query: SendQuery, name: string, limit: number): Promise<CoordinationId[]> {
  const rows = await query<{ run_id: string }>(
    `select run.run_id
     from (
       select run_key, max(reference_key) as newest
       from reference
       where name = @name
       group by run_key
       order by newest desc
       limit @limit
     ) as holder
     join run using (run_key)
     order by newest desc`,
    { name, limit },
  );
  return rows.map(({ run_id }) => run_id as CoordinationId);
}

/** Texts in one answer at most. */
const CONTENTS_PER_SELECT = 64;

/** Returns texts by their hashes. */
async function readStoredTexts(query: SendQuery, sha256s: readonly string[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (let from = 0; from < sha256s.length; from += CONTENTS_PER_SELECT) {
    const rows = await query<{ sha256: string; text: string }>(
      "select sha256, text from content where sha256 = any (@sha256s::text[]) order by sha256",
      { sha256s: sha256s.slice(from, from + CONTENTS_PER_SELECT) },
    );
    for (const { sha256, text } of rows) texts.set(sha256, text);
  }
  return texts;
}

async function listReferences(query: SendQuery, runId: CoordinationId): Promise<Reference[]> {
  const rows = await query<{ name: string; step_id: string | null }>(
    `select name, step_id
     from reference
     where run_key = (select run_key from run where run_id = @runId)
     order by reference_key`,
    { runId },
  );
  return rows.map(({ name, step_id }) => (step_id === null ? { name } : { name, stepId: step_id as StepId }));
}
