/**
 * Owns: which texts retention deletes, and in what portions: between two, appends have their turn.
 *
 * A text is kept while `content_use` names it. Its mark `kept` says the same and is set with the row and taken with it,
 * in one transaction. Rows of coordinations that ended go first; then every old text without the mark goes.
 */
import type { OpenLedger } from "./commit-queue.ts";
import { runTransaction, type SendQuery } from "./connect.ts";
import { lockLedger } from "./lock-ledger.ts";

/** Texts deleted in one transaction at most. */
const DELETED_AT_ONCE_MAX = 500;
/** Texts no longer kept after one transaction at most. */
const RELEASED_AT_ONCE_MAX = 500;

export interface Retention extends Pick<OpenLedger, "database" | "written"> {
  readonly busyTimeoutMs: number;
}

/**
 * Deletes in portions the stored texts that are older than a time and that no run keeps any more, and returns how many
 * were deleted.
 */
export async function deleteTextsBefore(retention: Retention, time: number): Promise<number> {
  const { written } = retention;
  await repeatPortions(RELEASED_AT_ONCE_MAX, () => written(() => releaseTexts(retention)));
  return repeatPortions(DELETED_AT_ONCE_MAX, () => written((write) => deleteOldestTexts(write, time)));
}

/** Deletes one portion of the oldest texts that nobody keeps, and returns how many. */
async function deleteOldestTexts(write: SendQuery, time: number): Promise<number> {
  const deleted = await write(
    `delete from content
     where kept = 0
       and stored_at_ms < @time
       and sha256 in (
         select sha256
         from content
         where kept = 0 and stored_at_ms < @time
         order by stored_at_ms
         limit @limit
       )
     returning 1`,
    { time, limit: DELETED_AT_ONCE_MAX },
  );
  return deleted.length;
}

/**
 * Ends one portion of what ended coordinations keep, and returns how much. Behind the lock of the ledger: an append
 * that keeps one of the texts at the same time would find the mark still there, and it would be taken from it.
 */
function releaseTexts({ database, busyTimeoutMs }: Retention): Promise<number> {
  return runTransaction(database, async (query) => {
    await Promise.all(lockLedger(query, { busyTimeoutMs }));
    const released = await query<{ sha256: string }>(
      `delete from content_use
       where (run_key, sha256) in (
         select run_key, sha256
         from content_use
         join run using (run_key)
         where run.ended = 1
         order by run_key, sha256
         limit @limit
       )
       returning sha256`,
      { limit: RELEASED_AT_ONCE_MAX },
    );
    await clearKeptMarks(query, released);
    return released.length;
  });
}

/** Clears the mark `kept` of those of the given texts that no run uses any more, so that they can be deleted. */
export async function clearKeptMarks(
  query: SendQuery,
  released: readonly { readonly sha256: string }[],
): Promise<void> {
  if (released.length === 0) return;
  await query(
    `update content
     set kept = 0
     where sha256 = any (@sha256s::text[])
       and not exists (select 1 from content_use where content_use.sha256 = content.sha256)`,
    { sha256s: released.map(({ sha256 }) => sha256) },
  );
}

/** Repeats a portion while it did all it may do at once, and returns how much was done. */
async function repeatPortions(atOnceMax: number, portion: () => Promise<number>): Promise<number> {
  let total = 0;
  for (;;) {
    const count = await portion();
    total += count;
    if (count < atOnceMax) return total;
  }
}
