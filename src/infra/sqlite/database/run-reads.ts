/**
 * Owns: the SQL that reads runs and their events. A ledger that is only read may have a schema that knows coordinations
 * only, until a writer brings it to the newest: so each statement is prepared for the schema that it finds.
 */
import type { Database, Statement } from "better-sqlite3";
import type { EventRow } from "../../ledger/event-row.ts";
import type { HashedRow, HeadRow, RunCounts, RunKind, RunRow } from "../../ledger/stored-run.ts";
import { readSchemaVersion } from "./migrate.ts";
import { createSchemaStatements } from "./schema-statements.ts";

/** The schema that has runs of workflows. */
export const WORKFLOWS_SINCE_VERSION = 4;

/** The schema that has forks, and blocks of memory. */
export const ORIGINS_SINCE_VERSION = 5;
export const BLOCKS_SINCE_VERSION = 5;

export interface RunFilter {
  readonly after: number;
  readonly limit: number;
  readonly prefix: string;
  readonly prefixEnd: string;
}

export type EventsStatement = Statement<[runId: string, from: number, limit: number], EventRow>;

/** JSON, or null for a run that is no fork. */
export type OriginStatement = Statement<[runId: string], string | null>;

/** By the `status` of a query. */
export type ListStatements = Readonly<
  Record<"all" | "running" | "ended", Statement<[filter: RunFilter], RunRow>>
>;

/** Reads the runs of one kind. */
export interface RunReads {
  readonly events: EventsStatement;
  /** Absent: no run of the kind has an origin in this schema. */
  readonly origin?: OriginStatement;
  readonly head: Statement<[runId: string], HeadRow>;
  readonly hashedEvents: Statement<[runId: string, from: number, before: number], HashedRow>;
  readonly entry: Statement<[runId: string], RunRow>;
  readonly newest: ListStatements;
  readonly oldest: ListStatements;
}

/**
 * Returns a function that gives the prepared statements that read runs of a kind, which are prepared anew once a
 * writer has migrated the schema.
 */
export function createRunReads(database: Database, kind: RunKind): () => RunReads {
  return createSchemaStatements(database, ORIGINS_SINCE_VERSION, (version) =>
    prepareRunReads(database, { kind, version }),
  );
}

/** The kind of the runs that are read, and the version of the schema they are stored in. */
interface RunSchema {
  readonly kind: RunKind;
  readonly version: number;
}

/**
 * Prepares the SQLite statements that read runs of one kind, for a version of the schema. The partial indexes serve
 * only a `kind` that the SQL names itself.
 */
export function prepareRunReads(database: Database, { kind, version }: RunSchema): RunReads {
  const isOfKind = version >= WORKFLOWS_SINCE_VERSION ? `kind = '${kind}'` : String(kind === "coordination");
  // A coordination has no origin, whatever its row says.
  const hasOrigins = kind === "workflow" && version >= ORIGINS_SINCE_VERSION;
  const origin = hasOrigins ? "origin" : "null as origin";
  const one = `from run where run_id = ? and ${isOfKind}`;
  const columns = `run_key, run_id, length, summary, ${origin}`;
  return {
    events: prepareEvents(database, isOfKind),
    ...(hasOrigins && {
      origin: database.prepare<[string], string | null>(`select ${origin} ${one}`).pluck(),
    }),
    head: database.prepare<[string], HeadRow>(`select length, head_hash, ${origin} ${one}`),
    hashedEvents: prepareHashedEvents(database, isOfKind),
    entry: database.prepare<[string], RunRow>(`select ${columns} ${one}`),
    newest: prepareLists(database, { columns, isOfKind, isAfter: "run_key < @after", order: "run_key desc" }),
    oldest: prepareLists(database, { columns, isOfKind, isAfter: "run_key > @after", order: "run_key" }),
  };
}

interface ListSql {
  readonly columns: string;
  readonly isOfKind: string;
  readonly isAfter: string;
  readonly order: string;
}

function prepareLists(database: Database, { columns, isOfKind, isAfter, order }: ListSql): ListStatements {
  const select = (hasStatus: string): Statement<[RunFilter], RunRow> =>
    database.prepare<[RunFilter], RunRow>(
      `select ${columns}
       from run
       where ${isOfKind}
         and ${hasStatus}
         and ${isAfter}
         and (@prefix = '' or (run_id >= @prefix and run_id < @prefixEnd))
       order by ${order}
       limit @limit`,
    );
  return {
    all: select("true"),
    running: select("ended = 0"),
    ended: select("ended = 1"),
  };
}

function prepareEvents(database: Database, isOfKind: string): EventsStatement {
  return database.prepare<[string, number, number], EventRow>(
    `select sequence, type, timestamp_ms, node_id, causation_id, payload
     from event
     where run_key = (select run_key from run where run_id = ? and ${isOfKind}) and sequence >= ?
     order by sequence
     limit ?`,
  );
}

function prepareHashedEvents(database: Database, isOfKind: string): RunReads["hashedEvents"] {
  return database.prepare<[string, number, number], HashedRow>(
    `select sequence, type, timestamp_ms, node_id, causation_id, payload, hash
     from event
     where run_key = (select run_key from run where run_id = ? and ${isOfKind})
       and sequence >= ?
       and sequence < ?
     order by sequence`,
  );
}

/**
 * Returns how many coordinations and how many runs of workflows a ledger file holds; an older schema has only
 * coordinations.
 */
export function countRuns(database: Database): RunCounts {
  const all = queryCount(database, "select count(*) from run");
  if (readSchemaVersion(database) < WORKFLOWS_SINCE_VERSION) return { coordinations: all, workflowRuns: 0 };
  const coordinations = queryCount(database, "select count(*) from run where kind = 'coordination'");
  return { coordinations, workflowRuns: all - coordinations };
}

function queryCount(database: Database, sql: string): number {
  return database.prepare<[], number>(sql).pluck().get() ?? 0;
}
