/** Owns: reading the state of a coordination from its stored log, also from a log that may be damaged. */
import { CoordinationError, InvariantViolation, isLogDamage } from "../../contracts/errors.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import { evolve } from "../../ledger/evolve.ts";
import { createUnopenedCoordination, type Coordination } from "../../ledger/state.ts";
import type { LogReader } from "../../ports/ledger-store.ts";
import { readLog } from "./read-pages.ts";

/**
 * Returns the state that a coordination's stored events fold to, or those before `to`; an unopened one where there are
 * none. @throws CoordinationError as `LedgerStore.read`, or `INVARIANT_VIOLATED`
 */
export async function readState(
  store: LogReader,
  runId: CoordinationId,
  to = Number.MAX_SAFE_INTEGER,
): Promise<Coordination> {
  let state: Coordination = createUnopenedCoordination(runId);
  for await (const page of readLog(store, runId, { to }))
    for (const event of page) state = evolve(state, event);
  return state;
}

/**
 * Returns the same as `readState`; events that break a rule count as damage of the log. @throws CoordinationError as
 * `LedgerStore.read`, or `LEDGER_CORRUPT`
 */
export async function readStoredState(
  store: LogReader,
  runId: CoordinationId,
  to?: number,
): Promise<Coordination> {
  try {
    return await readState(store, runId, to);
  } catch (cause) {
    // Stored events obeyed every rule when they were written: a log that breaks one now is damaged.
    if (!(cause instanceof InvariantViolation)) throw cause;
    throw new CoordinationError("LEDGER_CORRUPT", `${runId}: ${cause.message}`, { cause });
  }
}

/**
 * Returns what `read` resolves to; `undefined` where it throws because the log of a coordination is damaged, so that
 * one damaged log hides nothing of the others. @throws whatever else `read` throws
 */
export async function readUnlessDamaged<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isLogDamage(error)) return undefined;
    throw error;
  }
}
