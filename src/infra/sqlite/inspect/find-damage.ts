/** Owns: finding the first event of a run's log that is not as it was appended. */
import { setImmediate as othersTurn } from "node:timers/promises";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { RunOrigin } from "../../../agents/coordination/contracts/workflows/run-origin.ts";
import type { EventDamage } from "../../../agents/coordination/ports/run-store.ts";
import { chainHash, genesisOf, valueOf } from "../database/event-row.ts";
import { parseStoredOrigin } from "../database/stored-origin.ts";
import type { HashedRow, HeadRow, RunReads } from "../database/run-statements.ts";

/** Of one slice: about 10 ms of hashing and decoding. */
const EVENTS_AT_ONCE_MAX = 250;
const CHARS_AT_ONCE_MAX = 1_000_000;

type Read = <T>(run: (reads: RunReads) => T) => Promise<T>;

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

export async function findDamage(read: Read, range: Range): Promise<EventDamage | undefined> {
  let reached: Reached | undefined;
  while (range.before > 0) {
    const slice = await read((reads) => checkSlice(reads, range, reached));
    if ("damage" in slice) return slice.damage;
    reached = slice;
    await othersTurn();
  }
  return undefined;
}

function checkSlice(reads: RunReads, range: Range, reached: Reached | undefined): Slice {
  const head = reads.head.get(range.runId);
  if (!head) return createDamage(0, "event_missing");
  const stored = parseStoredOrigin(head.origin);
  if (stored.kind === "unreadable") return createDamage(0, "event_unreadable");
  const from = reached ?? { sequence: 0, hash: genesisOf(head.origin) };
  const slice = walk(reads, range, { origin: stored.kind === "known" ? stored.origin : undefined, from });
  if ("damage" in slice) return slice;
  if (slice.sequence >= range.before) return { damage: endDamage(head, slice) };
  return slice.sequence === from.sequence ? createDamage(slice.sequence, "event_missing") : slice;
}

interface Walk {
  readonly origin: RunOrigin | undefined;
  readonly from: Reached;
}

function walk({ hashedEvents }: RunReads, range: Range, { origin, from }: Walk): Slice {
  const { runId, before } = range;
  let reached = from;
  let chars = 0;
  for (const row of hashedEvents.iterate(runId, from.sequence, before)) {
    const problem = problemOf(row, { ...range, origin, reached });
    if (problem) return createDamage(reached.sequence, problem);
    reached = { sequence: reached.sequence + 1, hash: row.hash };
    chars += row.payload.length;
    if (reached.sequence - from.sequence >= EVENTS_AT_ONCE_MAX || chars >= CHARS_AT_ONCE_MAX) break;
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
