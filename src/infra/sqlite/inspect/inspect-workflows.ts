/** Owns: finding damage in what lies beside the logs of workflow runs. Their logs are checked as every log is. */
import type { Database } from "better-sqlite3";
import { MEMORY_CHECK, REPLACED_CHECK, TAG_CHECK } from "../../ledger/inspect/memory-checks.ts";
import type { ProblemReporter } from "../../ledger/inspect/report.ts";
import { DEFINITION_CHECK } from "../../ledger/inspect/text-checks.ts";
import { createVersionOrderCheck, VERSION_CHECK } from "../../ledger/inspect/workspace-checks.ts";
import { readSchemaVersion } from "../database/migrate.ts";
import { BLOCKS_SINCE_VERSION, WORKFLOWS_SINCE_VERSION } from "../database/run-reads.ts";
import { WORKSPACE_SINCE_VERSION } from "../workflows/workspace-statements.ts";
import { runRowCheck } from "./check-table.ts";

/** The end of a version of a workspace file that is not replaced. */
const OPEN_END = "9223372036854775807";

/**
 * Reports the problems of what a ledger file holds of workflows (definitions, memory, workspaces), as far as its
 * schema has them.
 */
export function checkWorkflowTables(database: Database, report: ProblemReporter): void {
  const version = readSchemaVersion(database);
  if (version < WORKFLOWS_SINCE_VERSION) return;
  checkListedKinds(database, report);
  runRowCheck(database, DEFINITION_CHECK, report);
  runRowCheck(database, MEMORY_CHECK, report);
  runRowCheck(database, TAG_CHECK, report);
  if (version < BLOCKS_SINCE_VERSION) return;
  runRowCheck(database, REPLACED_CHECK, report);
  checkMemoryBlocks(database, report);
  if (version < WORKSPACE_SINCE_VERSION) return;
  runRowCheck(database, VERSION_CHECK, report);
  runRowCheck(database, createVersionOrderCheck(OPEN_END), report);
}

/** Reports runs that the listings, which go by a column of its own, show as another kind than their summary. */
function checkListedKinds(database: Database, report: ProblemReporter): void {
  const rows = database
    .prepare<[], { runId: string }>(
      `select run_id as runId
       from run
       where kind <> case
         when json_valid(summary) then coalesce(json_extract(summary, '$.kind'), 'coordination')
         else kind
       end
       order by run_key`,
    )
    .iterate();
  for (const { runId } of rows)
    report({ kind: "index_differs", message: "it is listed as a run of another kind", runId });
}

/** Reports blocks of memory whose counts, by which readers pass over them, are wrong. */
function checkMemoryBlocks(database: Database, report: ProblemReporter): void {
  const blocks = database.prepare<[], { lane: string; place: number }>(
    `with
       laid (tenant, scope, lane, event_key) as (
         select tenant, scope, '', event_key from memory_entry
         union all
         select tenant, scope, '#' || tag, event_key from memory_tag
       ),
       counted as (
         select
           laid.tenant,
           laid.scope,
           lane,
           bits,
           event_key >> bits as block,
           count(*) as entries,
           sum(replaced_by is null) as newest,
           max(coalesce(replaced_by, 0)) as replaced_until,
           max(coalesce(expires_at_ms, 9007199254740991)) as expires_at_ms
         from laid
         join memory_entry using (event_key)
         join (select 8 as bits union all select 16)
         group by 1, 2, 3, 4, 5
       )
     select distinct lane, block << bits as place
     from memory_block
     full join counted using (tenant, scope, lane, bits, block)
     where memory_block.entries is not counted.entries
       or memory_block.newest is not counted.newest
       or memory_block.replaced_until < counted.replaced_until
       or memory_block.expires_at_ms < counted.expires_at_ms
     order by place, lane`,
  );
  for (const { lane, place } of blocks.iterate()) {
    const which = lane === "" ? "memory entries" : `memory entries with the tag ${lane.slice(1)}`;
    report({
      kind: "index_differs",
      message: `the ${which} from event ${place} on are not counted as they are`,
    });
  }
}
