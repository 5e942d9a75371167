/** Owns: how an entry of a workflow run's memory lies in a row, its hash, and what an append may write of it. */
import { hash } from "node:crypto";
import { assertInvariant } from "../../agents/coordination/contracts/errors.ts";
import type {
  MemoryEntry,
  MemoryScope,
  WorkflowAppend,
} from "../../agents/coordination/ports/workflow-store.ts";

export interface EntryRow {
  readonly memory_id: string;
  readonly content: string;
  /** JSON. */
  readonly tags: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** Returns the memory entry that a row of the memory table stores. Throws where its tags are not JSON. */
export function memoryFromRow(row: EntryRow): MemoryEntry {
  return {
    id: row.memory_id,
    content: row.content,
    tags: JSON.parse(row.tags) as string[],
    createdAt: row.created_at,
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
  };
}

/**
 * Checks that each memory write of an append has an event `memory.written` of its own in that append, and an expiry
 * that is a time. @throws InvariantViolation
 */
export function assertMemoryWritesMatchEvents({ runId, events, memory = [] }: WorkflowAppend): void {
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

/**
 * Returns the SHA-256 hash (32 bytes) over all that a reader of a memory entry is given, and the scope that it is in.
 */
export function hashMemoryEntry({ tenant, scope }: MemoryScope, row: EntryRow): Buffer {
  const { memory_id, content, tags, created_at, expires_at } = row;
  return hash(
    "sha256",
    JSON.stringify([tenant, scope, memory_id, content, tags, created_at, expires_at]),
    "buffer",
  );
}
