/**
 * Owns: finding damage in what a server holds of a ledger: the schema with its triggers, the hash chains, the numbers, the labels,
 * the content, the claims, and what lies beside the logs of workflows. Whether the server's own files are whole is its to say: that
 * it cannot read them is damage.
 *
 * A ledger that no release has written to since an upgrade has an older schema, and is held against that one.
 */
import {
  hasRunEnded,
  type WorkflowStatus,
} from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { isLedgerOutage } from "../../../agents/coordination/contracts/errors.ts";
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { createChainCheck, type RunHead } from "../../ledger/inspect/chain-check.ts";
import { MEMORY_CHECK, REPLACED_CHECK, TAG_CHECK } from "../../ledger/inspect/memory-checks.ts";
import {
  createReport,
  reportClaimCount,
  reportCounts,
  reportGaps,
  formatGapsQuery,
  type NumberGap,
  type LedgerCounts,
  type NumberedRows,
  type ProblemReporter,
} from "../../ledger/inspect/report.ts";
import type { RowCheck } from "../../ledger/inspect/row-check.ts";
import { CONTENT_CHECK, DEFINITION_CHECK, KEPT_CHECK } from "../../ledger/inspect/text-checks.ts";
import { createVersionOrderCheck, VERSION_CHECK } from "../../ledger/inspect/workspace-checks.ts";
import type { HashedRow } from "../../ledger/stored-run.ts";
import type { PostgresDatabase, SendQuery } from "../database/connect.ts";
import { hasMigration } from "../database/migrate-schema.ts";
import { isUnreadableError, toPostgresLedgerError } from "../database/postgres-errors.ts";
import { formatPrunedTable } from "../database/pruned-table.ts";
import { createLabelCheck, type LabelRow } from "./inspect-labels.ts";
import { checkMigrations, checkSchema } from "./inspect-schema.ts";
import { createRowsByRun, readRowsByCursor } from "./read-rows.ts";

/** The end of a version of a workspace file that is not replaced. */
const OPEN_END = "9007199254740991";

/**
 * Runs all checks for damage on a PostgreSQL ledger and returns `problems`, to which it adds each problem as it is
 * found, up to the bound of `createReport`. Throws where the server is busy, full or away.
 */
export async function inspectPostgresLedger(
  database: PostgresDatabase,
  problems: StoredProblem[] = [],
): Promise<StoredProblem[]> {
  const report = createReport(problems);
  const checks = [
    checkSchema,
    checkMigrations,
    checkRuns,
    checkCounts,
    createTableCheck(CONTENT_CHECK),
    createTableCheck(KEPT_CHECK),
    checkClaimCount,
    ...WORKFLOW_CHECKS.map(createWorkflowCheck),
  ];
  // One snapshot for each: what another process appends meanwhile is no damage.
  for (const check of checks) await tryCheck(check, database, report);
  return problems;
}

/** Checks one part of a ledger on a server, and reports its problems. */
type ServerCheck = (query: SendQuery, report: ProblemReporter) => Promise<void>;

/**
 * Runs a check on a snapshot of its own, and reports what the server cannot read as damage. A check that the server
 * cannot answer ends its transaction, and not those of the others. That the server is busy or full, or cannot be
 * reached, is no damage.
 */
async function tryCheck(
  check: ServerCheck,
  database: PostgresDatabase,
  report: ProblemReporter,
): Promise<void> {
  try {
    await database.snapshot(async (query) => {
      try {
        await check(query, report);
      } catch (error) {
        if (!isUnreadableError(error)) throw error;
        report({ kind: "file_damaged", message: toPostgresLedgerError(error, database).message });
      }
    });
  } catch (error) {
    if (isLedgerOutage(error)) throw error;
    report({ kind: "file_damaged", message: describeError(error) });
  }
}

/** Returns the check of a table that is written once for both kinds of ledger. */
function createTableCheck({ sql, begin }: RowCheck): ServerCheck {
  return async (query, report) => {
    const check = begin(report);
    for await (const row of readRowsByCursor(query, sql)) check.add(row);
    check.end();
  };
}

/** The migration that brought what lies beside the logs of workflows. */
const WORKFLOWS_SINCE_MIGRATION = 2;

const WORKFLOW_CHECKS = [
  DEFINITION_CHECK,
  MEMORY_CHECK,
  TAG_CHECK,
  REPLACED_CHECK,
  VERSION_CHECK,
  createVersionOrderCheck(OPEN_END),
];

/** Returns the check of a table of workflows, which passes over a schema without them. */
function createWorkflowCheck(check: RowCheck): ServerCheck {
  return async (query, report) => {
    if (await hasMigration(query, WORKFLOWS_SINCE_MIGRATION)) await createTableCheck(check)(query, report);
  };
}

type CheckedRun = RunHead & { readonly kind: string; readonly ended: number; readonly summary: string };

type EventOfRun = HashedRow & { readonly run_key: number };

/** Reports damage in the summary, the hash chain and the labels of each run. */
async function checkRuns(query: SendQuery, report: ProblemReporter): Promise<void> {
  const events = createRowsByRun<EventOfRun>(
    query,
    `select run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash
     from event
     order by run_key, sequence`,
  );
  const labels = createRowsByRun<LabelRow>(
    query,
    "select run_key, kind, value, started_at_ms, step_id from run_label order by run_key",
  );
  const runs = readRowsByCursor<CheckedRun>(
    query,
    `select run_key, run_id, length, head_hash, origin, kind, ended, summary
     from run
     order by run_key`,
  );
  for await (const run of runs) {
    checkListedSummary(run, report);
    const chain = createChainCheck(run, report);
    const labelled = createLabelCheck(run, report);
    for await (const event of events.readRun(run.run_key)) {
      chain.add(event);
      labelled.addEvent(event);
    }
    chain.end();
    for await (const label of labels.readRun(run.run_key)) labelled.addLabel(label);
    labelled.end();
  }
}

interface StoredSummary {
  readonly kind?: string;
  readonly status?: string;
}

/** Reports a run that the listings, which go by columns of their own, show otherwise than its summary. */
function checkListedSummary(
  { run_id: runId, kind, ended, summary }: CheckedRun,
  report: ProblemReporter,
): void {
  const { kind: toldKind = "coordination", status = "" } = parseSummary(summary);
  if (toldKind !== kind)
    report({ kind: "index_differs", message: "it is listed as a run of another kind", runId });
  const hasEnded = toldKind === "workflow" ? hasRunEnded(status as WorkflowStatus) : status !== "running";
  if (hasEnded !== (ended === 1))
    report({ kind: "index_differs", message: "it is listed as running and as ended", runId });
}

function parseSummary(text: string): StoredSummary {
  try {
    return (JSON.parse(text) ?? {}) as StoredSummary;
  } catch {
    return {};
  }
}

/**
 * Reports events and runs that were removed without a trace. They are numbered as they are appended, so it shows as a
 * gap.
 */
async function checkCounts(query: SendQuery, report: ProblemReporter): Promise<void> {
  const prunedTable = await formatPrunedTable(query);
  const [counts] = await query<LedgerCounts>(
    `${prunedTable}
     select
       (select count(*) from event) as stored,
       (select coalesce(sum(length), 0)::bigint from pruned_run) as pruned,
       (select max(events) from ledger_count) as appended,
       (select coalesce(sum(length), 0)::bigint from run) as counted,
       greatest(
         (select coalesce(max(event_key), 0) from event),
         (select coalesce(max(newest_event), 0) from pruned_run)
       ) as last`,
  );
  if (counts) reportCounts(counts, report);
  await checkGaps(query, report, {
    subject: "run number",
    rows: `(${prunedTable} select run_key from run union all select run_key from pruned_run)`,
    key: "run_key",
  });
  // The events of removed runs lie anywhere between others: the counts above speak for them.
  if (counts?.pruned === 0)
    await checkGaps(query, report, { subject: "event number", rows: "event", key: "event_key" });
}

async function checkGaps(query: SendQuery, report: ProblemReporter, numbered: NumberedRows): Promise<void> {
  reportGaps(numbered, await query<NumberGap>(formatGapsQuery(numbered)), report);
}

async function checkClaimCount(query: SendQuery, report: ProblemReporter): Promise<void> {
  const counted = await query<{ newest: number }>("select claim_token as newest from ledger_count");
  const [claim] = await query<{ newest: number }>("select coalesce(max(token), 0) as newest from claim");
  const tokens = counted.map(({ newest }) => newest);
  reportClaimCount(tokens, claim?.newest ?? 0, report);
}
