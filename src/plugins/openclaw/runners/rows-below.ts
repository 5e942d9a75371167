/**
 * Owns: finding the host's task rows of all that a session has spawned, at any depth, also where the ledger knows
 * nothing of it.
 */
import { isOpen, type HostRuntime, type TaskRow } from "../host/host-runs.ts";

/** The host lets agents spawn no deeper. */
const SPAWN_DEPTH_MAX = 5;

interface RowBelow {
  /** The session that the row lies under. */
  readonly owner: string;
  readonly row: TaskRow;
}

/** Yields the rows of what the agents of a session have spawned, each before those below it are read. */
export async function* walkRowsBelow(
  runtime: HostRuntime,
  session: string,
  depth = SPAWN_DEPTH_MAX,
): AsyncGenerator<RowBelow, void, undefined> {
  if (depth === 0) return;
  const rows = await runtime.tasks.async.runs.bindSession({ sessionKey: session }).list();
  for (const row of rows) {
    yield { owner: session, row };
    const key = row.childSessionKey;
    if (key && key !== session) yield* walkRowsBelow(runtime, key, depth - 1);
  }
}

/**
 * Returns when the last of all that a session has spawned ended; 0 where it has spawned none, `undefined` while one is
 * at work.
 */
export async function findLastEndBelow(runtime: HostRuntime, session: string): Promise<number | undefined> {
  let lastEndMs = 0;
  for await (const { row } of walkRowsBelow(runtime, session)) {
    if (isOpen(row)) return undefined;
    lastEndMs = Math.max(lastEndMs, row.endedAt ?? 0);
  }
  return lastEndMs;
}
