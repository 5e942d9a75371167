/** Runs that were taken over and requests that arrived are found also where the answer of the ledger was lost. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunArrival, OwnedRun, RunOwners } from "../../src/agents/coordination/ports/run-owners.ts";
import type { OwnRuns } from "../../src/agents/coordination/runtime/ownership/own-runs.ts";
import { createTakeOver } from "../../src/agents/coordination/runtime/ownership/take-over.ts";
import { createArrivalWatch } from "../../src/agents/coordination/runtime/ownership/watch-arrivals.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const OWNER = { id: "mine" };
const idOf = (run: number): CoordinationId => `run-${run}` as CoordinationId;
const runOf = (ordinal: number): OwnedRun => ({ runId: idOf(ordinal), ordinal, token: 2 });
const LOST = new CoordinationError("LEDGER_BUSY", "the answer was lost");

/** Takes as many at a time as it is asked for, of so many; the first answer is lost where the test says so. */
function createTaking(count: number, isFirstLost: boolean) {
  const free = Array.from({ length: count }, (_, index) => runOf(index + 1));
  const owned: OwnedRun[] = [];
  const adopted = new Set<CoordinationId>();
  let calls = 0;
  const owners = {
    take: ({ limit }: { readonly limit: number }) => {
      calls += 1;
      const batch = free.splice(0, limit);
      owned.push(...batch);
      return isFirstLost && calls === 1 ? Promise.reject(LOST) : Promise.resolve(batch);
    },
  } as unknown as RunOwners;
  const ownRuns = {
    listUnknown: () => Promise.resolve(owned.filter(({ runId }) => !adopted.has(runId))),
  } as unknown as OwnRuns;
  const takeOver = createTakeOver({ owners, owner: OWNER, ownRuns });
  const batches: number[] = [];
  const takeAll = () =>
    takeOver.take({ from: ["gone"] }, (batch) => {
      for (const { runId } of batch) adopted.add(runId);
      batches.push(batch.length);
    });
  return { takeOver, takeAll, batches, adopted };
}

describe("taking runs over", () => {
  it("goes on batch by batch until there are no more", async () => {
    const { takeAll, batches, adopted } = createTaking(230, false);
    await takeAll();
    expect([batches, adopted.size]).toEqual([[100, 100, 30], 230]);
  });

  it("finds what a take did whose answer was lost, before it takes more", async () => {
    const { takeOver, takeAll, batches, adopted } = createTaking(130, true);
    await expect(takeAll()).rejects.toThrow(LOST);
    expect([takeOver.isUncertain, adopted.size]).toEqual([true, 0]);
    await takeAll();
    expect([takeOver.isUncertain, batches, adopted.size]).toEqual([false, [100, 30], 130]);
  });

  it("takes nothing once it is stopped", async () => {
    const { takeOver, takeAll, batches } = createTaking(10, false);
    takeOver.stop();
    await takeAll();
    expect(batches).toEqual([]);
  });
});

describe("the watch for requests that arrive", () => {
  it("looks at all runs of its own after a look whose answer was lost", async () => {
    const clock = createFakeClock();
    const woken: string[] = [];
    let isLost = true;
    const arrived: RunArrival[] = [{ runId: idOf(1), length: 3 }];
    const watch = createArrivalWatch({
      clock,
      owner: OWNER,
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: () => undefined,
        error: () => undefined,
      },
      owners: {
        collectArrivals: () => {
          const batch = arrived.splice(0);
          return isLost ? Promise.reject(LOST) : Promise.resolve(batch);
        },
      } as unknown as RunOwners,
      ownRuns: { ids: () => [idOf(1), idOf(2)], listUnknown: () => Promise.resolve([runOf(3)]) },
      wake: (runId) => void woken.push(runId),
    });
    watch.start();
    await clock.advance(300);
    expect(woken).toEqual([]);
    isLost = false;
    await clock.advance(1_000);
    expect(woken).toEqual(["run-1", "run-2", "run-3"]);
    await clock.advance(1_000);
    expect(woken).toHaveLength(3);
    watch.stop();
  });
});
