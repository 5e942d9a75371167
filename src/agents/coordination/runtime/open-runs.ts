import type { CoordinationId } from "../contracts/ids.ts";
import type { LedgerStore } from "../ports/ledger-store.ts";

const OPEN_PAGE = 500;

/** The coordinations that have not ended, newest first, a page at a time. */
export async function* openRuns(store: Pick<LedgerStore, "list">): AsyncGenerator<CoordinationId> {
  let page = await store.list({ limit: OPEN_PAGE, status: "running" });
  while (page.length > 0) {
    for (const { runId } of page) yield runId;
    const after = page.at(-1);
    if (!after || page.length < OPEN_PAGE) return;
    page = await store.list({ limit: OPEN_PAGE, status: "running", after });
  }
}
