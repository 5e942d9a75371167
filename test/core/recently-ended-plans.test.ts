/** Owns: which ended plans are shown once more at a start, because the process before may have been killed before it showed their ends. */
import { expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { PlanSnapshot } from "../../src/agents/coordination/runtime/log/plan-snapshot.ts";
import { readState } from "../../src/agents/coordination/runtime/log/read-state.ts";
import { showRecentlyEndedPlans } from "../../src/agents/coordination/runtime/effects/tell-plans.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { endDone } from "../support/scripted-runner.ts";
import { plan, runPlan, step } from "./planned-world.ts";

const HOUR_MS = 3_600_000;

/** Runs a plan of 30 hours to its end, and returns what a start shows so long after it. */
async function showAfter(sinceEndMs: number, wrap: (store: MemoryStore) => MemoryStore): Promise<string[]> {
  const run = await runPlan({ a: ["work"] }, plan([step("a", { timeoutMs: 100 * HOUR_MS })]));
  const { clock, ledger, plans } = run.world;
  clock.jump(clock.now() + 30 * HOUR_MS);
  plans.end("a", endDone());
  await clock.advance(60_000);
  expect((await run.view()).status).toBe("success");
  await run.coordinator.stop();
  clock.jump(clock.now() + sinceEndMs);
  const store = wrap(ledger.open(clock));
  const shown: PlanSnapshot[] = [];
  await showRecentlyEndedPlans({
    onPlan: (snapshot) => void shown.push(snapshot),
    runs: {
      state: (runId: CoordinationId) => readState(store, runId),
      settled: () => Promise.resolve(),
    } as never,
    store,
    clock,
    homes: undefined as never,
  });
  await waitUntilSettled();
  return shown.map(({ coordinationId }) => coordinationId);
}

it.each([
  ["that ended within a day is shown, however long ago it began", 23 * HOUR_MS, ["plan-1"]],
  ["that ended before is not", 25 * HOUR_MS, []],
])("a plan %s", async (_, sinceEndMs, expected) => {
  expect(await showAfter(sinceEndMs, (store) => store)).toEqual(expected);
});

/** Has the listing begin with an entry `other-1` of a log of two events, of which none can be read. */
function listDamagedLogFirst(store: MemoryStore, code: "EVENT_UNREADABLE" | "LEDGER_CORRUPT"): MemoryStore {
  const damagedId = "other-1" as CoordinationId;
  return {
    ...store,
    listUnproven: async (query) => {
      const [entry, ...rest] = await store.listUnproven(query);
      return entry ? [{ ...entry, runId: damagedId, length: 2 }, entry, ...rest] : [];
    },
    read: (runId, range) =>
      runId === damagedId
        ? Promise.reject(new CoordinationError(code, "event 1 cannot be read"))
        : store.read(runId, range),
  };
}

it.each(["EVENT_UNREADABLE", "LEDGER_CORRUPT"] as const)(
  "a log that cannot be read (%s) hides no plan behind it",
  async (code) => {
    expect(await showAfter(HOUR_MS, (store) => listDamagedLogFirst(store, code))).toEqual(["plan-1"]);
  },
);

/** Has the listing begin with copies of its first entry, as of coordinations that began later and ended long ago. */
function listOthersFirst(store: MemoryStore, count: number): MemoryStore {
  const isOther = (runId: CoordinationId): boolean => runId.startsWith("other-");
  return {
    ...store,
    listUnproven: async (query) => {
      const entries = await store.listUnproven(query);
      const [entry] = entries;
      if (!entry) return [];
      const others = Array.from({ length: count }, (_, index) => ({
        ...entry,
        runId: `other-${index}` as CoordinationId,
      }));
      return [...others, ...entries].slice(0, query.limit);
    },
    read: (runId, range) => (isOther(runId) ? Promise.resolve([]) : store.read(runId, range)),
  };
}

it.each([
  ["199 that began later is shown", 199, ["plan-1"]],
  ["200 that began later is not", 200, []],
])("an ended plan behind %s", async (_, count, expected) => {
  expect(await showAfter(HOUR_MS, (store) => listOthersFirst(store, count))).toEqual(expected);
});
