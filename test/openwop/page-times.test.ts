/** Owns: that the page tells the durations of work that goes on as its server would, without asking the server again. */
import { expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { CoordinationDetail } from "../../src/plugins/page/contract/runs.ts";
import { readRunDetail } from "../../src/plugins/page/server/run-detail.ts";
import { advanceDetail } from "../../src/plugins/page/ui/views/advance-detail.ts";
import { fillLedger } from "../page/filled-ledger.ts";
import { createTempFolder, openTestLedger, TEST_EPOCH_MS } from "../support/temp-ledger.ts";

const READ_AT_MS = (TEST_EPOCH_MS + 300_000) as EpochMs;
const SHOWN_AT_MS = (READ_AT_MS + 12_345) as EpochMs;

it("durations go on as the server would tell them", async () => {
  using folder = createTempFolder();
  await fillLedger(folder.file("ledger.sqlite"));
  const store = await openTestLedger(folder.file("ledger.sqlite"), { mode: "read" });
  const entries = await store.list({ limit: 100 });
  expect(entries.length).toBeGreaterThan(5);
  for (const { runId } of entries) {
    const readAt = (now: EpochMs) => readRunDetail(store, runId, now) as Promise<CoordinationDetail>;
    expect(advanceDetail(await readAt(READ_AT_MS), SHOWN_AT_MS), runId).toEqual(await readAt(SHOWN_AT_MS));
  }
  await store.close();
});
