/** Owns: pruning a ledger once a day, as long as the process has it open. */
import { describe, expect, it } from "vitest";
import { SPAN_EXPORT } from "../../src/agents/coordination/contracts/ids.ts";
import { startDailyPruning } from "../../src/agents/coordination/runtime/prune-regularly.ts";
import { findSilentExporter } from "../../src/agents/coordination/runtime/silent-exporter.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";
import { quietLogger, runIdOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { addCoordination, listRunIds } from "./prunable-ledger.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** A ledger with two runs of three days ago. */
async function openOldLedger() {
  const folder = createTempFolder();
  const clock = createFakeClock(TEST_EPOCH_MS + 3 * DAY_MS);
  const store = await openTestLedger(folder.file("ledger.sqlite"), { clock });
  await addCoordination(store, "first");
  await addCoordination(store, "newest");
  return {
    clock,
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      folder[Symbol.dispose]();
    },
  };
}

describe("a process that prunes its ledger", () => {
  it("does so a minute after the start, and again each day", async () => {
    await using ledger = await openOldLedger();
    const { clock, store } = ledger;
    const pruning = startDailyPruning({ ledger: store, keepDays: 2, clock, logger: quietLogger });
    await clock.advance(MINUTE_MS - 1);
    expect(await listRunIds(store)).toHaveLength(2);
    await clock.advance(1);
    await waitFor(async () => (await listRunIds(store)).length === 1, { what: "one run" });
    await addCoordination(store, "next");
    await waitUntilSettled();
    await clock.advance(DAY_MS);
    await waitFor(async () => (await listRunIds(store)).join() === runIdOf("next"), {
      what: "the newest run",
    });
    await pruning?.stop();
  });

  describe("whose spans another process exports", () => {
    const share = { name: SPAN_EXPORT, holder: "exporter" };

    it("keeps nothing for it where it is silent for half a minute, as one that was killed", async () => {
      await using ledger = await openOldLedger();
      const { clock, store } = ledger;
      await store.exports.take({ ...share, from: 0 });
      const pruning = startDailyPruning({ ledger: store, keepDays: 2, clock, logger: quietLogger });
      await clock.advance(MINUTE_MS + 30_000);
      await waitFor(async () => (await listRunIds(store)).length === 1, { what: "one run" });
      await pruning?.stop();
    });

    it("keeps what is not exported while it tells of itself", async () => {
      await using ledger = await openOldLedger();
      const { clock, store } = ledger;
      await store.exports.take({ ...share, from: 0 });
      const silent = findSilentExporter(store.exports, clock);
      await clock.advance(3_000);
      await store.exports.advance({ ...share, position: 0 });
      await clock.advance(30_000);
      expect(await silent).toBeUndefined();
    });
  });

  it("removes nothing after it was stopped", async () => {
    await using ledger = await openOldLedger();
    const { clock, store } = ledger;
    const pruning = startDailyPruning({ ledger: store, keepDays: 2, clock, logger: quietLogger });
    await pruning?.stop();
    await clock.advance(2 * DAY_MS);
    expect(await listRunIds(store)).toHaveLength(2);
  });

  it("goes on where the ledger could not be pruned", async () => {
    await using ledger = await openOldLedger();
    const { clock, store } = ledger;
    const warnings: string[] = [];
    let fails = true;
    const page: typeof store.pruning.page = (place) =>
      fails ? Promise.reject(new Error("the disk is away")) : store.pruning.page(place);
    const pruning = startDailyPruning({
      ledger: { ...store, pruning: { ...store.pruning, page } },
      keepDays: 2,
      clock,
      logger: { ...quietLogger, warn: (_, message) => void warnings.push(message) },
    });
    await clock.advance(MINUTE_MS);
    await waitFor(() => warnings.length === 1, { what: "a warning" });
    fails = false;
    await clock.advance(DAY_MS);
    await waitFor(async () => (await listRunIds(store)).length === 1, { what: "one run" });
    await pruning?.stop();
  });
});
