/** Owns: what an append of either kind of run does to its log: compare-and-set (S1), the hash chain (S4), the run's row. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { chainHash, genesisOf, rowOf, type StorableEvent } from "./event-row.ts";
import type { RunKind } from "./run-statements.ts";
import type { EventValue, Head, Writes } from "./statements.ts";

export interface Growth {
  readonly runId: string;
  readonly kind: RunKind;
  readonly events: readonly StorableEvent[];
  readonly hasEnded: boolean;
  /** JSON. */
  readonly summary: string;
  /** JSON; of a new run that is a fork. */
  readonly origin?: string | undefined;
}

/** The conflict where the log is not as the append expects, with nothing written yet. */
export function logConflict(
  { runId, kind, events }: Pick<Growth, "runId" | "kind" | "events">,
  head: Head | undefined,
): CoordinationError | undefined {
  if (head && head.kind !== kind)
    return new CoordinationError("LEDGER_CONFLICT", `${runId} is not the log of a ${kind}`);
  const length = head?.length ?? 0;
  const expected = events[0]?.sequence;
  if (expected === length) return undefined;
  return new CoordinationError(
    "LEDGER_CONFLICT",
    `${runId} has ${length} events; the append expected ${expected}`,
  );
}

interface Grow {
  readonly statements: Writes;
  readonly head: Head | undefined;
  /** Gets the values of the events, to be written with those of the whole group. */
  readonly values: EventValue[];
}

/** Returns the run's key. */
export function growRun(growth: Growth, { statements, head, values }: Grow): number {
  const rows = growth.events.map(rowOf);
  const hashes: Buffer[] = [];
  let newest = head?.head_hash ?? genesisOf(growth.origin ?? null);
  for (const row of rows) {
    newest = chainHash(newest, growth.runId, row);
    hashes.push(newest);
  }
  const runKey = writeRun(growth, { statements, head: newest, runKey: head?.run_key });
  for (const [index, row] of rows.entries()) {
    const { sequence, type, timestamp_ms, node_id, causation_id, payload } = row;
    values.push(
      runKey,
      sequence,
      type,
      timestamp_ms,
      node_id,
      causation_id,
      payload,
      hashes[index] ?? newest,
    );
  }
  return runKey;
}

function writeRun(
  { runId, kind, events, hasEnded, summary, origin }: Growth,
  { statements, head, runKey }: { statements: Writes; head: Buffer; runKey: number | undefined },
): number {
  if (runKey === undefined) {
    const { insertRun } = statements;
    const values = [runId, kind, events.length, head, hasEnded ? 1 : 0, summary, origin ?? null] as const;
    return Number(insertRun.run(...values).lastInsertRowid);
  }
  const length = (events.at(-1)?.sequence ?? 0) + 1;
  const update = hasEnded ? statements.endRun : statements.growRun;
  update.run(length, head, summary, runKey);
  return runKey;
}
