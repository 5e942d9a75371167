/** Owns: workflow runs as the release of schema 4 wrote them. */
import type { Database } from "better-sqlite3";
import type { MemoryWrite, WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { hashChainedRow, GENESIS_HASH, createEventRow } from "../../src/infra/ledger/event-row.ts";
import { hashMemoryEntry } from "../../src/infra/ledger/memory-entries.ts";

export function appendAsOlder(database: Database, request: WorkflowAppend): void {
  const { runId, events, memory = [] } = request;
  const head = database
    .prepare<[string], Buffer>("select head_hash from run where run_id = ?")
    .pluck()
    .get(runId);
  const rows = events.map(createEventRow);
  const hashes: Buffer[] = [];
  for (const row of rows) hashes.push(hashChainedRow(hashes.at(-1) ?? head ?? GENESIS_HASH, runId, row));
  writeRun(database, request, { head: hashes.at(-1), isNew: head === undefined });
  const event = database.prepare(
    `insert into event (run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash)
     values (
       (select run_key from run where run_id = @runId),
       @sequence, @type, @timestamp_ms, @node_id, @causation_id, @payload, @hash
     )`,
  );
  const keys = rows.map((row, index) => event.run({ ...row, runId, hash: hashes[index] }).lastInsertRowid);
  const [first] = events;
  for (const write of memory) writeEntry(database, write, keys[write.sequence - (first?.sequence ?? 0)]);
}

function writeRun(
  database: Database,
  { runId, events, summary }: WorkflowAppend,
  { head, isNew }: { readonly head: Buffer | undefined; readonly isNew: boolean },
): void {
  const sql = isNew
    ? `insert into run (run_id, kind, length, head_hash, ended, summary)
       values (@runId, 'workflow', @length, @head, @ended, @summary)`
    : "update run set length = @length, head_hash = @head, summary = @summary, ended = @ended where run_id = @runId";
  database.prepare(sql).run({
    runId,
    head,
    summary: JSON.stringify(summary),
    length: (events.at(-1)?.sequence ?? 0) + 1,
    ended: summary.status === "completed" ? 1 : 0,
  });
}

function writeEntry(
  database: Database,
  { at, entry }: MemoryWrite,
  eventKey: number | bigint | undefined,
): void {
  const { id, content, createdAt, expiresAt = null } = entry;
  const row = {
    memory_id: id,
    content,
    tags: JSON.stringify(entry.tags),
    created_at: createdAt,
    expires_at: expiresAt,
  };
  database
    .prepare(
      `insert into memory_entry values (
         @eventKey, @tenant, @scope, @memory_id, @content, @tags, @created_at, @expires_at, @expiresAtMs, @hash
       )`,
    )
    .run({
      ...row,
      ...at,
      eventKey,
      hash: hashMemoryEntry(at, row),
      expiresAtMs: expiresAt === null ? null : Date.parse(expiresAt),
    });
  const tagged = database.prepare("insert into memory_tag values (@tenant, @scope, @tag, @eventKey)");
  for (const tag of new Set(entry.tags)) tagged.run({ ...at, tag, eventKey });
}
