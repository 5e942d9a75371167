/**
 * Owns: finding damage in what a server holds of a ledger: the schema with its triggers, the hash chains, the numbers, the labels,
 * the content, the claims, and what lies beside the logs of workflows. Whether the server's own files are whole is its to say: that
 * it cannot read them is damage.
 */
import {
  hasRunEnded,
  type WorkflowStatus,
} from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { isLedgerOutage } from "../../../agents/coordination/contracts/errors.ts";
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import {
  createChainCheck,
  reportCounts,
  type LedgerCounts,
  type Report,
  type RunHead,
} from "../../ledger/chain-check.ts";
import type { HashedRow } from "../../ledger/stored-run.ts";
import type { PostgresDatabase, SendQuery } from "../database/connect.ts";
import { isUnreadable, toLedgerError } from "../database/postgres-errors.ts";
import { checkClaims, checkContent, checkDefinitions, checkKept } from "./inspect-beside.ts";
import { createLabelCheck, type LabelRow } from "./inspect-labels.ts";
import { checkMemory, checkReplaced, checkTags } from "./inspect-memory.ts";
import { checkMigrations, checkSchema } from "./inspect-schema.ts";
import { checkOrder, checkVersions } from "./inspect-versions.ts";
import { createRowsByRun, readRows } from "./read-rows.ts";

/** Enough to see the extent of a damage; a report of a million lines helps nobody. */
const PROBLEMS_MAX = 200;

/** Returns `problems`, to which it adds each one as it is found. */
export async function inspectDatabase(
  database: PostgresDatabase,
  problems: StoredProblem[] = [],
): Promise<StoredProblem[]> {
  const report: Report = (problem) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  const checks = [
    checkSchema,
    checkMigrations,
    checkRuns,
    checkCount,
    checkContent,
    checkKept,
    checkClaims,
    checkDefinitions,
    checkMemory,
    checkTags,
    checkReplaced,
    checkVersions,
    checkOrder,
  ];
  // One snapshot for each: what another process appends meanwhile is no damage.
  for (const check of checks) await tryCheck(check, database, report);
  return problems;
}

type Check = (query: SendQuery, report: Report) => Promise<void>;

/**
 * A check that the server cannot answer ends its transaction, and not those of the others. That the server is busy or full, or cannot be
 * reached, is no damage.
 */
async function tryCheck(check: Check, database: PostgresDatabase, report: Report): Promise<void> {
  try {
    await database.snapshot(async (query) => {
      try {
        await check(query, report);
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        report({ kind: "file_damaged", message: toLedgerError(error, database).message });
      }
    });
  } catch (error) {
    if (isLedgerOutage(error)) throw error;
    report({ kind: "file_damaged", message: describeError(error) });
  }
}

type CheckedRun = RunHead & { readonly kind: string; readonly ended: number; readonly summary: string };

type EventOfRun = HashedRow & { readonly run_key: number };

async function checkRuns(query: SendQuery, report: Report): Promise<void> {
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
  const runs = readRows<CheckedRun>(
    query,
    `select run_key, run_id, length, head_hash, origin, kind, ended, summary
     from run
     order by run_key`,
  );
  for await (const run of runs) {
    checkSummary(run, report);
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

/** The listings go by columns of their own. */
function checkSummary({ run_id: runId, kind, ended, summary }: CheckedRun, report: Report): void {
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

async function checkCount(query: SendQuery, report: Report): Promise<void> {
  const [counts] = await query<LedgerCounts>(
    `select
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
    rows: "(select run_key from run union all select run_key from pruned_run)",
    key: "run_key",
  });
  // The events of removed runs lie anywhere between others: the counts above speak for them.
  if (counts?.pruned === 0)
    await checkGaps(query, report, { subject: "event number", rows: "event", key: "event_key" });
}

interface Numbered {
  readonly subject: string;
  readonly rows: string;
  readonly key: string;
}

async function checkGaps(query: SendQuery, report: Report, { subject, rows, key }: Numbered): Promise<void> {
  const gaps = await query<{ before: number; after: number }>(
    `select before, after
     from (select ${key} as after, lag(${key}, 1, 0::bigint) over (order by ${key}) as before from ${rows} as counted) as numbered
     where after <> before + 1
     order by after
     limit 20`,
  );
  for (const { before, after } of gaps)
    report({ kind: "event_missing", message: `between ${subject} ${before} and ${after}, all are missing` });
}
