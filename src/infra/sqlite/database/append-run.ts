/** Owns: what an append of either kind of run does to its log: compare-and-set (S1), the hash chain (S4), the run's row. */
import { chainRows, type StorableEvent } from "../../ledger/event-row.ts";
import { isArrival, findOwnerAfter, type OwnedAppend } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
import type { Head, Writes } from "./statements.ts";

export interface Growth extends OwnedAppend {
  readonly kind: RunKind;
  readonly events: readonly StorableEvent[];
  readonly hasEnded: boolean;
  /** JSON. */
  readonly summary: string;
  /** JSON; of a new run that is a fork. */
  readonly origin?: string | undefined;
}

/** Returns the run's key. */
export function growRun(growth: Growth, statements: Writes, head: Head | undefined): number {
  const { rows, newest } = chainRows(growth, head?.head_hash);
  const runKey = writeRun(growth, { statements, head, newest });
  for (const { sequence, type, timestamp_ms, node_id, causation_id, payload, hash } of rows)
    statements.insertEvent.run(runKey, sequence, type, timestamp_ms, node_id, causation_id, payload, hash);
  return runKey;
}

function writeRun(
  growth: Growth,
  {
    statements,
    head,
    newest,
  }: { readonly statements: Writes; readonly head: Head | undefined; readonly newest: Buffer },
): number {
  const { events, hasEnded, summary } = growth;
  if (!head) return insertRun(growth, statements, newest);
  const length = (events.at(-1)?.sequence ?? 0) + 1;
  const update = hasEnded ? statements.endRun : statements.growRun;
  update.run(length, newest, summary, head.run_key);
  if (isArrival(growth, head)) statements.markArrived.run(head.run_key);
  return head.run_key;
}

function insertRun(growth: Growth, { insertRun: insert }: Writes, newest: Buffer): number {
  const { runId, kind, events, hasEnded, summary, origin = null } = growth;
  const { owner_id, owner_token } = findOwnerAfter(growth, undefined);
  const ended = hasEnded ? 1 : 0;
  const values = [runId, kind, events.length, newest, ended, summary, origin, owner_id, owner_token] as const;
  return Number(insert.run(...values).lastInsertRowid);
}
