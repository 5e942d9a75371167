/** Owns: reading what a query finds, however much it is, a page at a time. */
import type { RunEvent } from "../../contracts/run-event.ts";
import type {
  EventPlace,
  EventsQuery,
  LedgerQueries,
  RunPlace,
  RunsQuery,
} from "../../ports/ledger-queries.ts";
import type { RunEntry } from "../../ports/ledger-store.ts";

const RUNS_PER_PAGE = 100;
const EVENTS_PER_PAGE = 500;

/**
 * Yields the summaries of the coordinations that a query finds, one by one, read in pages. @throws CoordinationError
 * as `LedgerQueries.findRuns`
 */
export async function* listFoundRuns(
  store: Pick<LedgerQueries, "findRuns">,
  query: Omit<RunsQuery, "limit" | "after">,
): AsyncGenerator<RunEntry> {
  let after: RunPlace | undefined;
  do {
    const page = await store.findRuns({ ...query, limit: RUNS_PER_PAGE, ...(after && { after }) });
    yield* page.items;
    after = page.next;
  } while (after);
}

/**
 * Yields the events that a query finds in all coordinations, page by page; a page may be empty. @throws
 * CoordinationError as `LedgerQueries.findEvents`
 */
export async function* readFoundEvents(
  store: LedgerQueries,
  query: Omit<EventsQuery, "limit" | "after">,
): AsyncGenerator<readonly RunEvent[]> {
  let after: EventPlace | undefined;
  do {
    const page = await store.findEvents({ ...query, limit: EVENTS_PER_PAGE, ...(after && { after }) });
    yield page.items;
    after = page.next;
  } while (after);
}
