/**
 * Owns: which texts retention deletes, and in what portions: SQLite blocks the thread, so others have their turn
 * between two.
 *
 * A text is kept while `content_use` names it. Its mark `kept` says the same and is set with the row and taken with it,
 * in one transaction. Rows of coordinations that ended go first; then every old text without the mark goes.
 */
import { setImmediate as othersTurn } from "node:timers/promises";
import type BetterSqlite3 from "better-sqlite3";
import type { WriteStatements } from "./write-statements.ts";

/** Texts deleted in one transaction at most. */
const DELETED_AT_ONCE_MAX = 500;
/** Texts no longer kept after one transaction at most: each is read whole, and it may be long. */
const RELEASED_AT_ONCE_MAX = 100;
/** Coordinations that keep texts looked at in one go. */
const KEEPERS_AT_ONCE_MAX = 200;

export interface Retention {
  readonly database: BetterSqlite3.Database;
  readonly writes: () => WriteStatements;
  /** Runs one portion as a call of the store. */
  readonly portion: <T>(work: () => T) => Promise<T>;
}

/**
 * Deletes in portions the stored texts that are older than a time and that no run keeps any more, and returns how many
 * were deleted.
 */
export async function deleteTextsBefore(retention: Retention, time: number): Promise<number> {
  await releaseTexts(retention);
  const { writes, portion } = retention;
  return repeatPortions(DELETED_AT_ONCE_MAX, () => portion(() => deleteOldestTexts(writes(), time)));
}

/** Deletes one portion of the oldest texts that nobody keeps, and returns how many. */
function deleteOldestTexts({ hasExpired, deleteExpired }: WriteStatements, time: number): number {
  // Asked first, because a delete takes the write lock also when there is nothing to delete.
  return hasExpired.get(time) === undefined ? 0 : deleteExpired.run(time, DELETED_AT_ONCE_MAX).changes;
}

/** Ends the keeping of every text whose keepers have all ended. */
async function releaseTexts({ database, writes, portion }: Retention): Promise<void> {
  let after = 0;
  for (;;) {
    const keepers = await portion(() => writes().keepers.all(after, KEEPERS_AT_ONCE_MAX));
    const ended = keepers.filter((keeper) => keeper.ended === 1).map(({ run_key: runKey }) => runKey);
    if (ended.length > 0) {
      const release = database.transaction(() => releaseTextsOfRuns(writes(), ended));
      await repeatPortions(RELEASED_AT_ONCE_MAX, () => portion(() => release.immediate()));
    }
    const last = keepers.at(-1);
    if (!last || keepers.length < KEEPERS_AT_ONCE_MAX) return;
    after = last.run_key;
    await othersTurn();
  }
}

/**
 * Ends one portion of the keeping of texts by ended runs, and returns how many uses that were: a text counts once for
 * each run that kept it.
 */
function releaseTextsOfRuns(
  { unmarkKept, deleteUses }: WriteStatements,
  endedRunKeys: readonly number[],
): number {
  let released = 0;
  for (const runKey of endedRunKeys) {
    const limit = RELEASED_AT_ONCE_MAX - released;
    if (limit === 0) break;
    unmarkKept.run({ runKey, limit });
    released += deleteUses.run({ runKey, limit }).changes;
  }
  return released;
}

/** Repeats a portion while it did all it may do at once, and returns how much was done. */
async function repeatPortions(atOnceMax: number, portion: () => Promise<number>): Promise<number> {
  let total = 0;
  for (;;) {
    const doneCount = await portion();
    total += doneCount;
    if (doneCount < atOnceMax) return total;
    await othersTurn();
  }
}
