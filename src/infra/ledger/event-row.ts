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

/**
 * Returns the hash that the hash of a run's first event is chained to: zeros, or for a fork the hash of its origin's
 * JSON as it is stored.
 */
export function computeGenesisHash(origin: string | null): Buffer {
  return origin === null ? GENESIS_HASH : hash("sha256", origin, "buffer");
}

/** Returns the row of the event table that stores an event, with the payload as JSON and without hash. */
export function createEventRow(event: StorableEvent): EventRow {
  return {
    sequence: event.sequence,
    type: event.type,
    timestamp_ms: epochMsOf(event.timestamp),
    node_id: event.nodeId ?? null,
    causation_id: event.causationId ?? null,
    payload: JSON.stringify(event.payload),
  };
}

/**
 * Returns the event that a row of the event table stores, not yet validated; the caller decodes it. Throws a
 * `SyntaxError` where the payload is not JSON, and a `RangeError` where the time is none.
 */
export function rebuildEvent(runId: string, origin: RunOrigin | undefined, row: EventRow): unknown {
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

/** Returns the SHA-256 hash (32 bytes) over an event's row and the hash of the event before it in its run. */
export function hashChainedRow(previous: Buffer, runId: string, row: EventRow): Buffer {
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

/** Events that are to be chained by hash to those that a run has. */
export interface ChainGrowth {
  readonly runId: string;
  readonly events: readonly StorableEvent[];
  /** As it is stored; of a new run that is a fork. */
  readonly origin?: string | undefined;
}

/**
 * Returns the rows of events that are to be appended to a run, each with its hash, and the hash of the last one.
 * `head`: the hash of the run's last stored event; absent for a new run.
 */
export function chainRows(
  { runId, events, origin }: ChainGrowth,
  head: Buffer | undefined,
): { readonly rows: readonly (EventRow & { readonly hash: Buffer })[]; readonly newest: Buffer } {
  let newest = head ?? computeGenesisHash(origin ?? null);
  const rows = events.map((event) => {
    const row = createEventRow(event);
    newest = hashChainedRow(newest, runId, row);
    return { ...row, hash: newest };
  });
  return { rows, newest };
}
