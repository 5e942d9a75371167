/**
 * Owns: how an event lies in a row, and the hash chain over a run's rows.
 *
 * S4 the hash covers every column of the event and the hash before it, so a changed, missing, added or swapped event
 * shows at its place. The chain of a fork begins with its origin, so that a changed one shows at the first event. The
 * event id is not stored: it follows from the run id, the origin and the sequence.
 */
import { hash } from "node:crypto";
import { epochMsOf, type CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { findEventId, type RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";

/** The fields that events of every kind of run have. */
export interface StorableEvent {
  readonly sequence: number;
  readonly type: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly nodeId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly payload: unknown;
}

export interface EventRow {
  readonly sequence: number;
  readonly type: string;
  readonly timestamp_ms: number;
  readonly node_id: string | null;
  readonly causation_id: string | null;
  /** JSON text. */
  readonly payload: string;
}

/** The hash before the first event of a run that is no fork. */
export const GENESIS_HASH = Buffer.alloc(32);

/** Returns what comes before the first event of a run with such an origin, as it is stored. */
export function genesisOf(origin: string | null): Buffer {
  return origin === null ? GENESIS_HASH : hash("sha256", origin, "buffer");
}

export function rowOf(event: StorableEvent): EventRow {
  return {
    sequence: event.sequence,
    type: event.type,
    timestamp_ms: epochMsOf(event.timestamp),
    node_id: event.nodeId ?? null,
    causation_id: event.causationId ?? null,
    payload: JSON.stringify(event.payload),
  };
}

/** The stored value as it is; the caller decodes it. May throw when the payload is not JSON. */
export function valueOf(runId: string, origin: RunOrigin | undefined, row: EventRow): unknown {
  return {
    eventId: findEventId(runId as CoordinationId, origin, row.sequence),
    runId,
    sequence: row.sequence,
    type: row.type,
    timestamp: new Date(row.timestamp_ms).toISOString(),
    ...(row.node_id !== null && { nodeId: row.node_id }),
    ...(row.causation_id !== null && { causationId: row.causation_id }),
    payload: JSON.parse(row.payload) as unknown,
  };
}

/** sha256, 32 bytes. */
export function chainHash(previous: Buffer, runId: string, row: EventRow): Buffer {
  const place = JSON.stringify([
    runId,
    row.sequence,
    row.type,
    row.timestamp_ms,
    row.node_id,
    row.causation_id,
  ]);
  const text = `${previous.toString("hex")}\n${place}\n${row.payload}`;
  // Half the cost of asking for a buffer.
  return Buffer.from(hash("sha256", text, "binary"), "latin1");
}

export interface Growth {
  readonly runId: string;
  readonly events: readonly StorableEvent[];
  /** As it is stored; of a new run that is a fork. */
  readonly origin?: string | undefined;
}

/** Returns the rows of new events with their hashes; `head` is the hash before them, absent for a new run. */
export function chainRows(
  { runId, events, origin }: Growth,
  head: Buffer | undefined,
): { readonly rows: readonly (EventRow & { readonly hash: Buffer })[]; readonly newest: Buffer } {
  let newest = head ?? genesisOf(origin ?? null);
  const rows = events.map((event) => {
    const row = rowOf(event);
    newest = chainHash(newest, runId, row);
    return { ...row, hash: newest };
  });
  return { rows, newest };
}
