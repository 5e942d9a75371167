import type { CoordinationId } from "../../contracts/ids.ts";
import type { LedgerStore, RunEntry } from "../../ports/ledger-store.ts";

const OPEN_PAGE = 500;

/** The coordinations that have not ended, newest first, a page at a time. */
export async function* openRuns(store: Pick<LedgerStore, "list">): AsyncGenerator<CoordinationId> {
  for await (const { runId } of openEntries(store)) yield runId;
}

/** The same with what the ledger keeps beside their logs. */
export async function* openEntries(store: Pick<LedgerStore, "list">): AsyncGenerator<RunEntry> {
  let page = await store.list({ limit: OPEN_PAGE, status: "running" });
  while (page.length > 0) {
    yield* page;
    const after = page.at(-1);
    if (!after || page.length < OPEN_PAGE) return;
    page = await store.list({ limit: OPEN_PAGE, status: "running", after });
  }
}
