/**
 * Owns: finding the host's task rows of all that a session has spawned, at any depth, also where the ledger knows
 * nothing of it.
 */
import { isRowOpen, type HostRuntime, type TaskRow } from "../host/host-runs.ts";

/** The host lets agents spawn no deeper. */
const SPAWN_DEPTH_MAX = 5;

interface RowBelow {
  /** The session that the row lies under. */
  readonly owner: string;
  readonly row: TaskRow;
}

/**
 * Yields, with the session that it lies under, the host's task row of each run that a session has spawned, to a
 * bounded depth, each before those below it are read.
 */
export async function* walkSpawnRows(
  runtime: HostRuntime,
  session: string,
  depth = SPAWN_DEPTH_MAX,
): AsyncGenerator<RowBelow, void, undefined> {
  if (depth === 0) return;
  const rows = await runtime.tasks.async.runs.bindSession({ sessionKey: session }).list();
  for (const row of rows) {
    yield { owner: session, row };
    const key = row.childSessionKey;
    if (key && key !== session) yield* walkSpawnRows(runtime, key, depth - 1);
  }
}

/**
 * Returns the time in Unix milliseconds at which the last of all runs below a session ended; 0 where it has spawned
 * none, and `undefined` while one is at work.
 */
export async function findLastSpawnEnd(runtime: HostRuntime, session: string): Promise<number | undefined> {
  let lastEndMs = 0;
  for await (const { row } of walkSpawnRows(runtime, session)) {
    if (isRowOpen(row)) return undefined;
    lastEndMs = Math.max(lastEndMs, row.endedAt ?? 0);
  }
  return lastEndMs;
}
