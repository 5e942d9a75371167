/** Owns: that a query takes as long in a large ledger as in a small one. `QUERIED_EVENTS` is the size of the large one. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { LedgerFilter } from "../../src/agents/coordination/ports/ledger-queries.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { alternate } from "../bench/bench-row.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { runIdOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { growQueried, nameChild, nameSession, nameTrace, timeAppended } from "./queried-ledger.ts";

const SIZES = [10_000, chooseCampaignSize("QUERIED_EVENTS", { short: 100_000, long: 1_000_000 })] as const;
const PAGE = 50;
const ROUNDS = 15;
const CALLS = 8;
/** The b-trees of the large ledger are one or two levels deeper; a scan would take 10 or 100 times as long. */
const RATIO_MAX = 3;
/** Below it the clock and the other core decide. */
const NOISE_MS = 0.5;

interface FilledStore {
  readonly store: SqliteLedger;
  readonly runs: number;
}

let folder: TempFolder;
const ledgers: FilledStore[] = [];

beforeAll(async () => {
  folder = createTempFolder();
  for (const size of SIZES) {
    const store = await openTestLedger(folder.file(`${size}.sqlite`));
    ledgers.push({ store, runs: await growQueried(store, { from: 0, events: size }) });
  }
}, 7_200_000);

afterAll(async () => {
  for (const { store } of ledgers) await store.close();
  folder[Symbol.dispose]();
});

/** Another place of the ledger with every call. */
type FilterAt = (run: number, runs: number) => LedgerFilter;

const FILTERS: readonly (readonly [string, FilterAt])[] = [
  ["a trace", (run) => ({ traceId: nameTrace(run) })],
  [
    "an event that caused others",
    (run) => ({
      cause: { coordinationId: runIdOf(run), eventId: createEventId(runIdOf(run), 0) },
    }),
  ],
  [
    "a coordination that others followed from",
    (run) => ({ cause: { coordinationId: runIdOf(run - (run % 3)) } }),
  ],
  ["a session", (run) => ({ session: nameSession(run) })],
  ["an agent of steps", () => ({ agent: "worker" as AgentId })],
  ["a child session", (run) => ({ childSession: nameChild(run, "step-2") })],
  ["a time on", (run) => ({ since: timeAppended(run) })],
  ["the time before", () => ({ until: timeAppended(9) })],
  ["a span of time", (run) => ({ since: timeAppended(run), until: timeAppended(run + 5) })],
  ["a session since a time", (run) => ({ session: nameSession(run), since: timeAppended(run) })],
  [
    "a session in the last minute of the ledger",
    (run, runs) => ({
      session: nameSession(run),
      since: (timeAppended(runs - 60) + 3_600_000) as EpochMs,
    }),
  ],
];

async function expectFlat(ask: (queried: FilledStore, run: number) => Promise<number>): Promise<void> {
  const counts = await Promise.all(ledgers.map((queried) => ask(queried, 30)));
  let calls = 0;
  const sides = ledgers.map((queried) => async () => {
    calls += 1;
    const began = performance.now();
    for (let call = 0; call < CALLS; call += 1)
      await ask(queried, 3 + ((calls * 7_919 + call * 104_729) % (queried.runs - 70)));
    return (performance.now() - began) / CALLS;
  });
  const [small = [], large = []] = await alternate(ROUNDS, sides);
  const [smallMs, largeMs] = [Math.min(...small), Math.min(...large)];
  if (SIZES[1] > 100_000)
    console.log(`${expect.getState().currentTestName}: ${smallMs.toFixed(3)} ms, ${largeMs.toFixed(3)} ms`);
  for (const count of counts) expect(count).toBeGreaterThan(0);
  expect(largeMs).toBeLessThan(RATIO_MAX * Math.max(smallMs, NOISE_MS));
}

describe.each(FILTERS)("%s", (_, filterAt) => {
  it("finds a page of events in the same time in a ledger of any size", async () => {
    await expectFlat(async ({ store, runs }, run) => {
      const { items } = await store.findEvents({ filter: filterAt(run, runs), limit: PAGE });
      return items.length;
    });
  });

  it("finds a page of coordinations in the same time in a ledger of any size", async () => {
    await expectFlat(async ({ store, runs }, run) => {
      const filter = filterAt(run, runs);
      // The last coordinations were opened an hour before their last event.
      const since = filter.since && Math.min(filter.since, timeAppended(runs - 60));
      const { items } = await store.findRuns({
        filter: { ...filter, ...(since !== undefined && { since: since as EpochMs }) },
        limit: PAGE,
      });
      return items.length;
    });
  });
});

it("the events that were appended last are read in the same time in a ledger of any size", async () => {
  await expectFlat(async ({ store }) => {
    const after = (await store.newestPosition()) - PAGE;
    const { items } = await store.readAppended({ filter: {}, after, limit: PAGE });
    return items.length;
  });
});
