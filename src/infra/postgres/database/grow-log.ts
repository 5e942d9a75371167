/** Owns: what an append of either kind of run does to its log: the hash chain (S4), the numbers of its events, the run's row. */
import { assertInvariant } from "../../../agents/coordination/contracts/errors.ts";
import { chainRows, type StorableEvent } from "../../ledger/event-row.ts";
import { mustTellOwner, findOwnerAfterAppend, type OwnedAppend } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
import type { GroupState, LogHead } from "./group.ts";

/** Events that are appended to the log of a run, with the fields of its row that they change. */
export interface LogGrowth extends OwnedAppend {
  readonly kind: RunKind;
  readonly events: readonly StorableEvent[];
  readonly hasEnded: boolean;
  /** JSON. */
  readonly summary: string;
  /** JSON; of a new run that is a fork. */
  readonly origin?: string | undefined;
}

/** The keys of a run and its appended events, and the hash of its last event. */
export interface GrownLog {
  readonly runKey: number;
  /** The number of an event of the append. */
  readonly eventKeyOf: (sequence: number) => number;
  /** The hash of the last event. */
  readonly newest: Buffer;
}

/**
 * Adds the events of an append and the changed row of their run to the rows that the group will write, and returns the
 * run's key and a function that finds the keys of the new events.
 */
export function growRun(growth: LogGrowth, head: LogHead | undefined, group: GroupState): GrownLog {
  const { runId, kind } = growth;
  const { rows, newest } = chainRows(growth, head?.head_hash);
  const runKey = head?.run_key ?? (group.newest.run += 1);
  const first = group.newest.event + 1;
  for (const row of rows) group.rows.events.push({ ...row, runKey, eventKey: (group.newest.event += 1) });
  const length = (rows.at(-1)?.sequence ?? 0) + 1;
  const end: LogHead = {
    run_key: runKey,
    length,
    head_hash: newest,
    kind,
    origin: chooseOrigin(growth, head),
    ...findOwnerAfterAppend(growth, head),
  };
  recordRunChange(growth, { end, before: head }, group);
  const firstSequence = rows[0]?.sequence ?? 0;
  return {
    runKey,
    newest,
    eventKeyOf: (sequence) => {
      const eventKey = first + sequence - firstSequence;
      assertInvariant(eventKey <= group.newest.event, `the event ${runId}:${sequence} is one of the append`);
      return eventKey;
    },
  };
}

/** A run has its origin from its first append on. */
function chooseOrigin({ origin }: LogGrowth, head: LogHead | undefined): string | null {
  return head ? head.origin : (origin ?? null);
}

/**
 * Records how the run is after an append. The last of several appends of a group to one run says how the run is after
 * the group.
 */
function recordRunChange(
  growth: LogGrowth,
  { end, before: head }: { readonly end: LogHead; readonly before: LogHead | undefined },
  { rows: { runs }, heads }: GroupState,
): void {
  const { runId, kind, hasEnded, summary } = growth;
  const earlierChange = runs.get(end.run_key);
  runs.set(end.run_key, {
    runId,
    kind,
    isNew: !head || earlierChange?.isNew === true,
    length: end.length,
    head: end.head_hash,
    ended: hasEnded || earlierChange?.ended === 1 ? 1 : 0,
    summary,
    origin: end.origin,
    owner_id: end.owner_id,
    owner_token: end.owner_token,
    arrived: mustTellOwner(growth, head) || earlierChange?.arrived === 1 ? 1 : 0,
  });
  heads.set(runId, end);
}
