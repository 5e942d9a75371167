/**
 * Owns: the one queue of all that this process writes to a ledger's log and beside it. Writes that wait together are committed
 * together, with one flush of the server.
 *
 * A connection may end after the commit was sent and before it was answered. Then the group is written again: behind the lock of
 * the ledger each write finds its events in their places with their hashes, and is done, or finds the places free.
 */
import { setImmediate as passTurn, setTimeout as passed } from "node:timers/promises";
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import { createGroupCommit } from "../../ledger/group-commit.ts";
import type { PostgresDatabase, SendQuery, WriterConnection } from "./connect.ts";
import { createWanted, type GroupedWrite } from "./group.ts";
import { isConnectionLostError, toPostgresLedgerError } from "./postgres-errors.ts";
import { readGroup } from "./read-group.ts";
import { sendGroupRows } from "./write-group.ts";

/** Writes committed in one transaction at most. */
const GROUP_MAX = 256;
/** With escapes and in UTF-8 a statement of so many characters is far from the 512 MB that the driver can send. */
const GROUP_CHARS_MAX = 16_000_000;
/** How long it is asked what became of a commit that was not answered. */
const FIND_OUT_MS = 10_000;
const TRY_AGAIN_MS = 50;

export interface WriteQueue {
  /** Resolves when what it wrote is on disk. */
  submit(write: GroupedWrite): Promise<void>;
  drained(): Promise<void>;
}

/** An open ledger, as the stores on it use it. */
export interface OpenLedger {
  readonly database: PostgresDatabase;
  /** Runs what only reads as a call of the ledger. */
  readonly guarded: <T>(run: () => Promise<T>) => Promise<T>;
  /** Runs what writes as a call of the ledger, and lends it what sends statements that write by themselves. */
  readonly written: <T>(run: (write: SendQuery) => Promise<T>) => Promise<T>;
  /** Runs what writes to the log as a call of the ledger. */
  readonly queued: <T>(write: (queue: WriteQueue) => Promise<T>) => Promise<T>;
}

export interface WriteQueueOptions {
  readonly database: PostgresDatabase;
  readonly clock: Clock;
  readonly busyTimeoutMs: number;
}

/**
 * Creates the queue of all that this process writes to a PostgreSQL ledger; writes that wait together are committed in
 * one transaction, within bounds.
 */
export function createWriteQueue(options: WriteQueueOptions): WriteQueue {
  return createGroupCommit((writes: readonly GroupedWrite[]) => commitGroup(writes, options), {
    groupMax: GROUP_MAX,
    charsMax: GROUP_CHARS_MAX,
    countChars: ({ chars }) => chars,
  });
}

/** By write of a group: why it was not made; `undefined` where it was. */
type WriteErrors = (Error | undefined)[];

/**
 * Commits a group in one transaction, and each write by itself when one of them breaks the group. Returns the error of
 * each write, in order.
 */
async function commitGroup(
  writes: readonly GroupedWrite[],
  options: WriteQueueOptions,
): Promise<WriteErrors> {
  try {
    return await commitUntilKnown(writes, options);
  } catch (error) {
    if (!isErrorOfOneWrite(error) || writes.length === 1) throw error;
    const errors: WriteErrors = [];
    for (const write of writes) errors.push(await commitAlone(write, options));
    return errors;
  }
}

/** True where one of the writes is refused, and not where the server or the way to it fails. */
function isErrorOfOneWrite(error: unknown): boolean {
  return isCoordinationError(error) && (error.code === "LEDGER_CONFLICT" || error.code === "INPUT_INVALID");
}

/** Commits a write by itself, and returns its error instead of throwing it. */
async function commitAlone(write: GroupedWrite, options: WriteQueueOptions): Promise<Error | undefined> {
  try {
    return (await commitUntilKnown([write], options))[0];
  } catch (error) {
    return error as Error;
  }
}

/**
 * Commits a group. Where the answer to the commit was lost, tries again until it is known whether it was committed;
 * throws `LEDGER_UNAVAILABLE` where that is not known after `FIND_OUT_MS`.
 */
async function commitUntilKnown(
  writes: readonly GroupedWrite[],
  options: WriteQueueOptions,
): Promise<WriteErrors> {
  let attempt = await tryCommit(writes, options);
  // A connection that had been idle may have ended meanwhile; nothing was committed with it.
  if (attempt.kind === "failed" && attempt.failedAt === "begin") attempt = await tryCommit(writes, options);
  let untilMs: number | undefined;
  while (attempt.kind === "failed") {
    const { failedAt, error } = attempt;
    if (failedAt === "commit") {
      // It may have taken a minute to be sure that there is no answer.
      untilMs ??= performance.now() + FIND_OUT_MS;
      notifyWrites(writes, "lose");
    }
    if (untilMs === undefined) throw error;
    if (performance.now() >= untilMs) throw createUnknownOutcomeError(error);
    await passed(TRY_AGAIN_MS);
    attempt = await tryCommit(writes, options);
  }
  notifyWrites(writes, "settle");
  return attempt.errors;
}

/** Tells each write that it is not known whether its group was committed, or that it is known now. */
function notifyWrites(writes: readonly GroupedWrite[], news: "lose" | "settle"): void {
  for (const write of writes) write[news]?.();
}

function createUnknownOutcomeError(cause: CoordinationError): CoordinationError {
  return new CoordinationError(
    "LEDGER_UNAVAILABLE",
    `${cause.message}; whether the last append was committed is not known yet: the next try of it finds out`,
    { cause },
  );
}

/** The result of one attempt to commit a group. */
type CommitAttempt =
  | { readonly kind: "committed"; readonly errors: WriteErrors }
  /** `begin`: the connection was lost before the commit was sent. `commit`: it was lost after that. */
  | {
      readonly kind: "failed";
      readonly failedAt: "connect" | "begin" | "write" | "commit";
      readonly error: CoordinationError;
    };

/** Makes the writes of a group and commits them once. Returns their errors, or at which step it failed. */
async function tryCommit(
  writes: readonly GroupedWrite[],
  options: WriteQueueOptions,
): Promise<CommitAttempt> {
  const { database, clock, busyTimeoutMs } = options;
  let failedAt: "connect" | "begin" | "commit" = "connect";
  let writer: WriterConnection | undefined;
  let isBroken = true;
  try {
    writer = await database.connectWriter();
    failedAt = "begin";
    const wanted = createWanted();
    for (const write of writes) write.want(wanted);
    const group = await readGroup(writer.query, wanted, { busyTimeoutMs, now: () => clock.now() });
    const errors = writes.map((write) => write.apply(group));
    const written = sendGroupRows(writer.query, group);
    // The driver throws at once where it cannot send a statement, and the server would commit the others.
    await Promise.race([written, passTurn()]);
    failedAt = "commit";
    await Promise.all([written, writer.query("commit")]);
    isBroken = false;
    return { kind: "committed", errors };
  } catch (cause) {
    const isLost = isConnectionLostError(cause);
    const error = toPostgresLedgerError(cause, database);
    // A server that takes no writes may be a primary of before: the next connection leads to the one of now.
    if (writer && isErrorOfOneWrite(error)) isBroken = !(await cancelTransaction(writer));
    return { kind: "failed", failedAt: isLost || failedAt === "connect" ? failedAt : "write", error };
  } finally {
    writer?.release(isBroken);
  }
}

/** Rolls the transaction back, and returns whether the connection may be used again. */
async function cancelTransaction(writer: WriterConnection): Promise<boolean> {
  try {
    await writer.query("rollback");
    return true;
  } catch {
    return false;
  }
}
