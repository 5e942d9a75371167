/**
 * Owns: the one queue of all that is written to a ledger: appends to runs of every kind and what lies beside them.
 * Writes that wait together are committed together, with one fsync.
 */
import type BetterSqlite3 from "better-sqlite3";
import { CoordinationError, assertInvariant } from "../../../agents/coordination/contracts/errors.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import { createGroupCommit } from "../../ledger/group-commit.ts";
import { runWithLedgerErrors } from "./sqlite-errors.ts";
import type { WriteStatements } from "./write-statements.ts";

/** Writes committed in one transaction at most: bounds how long a commit blocks the thread. */
const GROUP_MAX = 256;

/** The state that the writes of one group share. */
export interface WriteGroup {
  readonly statements: WriteStatements;
  /** Taken once the database is locked: something may run out while the lock is waited for. */
  readonly now: number;
}

/** Returns why nothing of it was written. May be run again, where another write broke its group. */
export type GroupedWrite = (group: WriteGroup) => Error | undefined;

export interface WriteQueue {
  /** Resolves when what it wrote is on disk. */
  submit(write: GroupedWrite): Promise<void>;
  /** Does work in the transaction of a group and resolves with what it returned, when that is on disk. */
  run<T>(work: () => T): Promise<T>;
  drained(): Promise<void>;
}

/** An open ledger, as the stores on it use it. */
export interface OpenLedger {
  readonly database: BetterSqlite3.Database;
  /** Runs a read as a call of the ledger. */
  readonly guarded: <T>(run: () => T) => Promise<T>;
  /** Runs what writes as a call of the ledger. */
  readonly queued: <T>(write: (queue: WriteQueue) => Promise<T>) => Promise<T>;
}

export interface WriteQueueOptions {
  readonly database: BetterSqlite3.Database;
  /** @throws CoordinationError where the ledger is open for reading only. */
  readonly writes: () => WriteStatements;
  readonly clock: Clock;
  readonly path: string;
}

/**
 * Creates the queue that writes to a ledger file; writes that wait together are made in one transaction, `GROUP_MAX`
 * at most. An error that a write returns leaves out that write alone.
 */
export function createWriteQueue(options: WriteQueueOptions): WriteQueue {
  const { database, path } = options;
  const transaction = database.transaction((writes: readonly GroupedWrite[]) => writeGroup(writes, options));
  const commit = (writes: readonly GroupedWrite[]): (Error | undefined)[] => {
    options.writes();
    return runWithLedgerErrors(path, () => transaction.immediate(writes));
  };
  const group = createGroupCommit((writes: readonly GroupedWrite[]) => commitGroup(writes, commit), {
    groupMax: GROUP_MAX,
  });
  return {
    ...group,
    run: async <T>(work: () => T) => {
      let outcome: { readonly result: T } | undefined;
      await group.submit(() => {
        outcome = { result: work() };
        return undefined;
      });
      assertInvariant(outcome !== undefined, "a write that was committed was done");
      return outcome.result;
    },
  };
}

/** Commits writes together. Returns, by write, why it was not made. */
type GroupCommitter = (writes: readonly GroupedWrite[]) => (Error | undefined)[];

/**
 * Commits a group in one transaction, and each write by itself when one of them breaks the group. Returns the error of
 * each write, in order.
 */
function commitGroup(writes: readonly GroupedWrite[], commit: GroupCommitter): (Error | undefined)[] {
  try {
    return commit(writes);
  } catch (error) {
    const isOfOne = error instanceof CoordinationError && error.code === "LEDGER_CONFLICT";
    if (!isOfOne || writes.length === 1) throw error;
    return writes.map((write) => {
      try {
        return commit([write])[0];
      } catch (writeError) {
        return writeError as Error;
      }
    });
  }
}

/** Runs the writes of a group and returns why each was refused; `undefined` for one that was written. */
function writeGroup(
  writes: readonly GroupedWrite[],
  { writes: prepared, clock }: WriteQueueOptions,
): (Error | undefined)[] {
  const group: WriteGroup = { statements: prepared(), now: clock.now() };
  return writes.map((write) => write(group));
}
