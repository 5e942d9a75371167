/**
 * Owns: finding damage in the stored bytes: the file, the schema with its triggers, the hash chains, the content, the
 * count of the claims, and what lies beside the logs of workflows.
 *
 * A ledger that no release has written to since an upgrade has an older schema, and is held against that one.
 * SQLite's own `integrity_check` sees none of the bits flipped inside a value; the chain does (S4).
 */
import { statSync } from "node:fs";
import type BetterSqlite3 from "better-sqlite3";
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import { CLAIMS_SINCE_VERSION } from "../database/claim-statements.ts";
import type { EventRow } from "../../ledger/event-row.ts";
import { createChainCheck, type RunHead } from "../../ledger/inspect/chain-check.ts";
import {
  createReport,
  reportClaimCount,
  reportCounts,
  reportGaps,
  reportMigrations,
  formatGapsQuery,
  type NumberGap,
  type NumberedRows,
  type ProblemReporter,
} from "../../ledger/inspect/report.ts";
import { CONTENT_CHECK, KEPT_CHECK } from "../../ledger/inspect/text-checks.ts";
import { runRowCheck } from "./check-table.ts";
import { checkWorkflowTables } from "./inspect-workflows.ts";
import { loadMigrations, migrateSchema, readSchemaVersion } from "../database/migrate.ts";
import { PRUNED_SINCE_VERSION } from "../database/pruned-rows.ts";
import { EXPECTED_LABELS, LABELS_SINCE_VERSION } from "../database/run-labels.ts";
import { BINDING_LABELS } from "../../ledger/prunable-runs.ts";
import { ORIGINS_SINCE_VERSION } from "../database/run-reads.ts";
import { isSqliteOutage } from "../database/sqlite-errors.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

/** The schema that texts can be kept in. */
const KEPT_SINCE_VERSION = 2;

type Database = BetterSqlite3.Database;

/**
 * Runs all checks for damage on one snapshot of a ledger file and returns `problems`, to which it adds each problem as
 * it is found, up to the bound of `createReport`. Throws where SQLite cannot check right now.
 */
export function inspectSqliteLedger(database: Database, problems: StoredProblem[] = []): StoredProblem[] {
  const report = createReport(problems);
  const checks = [
    checkFile,
    checkSchema,
    checkMigrations,
    checkChains,
    checkCounts,
    checkListedStatus,
    checkContent,
    checkKeptMarks,
    checkClaimCount,
    checkLabels,
    checkWorkflowTables,
  ];
  // One snapshot: what another process appends meanwhile is no damage.
  database
    .transaction(() => {
      for (const check of checks) tryCheck(check, database, report);
    })
    .deferred();
  return problems;
}

/** Runs a check and reports what SQLite cannot read as damage. Throws where SQLite only could not do it right now. */
function tryCheck(
  check: (database: Database, report: ProblemReporter) => void,
  database: Database,
  report: ProblemReporter,
): void {
  try {
    check(database, report);
  } catch (error) {
    // SQLite could not check, as without room for what it sorts, and found nothing.
    if (isSqliteOutage(error)) throw error;
    report({ kind: "file_damaged", message: describeError(error) });
  }
}

/** Reports what SQLite's own checks find, a file that is cut within a page, and rows that belong to no run. */
function checkFile(database: Database, report: ProblemReporter): void {
  const rows = database.pragma("integrity_check(20)") as { integrity_check: string }[];
  for (const { integrity_check: message } of rows)
    if (message !== "ok") report({ kind: "file_damaged", message });
  if (isCutWithinPage(database))
    report({ kind: "file_damaged", message: "the file ends in the middle of a page" });
  for (const row of database.pragma("foreign_key_check") as { table: string; rowid: number | null }[]) {
    report({ kind: "index_differs", message: `row ${row.rowid ?? "?"} of ${row.table} belongs to no run` });
  }
}

/**
 * Returns whether the file ends in the middle of a page, whose missing bytes SQLite reads as zeros. Where a log holds
 * pages, a checkpoint may be writing the file.
 */
function isCutWithinPage(database: Database): boolean {
  const { size } = statSync(database.name);
  const log = statSync(`${database.name}-wal`, { throwIfNoEntry: false });
  return (log?.size ?? 0) === 0 && size % Number(database.pragma("page_size", { simple: true })) !== 0;
}

/**
 * Reports what differs from the schema that the migrations make. A forger who drops a trigger first leaves this trace.
 */
function checkSchema(database: Database, report: ProblemReporter): void {
  const Fresh = database.constructor as new (path: string) => Database;
  const fresh = new Fresh(":memory:");
  try {
    migrateSchema(fresh, { path: ":memory:", applicationId: 0, version: readSchemaVersion(database) });
    const expected = readSchema(fresh);
    const actual = readSchema(database);
    for (const [name, sql] of expected) {
      if (actual.get(name) !== sql)
        report({ kind: "schema_changed", message: `${name} was changed or dropped` });
    }
    for (const name of actual.keys()) {
      if (!expected.has(name)) report({ kind: "schema_changed", message: `${name} was added` });
    }
  } finally {
    fresh.close();
  }
}

function checkMigrations(database: Database, report: ProblemReporter): void {
  const rows = database
    .prepare<[], { number: number; sha256: string }>("select number, sha256 from migration order by number")
    .all();
  reportMigrations(rows, loadMigrations().slice(0, readSchemaVersion(database)), report);
}

/** Returns the SQL of all tables, indexes and triggers, by type and name. */
function readSchema(database: Database): Map<string, string> {
  const rows = database
    .prepare<[], { name: string; sql: string }>(
      "select type || ' ' || name as name, coalesce(sql, '') as sql from sqlite_schema where name not like 'sqlite_stat%' order by 1",
    )
    .all();
  return new Map(rows.map(({ name, sql }) => [name, sql]));
}

type StoredRow = EventRow & { readonly hash: Buffer };

function checkChains(database: Database, report: ProblemReporter): void {
  const origin = readSchemaVersion(database) < ORIGINS_SINCE_VERSION ? "null as origin" : "origin";
  const runs = database.prepare<[], RunHead>(
    `select run_key, run_id, length, head_hash, ${origin} from run order by run_key`,
  );
  const events = database.prepare<[number], StoredRow>(
    `select sequence, type, timestamp_ms, node_id, causation_id, payload, hash
     from event
     where run_key = ?
     order by sequence`,
  );
  for (const run of runs.all()) checkChain(run, events.iterate(run.run_key), report);
}

function checkChain(run: RunHead, rows: Iterable<StoredRow>, report: ProblemReporter): void {
  const check = createChainCheck(run, report);
  for (const row of rows) check.add(row);
  check.end();
}

/**
 * Reports events and runs that were removed without a trace. They are numbered as they are appended, so it shows as a
 * gap.
 */
function checkCounts(database: Database, report: ProblemReporter): void {
  const hasTraces = readSchemaVersion(database) >= PRUNED_SINCE_VERSION;
  const readTraced = (sql: string): number => (hasTraces ? queryNumber(database, sql) : 0);
  const pruned = readTraced("select sum(length) from pruned_run");
  const newest = queryNumber(database, "select max(event_key) from event");
  reportCounts(
    {
      stored: queryNumber(database, "select count(*) from event"),
      pruned,
      appended: queryNumber(database, "select max(seq) from sqlite_sequence where name = 'event'"),
      counted: queryNumber(database, "select sum(length) from run"),
      last: Math.max(newest, readTraced("select max(newest_event) from pruned_run")),
    },
    report,
  );
  const runs = hasTraces
    ? "(select run_key from run union all select run_key from pruned_run)"
    : "(select run_key from run)";
  checkGaps(database, { subject: "run number", rows: runs, key: "run_key" }, report);
  // The events of removed runs lie anywhere between others: the counts above speak for them.
  if (pruned === 0) checkGaps(database, { subject: "event number", rows: "event", key: "event_key" }, report);
}

function checkGaps(database: Database, numbered: NumberedRows, report: ProblemReporter): void {
  const { rows, key } = numbered;
  // The common case, without ordering a million keys.
  if (queryNumber(database, `select max(${key}) - count(*) from ${rows}`) === 0) return;
  reportGaps(numbered, database.prepare<[], NumberGap>(formatGapsQuery(numbered)).all(), report);
}

function queryNumber(database: Database, sql: string): number {
  return Number(database.prepare(sql).pluck().get() ?? 0);
}

/**
 * Reports runs that the column `ended` lists otherwise than the status in their summary says. A summary that is no
 * JSON is not reported here.
 */
function checkListedStatus(database: Database, report: ProblemReporter): void {
  const rows = database
    .prepare<[], { runId: string }>(
      `select run_id as runId
       from run
       where ended <> case
         when not json_valid(summary) then ended
         when json_extract(summary, '$.kind') = 'workflow'
           then json_extract(summary, '$.status') in ('completed', 'failed', 'cancelled')
         else json_extract(summary, '$.status') <> 'running'
       end
       order by run_key`,
    )
    .iterate();
  for (const { runId } of rows)
    report({ kind: "index_differs", message: "it is listed as running and as ended", runId });
}

function checkContent(database: Database, report: ProblemReporter): void {
  runRowCheck(database, CONTENT_CHECK, report);
}

function checkKeptMarks(database: Database, report: ProblemReporter): void {
  if (readSchemaVersion(database) >= KEPT_SINCE_VERSION) runRowCheck(database, KEPT_CHECK, report);
}

function checkClaimCount(database: Database, report: ProblemReporter): void {
  if (readSchemaVersion(database) < CLAIMS_SINCE_VERSION) return;
  const counted = database.prepare<[], number>("select newest from claim_token").pluck().all();
  reportClaimCount(counted, queryNumber(database, "select max(token) from claim"), report);
}

interface ComparedLabel {
  readonly kind: string;
  readonly value: string;
  readonly runId: string | null;
  readonly isStored: number;
}

/**
 * Reports up to 20 labels that follow from no event, or are missing. Labels that bind children of removed runs are
 * passed over, for they have no log any more.
 */
function checkLabels(database: Database, report: ProblemReporter): void {
  if (readSchemaVersion(database) < LABELS_SINCE_VERSION) return;
  const columns = "kind, value, started_at_ms, run_key, step_id";
  const rows = database
    .prepare<[], ComparedLabel>(
      `select compared.kind, compared.value, run.run_id as runId, isStored
       from (
         select kind, value, run_key, max(isStored) as isStored
         from (
           select *, 0 as isStored from (${EXPECTED_LABELS})
           union all
           select ${columns}, 1 from run_label
           where run_key in (select run_key from run)
             or kind not in ('${BINDING_LABELS.gate}', '${BINDING_LABELS.privilege}')
         )
         group by ${columns}
         having min(isStored) = max(isStored)
         limit 20
       ) as compared
       left join run using (run_key)
       order by run_key, compared.kind, compared.value`,
    )
    .all();
  for (const { kind, value, runId, isStored } of rows) {
    const label = `the label ${kind}${value === "" ? "" : ` ${value}`}`;
    const message = isStored === 1 ? `${label} follows from no event` : `${label} is missing or was changed`;
    report({ kind: "index_differs", message, ...(runId !== null && { runId }) });
  }
}
