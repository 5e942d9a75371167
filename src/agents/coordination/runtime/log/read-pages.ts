/** Owns: reading logs and listings of any length, a page at a time, so that neither has to fit in memory. */
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import { isCoordinationError } from "../../contracts/errors.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import type { ClaimIndex } from "../../ports/claim-index.ts";
import type { ListQuery, UnprovenRun } from "../../ports/run-store.ts";

const RUNS_PER_PAGE = 500;
const EVENTS_PER_PAGE = 1_000;
const CLAIMS_PER_PAGE = 500;

interface ListedStore<Run> {
  list(query: ListQuery): Promise<Run[]>;
}

/**
 * Yields the runs that a store lists for a query, one by one, read in pages. @throws CoordinationError as
 * `RunStore.list`
 */
export async function* listRuns<Run extends UnprovenRun<unknown>>(
  store: ListedStore<Run>,
  query: Omit<ListQuery, "limit" | "after"> = {},
): AsyncGenerator<Run> {
  let page = await store.list({ ...query, limit: RUNS_PER_PAGE });
  for (;;) {
    yield* page;
    const after = page.at(-1);
    if (!after || page.length < RUNS_PER_PAGE) return;
    page = await store.list({ ...query, limit: RUNS_PER_PAGE, after });
  }
}

interface UnprovenStore<Summary> {
  listUnproven(query: ListQuery): Promise<UnprovenRun<Summary>[]>;
}

/**
 * Yields the runs of a ledger that may be damaged, also those whose summary cannot be read. `onDamage` hears why the listing ends
 * early.
 *
 * @throws whatever else `RunStore.listUnproven` throws
 */
export async function* listUnprovenRuns<Summary>(
  store: UnprovenStore<Summary>,
  order: NonNullable<ListQuery["order"]>,
  onDamage: (message: string) => void,
): AsyncGenerator<UnprovenRun<Summary>> {
  try {
    yield* listRuns({ list: (query) => store.listUnproven(query) }, { order });
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CORRUPT") throw error;
    onDamage(error.message);
  }
}

interface ReadStore<Event> {
  read(runId: CoordinationId, range: { readonly from: number; readonly limit: number }): Promise<Event[]>;
}

/**
 * Yields the events of a run's log from the sequence `from` on, and before `to`, in pages that are not empty. @throws
 * CoordinationError as `RunStore.read`
 */
export async function* readLog<Event>(
  store: ReadStore<Event>,
  runId: CoordinationId,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: { readonly from?: number; readonly to?: number } = {},
): AsyncGenerator<Event[]> {
  for (let next = from; next < to; next += EVENTS_PER_PAGE) {
    const limit = Math.min(EVENTS_PER_PAGE, to - next);
    const page = await store.read(runId, { from: next, limit });
    if (page.length > 0) yield page;
    if (page.length < limit) return;
  }
}

/** Yields the claims of a ledger, or of one run, in the order of their tokens. @throws CoordinationError */
export async function* listClaims(
  store: ClaimIndex,
  query: { readonly runId?: CoordinationId } = {},
): AsyncGenerator<ClaimEntry> {
  for (let after = 0; ;) {
    const page = await store.claims({ ...query, after, limit: CLAIMS_PER_PAGE });
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < CLAIMS_PER_PAGE) return;
    after = last.token;
  }
}
