/** Owns: finding the first event of a run's log that is not as it was appended. */
import { setImmediate as othersTurn } from "node:timers/promises";
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";
import type { EventDamage } from "../../agents/coordination/ports/run-store.ts";
import { chainHash, genesisOf, valueOf } from "./event-row.ts";
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

interface Range {
  readonly runId: string;
  readonly before: number;
  /** Throws for what is no event of such a run. */
  readonly decode: (value: unknown) => unknown;
}

/** Where the next slice begins, and the hash before it. */
interface Reached {
  readonly sequence: number;
  readonly hash: Buffer;
}

type Slice = Reached | { readonly damage: EventDamage | undefined };

export async function findDamage(read: ReadHashed, range: Range): Promise<EventDamage | undefined> {
  const { runId, before } = range;
  let reached: Reached | undefined;
  while (before > 0) {
    const hashed = await read({ runId, before, from: reached?.sequence ?? 0 }, AT_ONCE_MAX);
    const slice = checkSlice(hashed, range, reached);
    if ("damage" in slice) return slice.damage;
    reached = slice;
    await othersTurn();
  }
  return undefined;
}

function checkSlice({ head, rows }: HashedSlice, range: Range, reached: Reached | undefined): Slice {
  if (!head) return createDamage(0, "event_missing");
  const stored = parseStoredOrigin(head.origin);
  if (stored.kind === "unreadable") return createDamage(0, "event_unreadable");
  const from = reached ?? { sequence: 0, hash: genesisOf(head.origin) };
  const slice = walk(rows, range, { origin: stored.kind === "known" ? stored.origin : undefined, from });
  if ("damage" in slice) return slice;
  if (slice.sequence >= range.before) return { damage: endDamage(head, slice) };
  return slice.sequence === from.sequence ? createDamage(slice.sequence, "event_missing") : slice;
}

interface Walk {
  readonly origin: RunOrigin | undefined;
  readonly from: Reached;
}

function walk(rows: readonly HashedRow[], range: Range, { origin, from }: Walk): Slice {
  let reached = from;
  for (const row of rows) {
    const problem = problemOf(row, { ...range, origin, reached });
    if (problem) return createDamage(reached.sequence, problem);
    reached = { sequence: reached.sequence + 1, hash: row.hash };
  }
  return reached;
}

function createDamage(sequence: number, problem: EventDamage["problem"]): Slice {
  return { damage: { sequence, problem } };
}

interface Expected extends Range {
  readonly origin: RunOrigin | undefined;
  readonly reached: Reached;
}

function problemOf(
  row: HashedRow,
  { runId, origin, reached, decode }: Expected,
): EventDamage["problem"] | undefined {
  if (row.sequence !== reached.sequence) return "event_missing";
  if (!chainHash(reached.hash, runId, row).equals(row.hash)) return "event_changed";
  try {
    decode(valueOf(runId, origin, row));
    return undefined;
  } catch (error) {
    if (error instanceof SyntaxError || isCoordinationError(error)) return "event_unreadable";
    throw error;
  }
}

/** The last event of a log could have been exchanged together with its hash; the run's row knows the hash too. */
function endDamage({ length, head_hash }: HeadRow, { sequence, hash }: Reached): EventDamage | undefined {
  if (sequence !== length || hash.equals(head_hash)) return undefined;
  return { sequence: sequence - 1, problem: "event_changed" };
}
