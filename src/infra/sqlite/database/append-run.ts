/** Owns: what an append of either kind of run does to its log: compare-and-set (S1), the hash chain (S4), the run's row. */
import { chainRows, type StorableEvent } from "../../ledger/event-row.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
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

interface Grow {
  readonly statements: Writes;
  readonly head: Head | undefined;
  /** Gets the values of the events, to be written with those of the whole group. */
  readonly values: EventValue[];
}

/** Returns the run's key. */
export function growRun(growth: Growth, { statements, head, values }: Grow): number {
  const { rows, newest } = chainRows(growth, head?.head_hash);
  const runKey = writeRun(growth, { statements, head: newest, runKey: head?.run_key });
  for (const { sequence, type, timestamp_ms, node_id, causation_id, payload, hash } of rows)
    values.push(runKey, sequence, type, timestamp_ms, node_id, causation_id, payload, hash);
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
