/** Owns: finding the first event of a run's log that is not as it was appended. */
import { setImmediate as othersTurn } from "node:timers/promises";
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { EventDamage } from "../../agents/coordination/ports/run-store.ts";
import { hashChainedRow, computeGenesisHash } from "./event-row.ts";
import { readStoredEvent } from "./read-events.ts";
import { parseStoredOrigin } from "./stored-origin.ts";
import type { SliceBounds } from "./row-slice.ts";
import type { HashedRow, HeadRow } from "./stored-run.ts";

/** Bounds of one slice: about 10 ms of hashing and decoding. */
const AT_ONCE_MAX: SliceBounds = { events: 250, chars: 1_000_000 };

/** Rows of a log, and the row of its run as it was no later than they. */
export interface HashedSlice {
  readonly head: HeadRow | undefined;
  readonly rows: readonly HashedRow[];
}

/** Reads the events of a run from a place on and before another, within bounds. */
export type ReadHashed = (
  range: { readonly runId: string; readonly from: number; readonly before: number },
  bounds: SliceBounds,
) => Promise<HashedSlice>;

/** The part of a run's log that is looked at for damage. */
interface CheckedRange {
  readonly runId: string;
  readonly before: number;
  /** Throws for what is no event of such a run. */
  readonly decode: (value: unknown) => unknown;
}

/** Where the next slice begins, and the hash before it. */
interface ReachedEvent {
  readonly sequence: number;
  readonly hash: Buffer;
}

/** The result of checking a slice: where the next one begins, or the damage. */
type SliceCheck = ReachedEvent | { readonly damage: EventDamage | undefined };

/**
 * Reads a run's events before a sequence, in slices that let other work run, and returns the first one that is not as
 * it was appended, with how it differs; `undefined` where all are intact.
 */
export async function findEventDamage(
  read: ReadHashed,
  range: CheckedRange,
): Promise<EventDamage | undefined> {
  const { runId, before } = range;
  let reached: ReachedEvent | undefined;
  while (before > 0) {
    const hashed = await read({ runId, before, from: reached?.sequence ?? 0 }, AT_ONCE_MAX);
    const slice = checkSlice(hashed, range, reached);
    if ("damage" in slice) return slice.damage;
    reached = slice;
    await othersTurn();
  }
  return undefined;
}

/** Checks a slice of a log against its hashes. Returns its damage, or where the next slice begins. */
function checkSlice(
  { head, rows }: HashedSlice,
  range: CheckedRange,
  reached: ReachedEvent | undefined,
): SliceCheck {
  if (!head) return createDamage(0, "event_missing");
  const stored = parseStoredOrigin(head.origin);
  if (stored.kind === "unreadable") return createDamage(0, "event_unreadable");
  const from = reached ?? { sequence: 0, hash: computeGenesisHash(head.origin) };
  const slice = checkChainedRows(rows, range, {
    origin: stored.kind === "known" ? stored.origin : undefined,
    from,
  });
  if ("damage" in slice) return slice;
  if (slice.sequence >= range.before) return { damage: findEndDamage(head, slice) };
  return slice.sequence === from.sequence ? createDamage(slice.sequence, "event_missing") : slice;
}

/** Where a run has its events from, and where the slice begins. */
interface ChainWalk {
  readonly origin: RunOrigin | undefined;
  readonly from: ReachedEvent;
}

/** Follows the chain of rows. Returns the damage of the first wrong one, or the place behind the last. */
function checkChainedRows(
  rows: readonly HashedRow[],
  range: CheckedRange,
  { origin, from }: ChainWalk,
): SliceCheck {
  let reached = from;
  for (const row of rows) {
    const problem = findRowProblem(row, { ...range, origin, reached });
    if (problem) return createDamage(reached.sequence, problem);
    reached = { sequence: reached.sequence + 1, hash: row.hash };
  }
  return reached;
}

function createDamage(sequence: number, problem: EventDamage["problem"]): SliceCheck {
  return { damage: { sequence, problem } };
}

/** The place in the chain that the next row must fit to. */
interface ExpectedRow extends CheckedRange {
  readonly origin: RunOrigin | undefined;
  readonly reached: ReachedEvent;
}

function findRowProblem(
  row: HashedRow,
  { runId, origin, reached, decode }: ExpectedRow,
): EventDamage["problem"] | undefined {
  if (row.sequence !== reached.sequence) return "event_missing";
  if (!hashChainedRow(reached.hash, runId, row).equals(row.hash)) return "event_changed";
  try {
    decode(readStoredEvent(runId, origin, row));
    return undefined;
  } catch (error) {
    if (isCoordinationError(error)) return "event_unreadable";
    throw error;
  }
}

/**
 * Returns the damage of a log that does not end as the run's row says. Its last event could have been exchanged
 * together with its hash.
 */
function findEndDamage(
  { length, head_hash }: HeadRow,
  { sequence, hash }: ReachedEvent,
): EventDamage | undefined {
  if (sequence !== length || hash.equals(head_hash)) return undefined;
  return { sequence: sequence - 1, problem: "event_changed" };
}
