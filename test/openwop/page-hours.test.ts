import { expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { LedgerQueries } from "../../src/agents/coordination/ports/ledger-queries.ts";
import { PAGE_BOUNDS } from "../../src/plugins/page/server/page-bounds.ts";
import { createHourCounter } from "../../src/plugins/page/server/read-health.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";

const HOUR_MS = 3_600_000;

type CountedLedger = Parameters<ReturnType<typeof createHourCounter>["count"]>[0];

/** Answers with events of one moment, more than are counted. */
function createCrowded(atMs: number): CountedLedger {
  const newest = PAGE_BOUNDS.hourEventsMax + 1;
  const event = { type: "step.completed", timestamp: new Date(atMs).toISOString() } as RunEvent;
  const readAppended: LedgerQueries["readAppended"] = ({ after, limit }) => {
    const count = Math.min(limit, newest - after);
    const items = Array.from({ length: count }, () => event);
    return Promise.resolve({ items, reached: after + count });
  };
  return {
    newestPosition: () => Promise.resolve(newest),
    positionBefore: () => Promise.resolve(0),
    readAppended,
    readArrivals: () => Promise.reject(new Error("no event is damaged")),
  };
}

it("health says that hours are short only while it shows those that are", async () => {
  const ledger = createCrowded(TEST_EPOCH_MS);
  const counter = createHourCounter();
  const isCutAfter = async (hours: number): Promise<boolean> =>
    (await counter.count(ledger, (TEST_EPOCH_MS + hours * HOUR_MS) as EpochMs)).isCut;
  expect(await isCutAfter(0)).toBe(true);
  expect(await isCutAfter(23)).toBe(true);
  expect(await isCutAfter(24)).toBe(false);
});
