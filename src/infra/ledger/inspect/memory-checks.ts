/** Owns: finding damage in the memory of workflow runs. */
import { hashMemoryEntry, type EntryRow } from "../memory-entries.ts";
import { createRowCheck, type RowCheck } from "./row-check.ts";

type StoredEntry = EntryRow & {
  readonly tenant: string;
  readonly scope: string;
  readonly hash: Buffer;
  readonly run_id: string;
  readonly sequence: number;
  readonly type: string;
  readonly payload: string;
};

/** Checks each entry by its hash, and that its event records the write. */
export const MEMORY_CHECK = createRowCheck(
  `select memory_entry.*, run_id, sequence, type, payload
   from memory_entry
   join event using (event_key)
   join run using (run_key)
   order by event_key`,
  (row: StoredEntry, report) => {
    const { memory_id, run_id: runId, sequence } = row;
    if (!hashMemoryEntry(row, row).equals(row.hash)) {
      const message = `memory entry ${memory_id} does not match its hash`;
      report({ kind: "content_changed", message, runId, sequence });
    }
    if (!isToldByEvent(row, memory_id)) {
      const message = `memory entry ${memory_id} is not what the event tells of`;
      report({ kind: "index_differs", message, runId, sequence });
    }
  },
);

interface TellingEvent {
  readonly type: string | null;
  readonly payload: string | null;
}

/** True where the event records a write of the memory entry. */
function isToldByEvent({ type, payload }: TellingEvent, memoryId: string): boolean {
  if (type !== "memory.written") return false;
  try {
    return (JSON.parse(payload ?? "") as { readonly memoryId?: unknown }).memoryId === memoryId;
  } catch {
    return false;
  }
}

interface TagRow {
  readonly event_key: number;
  readonly memory_id: string;
  /** JSON. */
  readonly tags: string;
  readonly tenant: string;
  readonly scope: string;
  /** A tag by which the entry is found, and its place; all are null where there is none. */
  readonly tag: string | null;
  readonly tag_tenant: string | null;
  readonly tag_scope: string | null;
}

/** Finding entries by a tag goes by a table of its own. */
export const TAG_CHECK: RowCheck = {
  sql: `
    select
      event_key,
      memory_id,
      tags,
      entry.tenant,
      entry.scope,
      tag,
      memory_tag.tenant as tag_tenant,
      memory_tag.scope as tag_scope
    from memory_entry as entry
    left join memory_tag using (event_key)
    order by event_key, tag`,
  begin: (report) => {
    let entry:
      | { readonly key: number; readonly id: string; readonly expected: Set<string>; isWrong: boolean }
      | undefined;
    const end = (): void => {
      if (entry && (entry.isWrong || entry.expected.size > 0))
        report({ kind: "index_differs", message: `memory entry ${entry.id} is not found by its tags` });
    };
    const add = ({ event_key: key, memory_id: id, tags, tag, ...row }: TagRow): void => {
      if (entry?.key !== key) {
        end();
        entry = { key, id, expected: parseTags(tags), isWrong: false };
      }
      if (tag === null) return;
      const isAtPlace = row.tag_tenant === row.tenant && row.tag_scope === row.scope;
      if (!entry.expected.delete(tag) || !isAtPlace) entry.isWrong = true;
    };
    return { add, end };
  },
};

function parseTags(text: string): Set<string> {
  try {
    return new Set(JSON.parse(text) as string[]);
  } catch {
    return new Set();
  }
}

interface ReplacedRow extends TellingEvent {
  readonly memory_id: string;
  readonly next: number | null;
  readonly replaced_by: number | null;
}

/** Checks replaced entries: every entry names the next one, or the event that recorded its deletion. */
export const REPLACED_CHECK = createRowCheck(
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
  (row: ReplacedRow, report) => {
    const { memory_id, next, replaced_by } = row;
    const isBefore = replaced_by !== null && replaced_by < (next ?? Number.MAX_SAFE_INTEGER);
    if (isBefore && isToldByEvent(row, memory_id)) return;
    const message = `memory entry ${memory_id} is not replaced by the next with its id`;
    report({ kind: "index_differs", message });
  },
);
