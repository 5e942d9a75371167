/**
 * Owns: the memory of workflow runs as it lies beside their logs. Every entry has the number of the event that tells of it,
 * and events are numbered over the whole ledger: what was there before an event of some run is a range (MAE-3).
 */
import type {
  MemoryAsOf,
  MemoryJournal,
  MemoryWrite,
} from "../../../agents/coordination/ports/workflow-store.ts";
import { hashMemoryEntry, memoryFromRow } from "../../ledger/memory-entries.ts";
import { eventNumberFromPosition, POSITION_NOW } from "../../ledger/position-sql.ts";
import type { MemoryWrites } from "./memory-statements.ts";
import type { WorkflowReads } from "./workflow-statements.ts";

/**
 * Creates the store of the memory of workflows in a ledger file: lists and finds entries, as of now or of an event,
 * and deletes expired ones. A schema without memory holds no entry.
 */
export function createMemoryJournal(
  read: <T>(run: (reads: WorkflowReads | undefined) => T) => Promise<T>,
  write: <T>(work: (writes: MemoryWrites) => T) => Promise<T>,
): MemoryJournal {
  return {
    list: ({ tenant, scope }, { now, limit, tag, asOf }) =>
      read((reads) => {
        const before = reads && findEventNumber(reads, asOf);
        if (before === undefined) return [];
        const filter = { tenant, scope, now, limit, before };
        const rows =
          tag === undefined ? reads?.entries.all(filter) : reads?.taggedEntries.all({ ...filter, tag });
        return (rows ?? []).map(memoryFromRow);
      }),
    get: ({ tenant, scope }, id, { now, asOf }) =>
      read((reads) => {
        const before = reads && findEventNumber(reads, asOf);
        if (before === undefined) return undefined;
        const row = reads?.newestEntry.get({ tenant, scope, id, now, before });
        return row && memoryFromRow(row);
      }),
    deleteExpired: (time, limit) => write(({ deleteEntries }) => deleteEntries.run(time, limit).changes),
  };
}

/**
 * Returns the number of the first event that a reader as of a run's event does not see. `undefined` for a run that the
 * ledger does not know: it says nothing about any time.
 */
function findEventNumber(
  { position: find }: WorkflowReads,
  asOf: MemoryAsOf | undefined,
): number | undefined {
  const position = asOf ? find.get({ runId: asOf.runId, sequence: asOf.sequence }) : POSITION_NOW;
  return position === undefined ? undefined : eventNumberFromPosition(position);
}

/**
 * Inserts a memory entry of an append with its tags. Only to be called after the events of the append were inserted,
 * because the entry refers to one.
 */
export function writeMemoryEntry(
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
    hash: hashMemoryEntry(at, {
      memory_id: id,
      content,
      tags,
      created_at: createdAt,
      expires_at: expiresAt ?? null,
    }),
  });
  for (const tag of new Set(entry.tags)) putTag.run({ tenant, scope, tag, runKey, sequence });
}
