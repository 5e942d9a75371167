/** Owns: finding damage in the memory of workflow runs. */
import type { Report } from "../../ledger/chain-check.ts";
import { hashEntry, type EntryRow } from "../../ledger/memory-entries.ts";
import type { SendQuery } from "../database/connect.ts";
import { readRows } from "./read-rows.ts";

type StoredEntry = EntryRow & {
  readonly tenant: string;
  readonly scope: string;
  readonly hash: Buffer;
  readonly run_id: string;
  readonly sequence: number;
  readonly type: string;
  readonly payload: string;
};

export async function checkMemory(query: SendQuery, report: Report): Promise<void> {
  const rows = readRows<StoredEntry>(
    query,
    `select memory_entry.*, run_id, sequence, type, payload
     from memory_entry
     join event using (event_key)
     join run using (run_key)
     order by event_key`,
  );
  for await (const row of rows) {
    const { memory_id, run_id: runId, sequence } = row;
    if (!hashEntry(row, row).equals(row.hash)) {
      const message = `memory entry ${memory_id} does not match its hash`;
      report({ kind: "content_changed", message, runId, sequence });
    }
    if (!isTold(row, memory_id)) {
      const message = `memory entry ${memory_id} is not what the event tells of`;
      report({ kind: "index_differs", message, runId, sequence });
    }
  }
}

function isTold(
  { type, payload }: { readonly type: string; readonly payload: string },
  memoryId: string,
): boolean {
  if (type !== "memory.written") return false;
  try {
    return (JSON.parse(payload) as { readonly memoryId?: unknown }).memoryId === memoryId;
  } catch {
    return false;
  }
}

interface TaggedEntry {
  readonly memory_id: string;
  readonly tags: string;
  readonly tenant: string;
  readonly scope: string;
  /** JSON: those by which the entry is found, with their places. */
  readonly stored: readonly { readonly tag: string; readonly tenant: string; readonly scope: string }[];
}

/** Finding entries by a tag goes by a table of its own. */
export async function checkTags(query: SendQuery, report: Report): Promise<void> {
  const rows = readRows<
    Omit<TaggedEntry, "stored"> & {
      event_key: number;
      tag: string | null;
      of: string | null;
      at: string | null;
    }
  >(
    query,
    `select event_key, memory_id, tags, entry.tenant, entry.scope, tag, memory_tag.tenant as of, memory_tag.scope as at
     from memory_entry as entry
     left join memory_tag using (event_key)
     order by event_key, tag`,
  );
  let entry:
    | { readonly key: number; readonly id: string; readonly expected: Set<string>; isWrong: boolean }
    | undefined;
  const end = (): void => {
    if (entry && (entry.isWrong || entry.expected.size > 0))
      report({ kind: "index_differs", message: `memory entry ${entry.id} is not found by its tags` });
  };
  for await (const { event_key: key, memory_id: id, tags, tenant, scope, tag, of, at } of rows) {
    if (entry?.key !== key) {
      end();
      entry = { key, id, expected: parseTags(tags), isWrong: false };
    }
    if (tag === null) continue;
    if (!entry.expected.delete(tag) || of !== tenant || at !== scope) entry.isWrong = true;
  }
  end();
}

function parseTags(text: string): Set<string> {
  try {
    return new Set(JSON.parse(text) as string[]);
  } catch {
    return new Set();
  }
}

/** Checks replaced entries: every entry names the next one, or the event that recorded its deletion. */
export async function checkReplaced(query: SendQuery, report: Report): Promise<void> {
  const rows = readRows<{
    memory_id: string;
    next: number | null;
    replaced_by: number | null;
    type: string | null;
    payload: string | null;
  }>(
    query,
    `select entry.memory_id, entry.next, entry.replaced_by, event.type, event.payload
     from (
       select
         memory_id,
         replaced_by,
         lead(event_key) over (partition by tenant, scope, memory_id order by event_key) as next
       from memory_entry
     ) as entry
     left join event on event.event_key = entry.replaced_by
     where replaced_by is distinct from next
     order by memory_id`,
  );
  for await (const { memory_id, next, replaced_by, type, payload } of rows) {
    const isBefore = replaced_by !== null && replaced_by < (next ?? Number.MAX_SAFE_INTEGER);
    if (isBefore && isTold({ type: type ?? "", payload: payload ?? "" }, memory_id)) continue;
    const message = `memory entry ${memory_id} is not replaced by the next with its id`;
    report({ kind: "index_differs", message });
  }
}
