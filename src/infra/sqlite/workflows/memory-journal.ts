/**
 * Owns: the memory of workflow runs as it lies beside their logs. Every entry has the number of the event that tells of it,
 * and events are numbered over the whole ledger: what was there before an event of some run is a range (MAE-3).
 */
import { hash } from "node:crypto";
import { assertInvariant } from "../../../agents/coordination/contracts/errors.ts";
import type {
  MemoryAsOf,
  MemoryEntry,
  MemoryJournal,
  MemoryScope,
  MemoryWrite,
  WorkflowAppend,
} from "../../../agents/coordination/ports/workflow-store.ts";
import type { EntryRow, MemoryWrites } from "./memory-statements.ts";
import type { WorkflowReads } from "./workflow-statements.ts";

export function createMemoryJournal(
  read: <T>(run: (reads: WorkflowReads | undefined) => T) => Promise<T>,
  write: <T>(work: (writes: MemoryWrites) => T) => Promise<T>,
): MemoryJournal {
  return {
    list: ({ tenant, scope }, { now, limit, tag, asOf }) =>
      read((reads) => {
        const before = reads && placeOf(reads, asOf);
        if (before === undefined) return [];
        const filter = { tenant, scope, now, limit, before };
        const rows =
          tag === undefined ? reads?.entries.all(filter) : reads?.taggedEntries.all({ ...filter, tag });
        return (rows ?? []).map(entryOf);
      }),
    get: ({ tenant, scope }, id, { now, asOf }) =>
      read((reads) => {
        const before = reads && placeOf(reads, asOf);
        if (before === undefined) return undefined;
        const row = reads?.newestEntry.get({ tenant, scope, id, now, before });
        return row && entryOf(row);
      }),
    deleteExpired: (time, limit) => write(({ deleteEntries }) => deleteEntries.run(time, limit).changes),
  };
}

/** `undefined` for a run that the ledger does not know: it says nothing about any time. */
function placeOf({ place }: WorkflowReads, asOf: MemoryAsOf | undefined): number | undefined {
  if (!asOf) return Number.MAX_SAFE_INTEGER;
  return place.get({ runId: asOf.runId, sequence: asOf.sequence });
}

function entryOf(row: EntryRow): MemoryEntry {
  return {
    id: row.memory_id,
    content: row.content,
    tags: JSON.parse(row.tags) as string[],
    createdAt: row.created_at,
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
  };
}

/** Checks that each write has its own `memory.written` in the append. */
export function checkMemory({ runId, events, memory = [] }: WorkflowAppend): void {
  const first = events[0]?.sequence ?? 0;
  const sequences = new Set(memory.map(({ sequence }) => sequence));
  assertInvariant(sequences.size === memory.length, `two memory writes of ${runId} name one event`);
  for (const { entry, sequence } of memory) {
    const event = events[sequence - first];
    const isTold = event?.type === "memory.written" && event.payload.memoryId === entry.id;
    assertInvariant(isTold, `no memory.written tells of the write at ${runId}:${sequence}`);
    assertInvariant(
      entry.expiresAt === undefined || !Number.isNaN(Date.parse(entry.expiresAt)),
      `the expiry of the write at ${runId}:${sequence} is no time`,
    );
  }
}

/** Writes memory, after the events of the append were inserted. */
export function writeMemory(
  { putEntry, putTag }: MemoryWrites,
  { runKey, write }: { readonly runKey: number; readonly write: MemoryWrite },
): void {
  const { at, entry, sequence } = write;
  const { tenant, scope } = at;
  const { id, content, createdAt, expiresAt } = entry;
  const tags = JSON.stringify(entry.tags);
  putEntry.run({
    runKey,
    sequence,
    tenant,
    scope,
    id,
    content,
    tags,
    createdAt,
    expiresAt: expiresAt ?? null,
    expiresAtMs: expiresAt === undefined ? null : Date.parse(expiresAt),
    hash: hashEntry(at, {
      memory_id: id,
      content,
      tags,
      created_at: createdAt,
      expires_at: expiresAt ?? null,
    }),
  });
  for (const tag of new Set(entry.tags)) putTag.run({ tenant, scope, tag, runKey, sequence });
}

/** sha256 over all that a reader is given, 32 bytes. */
export function hashEntry({ tenant, scope }: MemoryScope, row: EntryRow): Buffer {
  const { memory_id, content, tags, created_at, expires_at } = row;
  return hash(
    "sha256",
    JSON.stringify([tenant, scope, memory_id, content, tags, created_at, expires_at]),
    "buffer",
  );
}
