import type { CoordinationId } from "../contracts/ids.ts";
import { evolve } from "../ledger/evolve.ts";
import { unopened, type Coordination } from "../ledger/state.ts";
import type { LedgerStore } from "../ports/ledger-store.ts";

const PAGE = 1_000;

/** Folds a stored log, a page at a time. @throws CoordinationError as `LedgerStore.read`, or `INVARIANT_VIOLATED` */
export async function readState(
  store: Pick<LedgerStore, "read">,
  runId: CoordinationId,
): Promise<Coordination> {
  let state: Coordination = unopened(runId);
  for (;;) {
    const page = await store.read(runId, { from: state.nextSequence, limit: PAGE });
    for (const event of page) state = evolve(state, event);
    if (page.length < PAGE) return state;
  }
}
