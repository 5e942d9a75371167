import { CoordinationError, InvariantViolation } from "../../contracts/errors.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import { evolve } from "../../ledger/evolve.ts";
import { createUnopened, type Coordination } from "../../ledger/state.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";

const PAGE = 1_000;

/** Folds a stored log, or what stands before `to` in it, a page at a time. @throws CoordinationError as `LedgerStore.read`, or `INVARIANT_VIOLATED` */
export async function readState(
  store: Pick<LedgerStore, "read">,
  runId: CoordinationId,
  to = Number.MAX_SAFE_INTEGER,
): Promise<Coordination> {
  let state: Coordination = createUnopened(runId);
  for (;;) {
    const limit = Math.min(PAGE, to - state.nextSequence);
    const page = limit > 0 ? await store.read(runId, { from: state.nextSequence, limit }) : [];
    for (const event of page) state = evolve(state, event);
    if (page.length < PAGE) return state;
  }
}

/**
 * Reads a state like `readState`, from a log that may be damaged. @throws CoordinationError as `LedgerStore.read`,
 * or `LEDGER_CORRUPT`
 */
export async function readStoredState(...args: Parameters<typeof readState>): Promise<Coordination> {
  try {
    return await readState(...args);
  } catch (cause) {
    // What is stored obeyed every rule when it was written: a log that breaks one now is damaged.
    if (!(cause instanceof InvariantViolation)) throw cause;
    const [, runId] = args;
    throw new CoordinationError("LEDGER_CORRUPT", `${runId}: ${cause.message}`, { cause });
  }
}
