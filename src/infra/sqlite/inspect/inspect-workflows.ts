/** Owns: finding damage in what lies beside the logs of workflow runs. Their logs are checked as every log is. */
import { hash } from "node:crypto";
import type { Database } from "better-sqlite3";
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import { checkWorkspaces } from "./inspect-workspaces.ts";
import { hashEntry, type EntryRow } from "../../ledger/memory-entries.ts";
import { readSchemaVersion } from "../database/migrate.ts";
import { BLOCKS_SINCE_VERSION, WORKFLOWS_SINCE_VERSION } from "../database/run-statements.ts";

type Report = (problem: StoredProblem) => void;

export function checkWorkflows(database: Database, report: Report): void {
  if (readSchemaVersion(database) < WORKFLOWS_SINCE_VERSION) return;
  checkKinds(database, report);
  checkDefinitions(database, report);
  checkMemory(database, report);
  checkTags(database, report);
  if (readSchemaVersion(database) < BLOCKS_SINCE_VERSION) return;
  checkReplaced(database, report);
  checkBlocks(database, report);
  checkWorkspaces(database, report);
}

/** The listings go by a column of its own. */
function checkKinds(database: Database, report: Report): void {
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

function checkDefinitions(database: Database, report: Report): void {
  const definitions = database.prepare<[], { sha256: string; text: string }>(
    "select sha256, text from workflow_definition order by definition_key",
  );
  for (const { sha256, text } of definitions.iterate()) {
    if (hash("sha256", text) !== sha256)
      report({ kind: "content_changed", message: `definition ${sha256} does not match its hash` });
  }
}

type StoredEntry = EntryRow & {
  readonly tenant: string;
  readonly scope: string;
  readonly hash: Buffer;
  readonly run_id: string;
  readonly sequence: number;
  readonly told: string | null;
};

function checkMemory(database: Database, report: Report): void {
  const rows = database.prepare<[], StoredEntry>(
    `select memory_entry.*, run_id, sequence, iif(type = 'memory.written', payload ->> 'memoryId', null) as told
     from memory_entry
     join event using (event_key)
     join run using (run_key)
     order by event_key`,
  );
  for (const row of rows.iterate()) {
    const { memory_id, run_id: runId, sequence } = row;
    if (!hashEntry(row, row).equals(row.hash)) {
      const message = `memory entry ${memory_id} does not match its hash`;
      report({ kind: "content_changed", message, runId, sequence });
    }
    if (row.told !== memory_id) {
      const message = `memory entry ${memory_id} is not what the event tells of`;
      report({ kind: "index_differs", message, runId, sequence });
    }
  }
}

/** Finding entries by a tag goes by a table of its own. */
function checkTags(database: Database, report: Report): void {
  const entries = database.prepare<[], { memory_id: string }>(
    `select memory_id
     from memory_entry
     where json_valid(tags)
       and (
         (select count(*) from memory_tag where event_key = memory_entry.event_key) <>
           (select count(distinct value) from json_each(tags))
         or exists (
           select 1
           from memory_tag
           where event_key = memory_entry.event_key
             and (
               memory_tag.tenant <> memory_entry.tenant
               or memory_tag.scope <> memory_entry.scope
               or tag not in (select value from json_each(tags))
             )
         )
       )
     order by event_key`,
  );
  for (const { memory_id } of entries.iterate())
    report({ kind: "index_differs", message: `memory entry ${memory_id} is not found by its tags` });
}

/** Checks replaced entries: every entry names the next one, or the event that recorded its deletion. */
function checkReplaced(database: Database, report: Report): void {
  const entries = database.prepare<[], { memory_id: string }>(
    `select memory_id
     from (
       select
         memory_id,
         replaced_by,
         lead(event_key) over (partition by tenant, scope, memory_id order by event_key) as next
       from memory_entry
     ) as entry
     where replaced_by is not next
       and not (
         replaced_by is not null
         and replaced_by < coalesce(next, 9007199254740991)
         and exists (
           select 1
           from event
           where event_key = replaced_by and type = 'memory.written' and payload ->> 'memoryId' = entry.memory_id
         )
       )
     order by memory_id`,
  );
  for (const { memory_id } of entries.iterate())
    report({
      kind: "index_differs",
      message: `memory entry ${memory_id} is not replaced by the next with its id`,
    });
}

/** Checks the counts by which readers pass over blocks. */
function checkBlocks(database: Database, report: Report): void {
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
