/**
 * Owns: the SQL that reads runs and their events. A ledger that is only read may have a schema that knows coordinations
 * only, until a writer brings it to the newest: so each statement is prepared for the schema that it finds.
 */
import type { Database, Statement } from "better-sqlite3";
import type { EventRow } from "./event-row.ts";
import { readSchemaVersion } from "./migrate.ts";

/** The schema that has runs of workflows. */
export const WORKFLOWS_SINCE_VERSION = 4;

/** The schema that has forks, and blocks of memory. */
export const ORIGINS_SINCE_VERSION = 5;
export const BLOCKS_SINCE_VERSION = 5;

export type RunKind = "coordination" | "workflow";

export interface RunRow {
  readonly run_key: number;
  readonly run_id: string;
  readonly length: number;
  readonly summary: string;
}

export interface RunFilter {
  readonly before: number;
  readonly limit: number;
  readonly ended: number | null;
  readonly prefix: string;
  readonly prefixEnd: string;
}

export type EventsStatement = Statement<[runId: string, from: number, limit: number], EventRow>;

/** JSON, or null for a run that is no fork. */
export type OriginStatement = Statement<[runId: string], string | null>;

/** What the chain of a run is held against. */
export type HeadRow = Pick<RunRow, "length"> & { readonly head_hash: Buffer; readonly origin: string | null };

export type HashedRow = EventRow & { readonly hash: Buffer };

export interface ChainReads {
  readonly head: Statement<[runId: string], HeadRow>;
  readonly hashedEvents: Statement<[runId: string, from: number, before: number], HashedRow>;
}

/** Of coordinations only. */
export interface RunReads extends ChainReads {
  readonly events: EventsStatement;
  readonly runs: Statement<[RunFilter], RunRow>;
  readonly openRuns: Statement<[RunFilter], RunRow>;
}

export function runReadsOf(database: Database): () => RunReads {
  let prepared: { readonly version: number; readonly reads: RunReads } | undefined;
  return () => {
    if (prepared && prepared.version >= WORKFLOWS_SINCE_VERSION) return prepared.reads;
    const version = readSchemaVersion(database);
    if (prepared?.version !== version) prepared = { version, reads: prepareRunReads(database, version) };
    return prepared.reads;
  };
}

/** The partial indexes serve only a `kind` that the SQL names itself. */
export function prepareRunReads(database: Database, version: number): RunReads {
  const isOfKind = version >= WORKFLOWS_SINCE_VERSION ? "kind = 'coordination'" : "true";
  const select = (where: string): Statement<[RunFilter], RunRow> =>
    database.prepare<[RunFilter], RunRow>(
      `select run_key, run_id, length, summary
       from run
       where ${isOfKind}
         and ${where}
         and run_key < @before
         and (@prefix = '' or (run_id >= @prefix and run_id < @prefixEnd))
       order by run_key desc
       limit @limit`,
    );
  return {
    events: prepareEvents(database, isOfKind),
    ...prepareChain(database, isOfKind, "null as origin"),
    runs: select("(@ended is null or ended = @ended)"),
    openRuns: select("ended = 0"),
  };
}

export function prepareEvents(database: Database, isOfKind: string): EventsStatement {
  return database.prepare<[string, number, number], EventRow>(
    `select sequence, type, timestamp_ms, node_id, causation_id, payload
     from event
     where run_key = (select run_key from run where run_id = ? and ${isOfKind}) and sequence >= ?
     order by sequence
     limit ?`,
  );
}

/** `origin`: as it is selected from a schema that may not know it. */
export function prepareChain(database: Database, isOfKind: string, origin: string): ChainReads {
  return {
    head: database.prepare<[string], HeadRow>(
      `select length, head_hash, ${origin} from run where run_id = ? and ${isOfKind}`,
    ),
    hashedEvents: database.prepare<[string, number, number], HashedRow>(
      `select sequence, type, timestamp_ms, node_id, causation_id, payload, hash
       from event
       where run_key = (select run_key from run where run_id = ? and ${isOfKind})
         and sequence >= ?
         and sequence < ?
       order by sequence`,
    ),
  };
}

export interface RunCounts {
  readonly coordinations: number;
  readonly workflowRuns: number;
}

export function countRuns(database: Database): RunCounts {
  const all = count(database, "select count(*) from run");
  if (readSchemaVersion(database) < WORKFLOWS_SINCE_VERSION) return { coordinations: all, workflowRuns: 0 };
  const coordinations = count(database, "select count(*) from run where kind = 'coordination'");
  return { coordinations, workflowRuns: all - coordinations };
}

function count(database: Database, sql: string): number {
  return database.prepare<[], number>(sql).pluck().get() ?? 0;
}
