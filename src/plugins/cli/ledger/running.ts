/** Owns: walking over the coordinations that are not ended. */
import type { LedgerReader } from "../../compose.ts";
import type { RunEntry } from "./open-ledger.ts";

const PAGE = 500;

export async function* readRunning(reader: Pick<LedgerReader, "list">): AsyncGenerator<RunEntry> {
  let after: RunEntry | undefined;
  for (;;) {
    const page = await reader.list({ limit: PAGE, status: "running", ...(after && { after }) });
    yield* page;
    after = page.at(-1);
    if (page.length < PAGE) return;
  }
}
