/** Owns: what an append of either kind of run does to its log: compare-and-set (S1), the hash chain (S4), the run's row. */
import { chainRows, type StorableEvent } from "../../ledger/event-row.ts";
import { mustTellOwner, findOwnerAfterAppend, type OwnedAppend } from "../../ledger/owner-fence.ts";
import type { RunKind } from "../../ledger/stored-run.ts";
import type { LogHead, WriteStatements } from "./write-statements.ts";

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

/**
 * Inserts the events of an append and inserts or updates the row of their run, within the caller's transaction, and
 * returns the run's key.
 */
export function growRun(growth: LogGrowth, statements: WriteStatements, head: LogHead | undefined): number {
  const { rows, newest } = chainRows(growth, head?.head_hash);
  const runKey = writeRunRow(growth, { statements, head, newest });
  for (const { sequence, type, timestamp_ms, node_id, causation_id, payload, hash } of rows)
    statements.insertEvent.run(runKey, sequence, type, timestamp_ms, node_id, causation_id, payload, hash);
  return runKey;
}

/** Inserts the run, or brings its row to the end of its log, and returns its key. */
function writeRunRow(
  growth: LogGrowth,
  {
    statements,
    head,
    newest,
  }: { readonly statements: WriteStatements; readonly head: LogHead | undefined; readonly newest: Buffer },
): number {
  const { events, hasEnded, summary } = growth;
  if (!head) return insertRunRow(growth, statements, newest);
  const length = (events.at(-1)?.sequence ?? 0) + 1;
  const update = hasEnded ? statements.endRun : statements.growRun;
  update.run(length, newest, summary, head.run_key);
  if (mustTellOwner(growth, head)) statements.markArrived.run(head.run_key);
  return head.run_key;
}

/** Inserts the row of a new run and returns its key. */
function insertRunRow(growth: LogGrowth, { insertRun: insert }: WriteStatements, newest: Buffer): number {
  const { runId, kind, events, hasEnded, summary, origin = null } = growth;
  const { owner_id, owner_token } = findOwnerAfterAppend(growth, undefined);
  const ended = hasEnded ? 1 : 0;
  const values = [runId, kind, events.length, newest, ended, summary, origin, owner_id, owner_token] as const;
  return Number(insert.run(...values).lastInsertRowid);
}
