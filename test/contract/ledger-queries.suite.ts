/** Owns: what finding coordinations and events by what they are about must do, on a ledger of any kind. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AgentId, EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type {
  EventsQuery,
  LedgerFilter,
  LedgerQueries,
} from "../../src/agents/coordination/ports/ledger-queries.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import {
  fillQueried,
  nameAgent,
  nameChild,
  nameSession,
  nameTrace,
  timeAppended,
  type QueriedRun,
} from "./queried-ledger.ts";

export interface QueriedLedger extends AsyncDisposable {
  readonly store: LedgerStore & LedgerQueries;
}

const RUNS = 40;

export function describeLedgerQueries(name: string, open: () => Promise<QueriedLedger>): void {
  let ledger: QueriedLedger;
  let store: QueriedLedger["store"];
  let runs: readonly QueriedRun[];

  beforeAll(async () => {
    ledger = await open();
    ({ store } = ledger);
    runs = await fillQueried(store, RUNS);
  });

  afterAll(() => ledger[Symbol.asyncDispose]());

  const idsOf = (events: readonly RunEvent[]): string[] => events.map(({ eventId }) => eventId);
  const timeOf = (event: RunEvent): number => Date.parse(event.timestamp);

  async function findAll(query: Omit<EventsQuery, "limit">, limit: number): Promise<RunEvent[]> {
    const found: RunEvent[] = [];
    let after: EventsQuery["after"];
    do {
      const page = await store.findEvents({ ...query, limit, ...(after && { after }) });
      expect(page.items.length).toBeLessThanOrEqual(limit);
      found.push(...page.items);
      after = page.next;
    } while (after);
    return found;
  }

  async function listAll(
    filter: LedgerFilter,
    limit: number,
    status?: "running" | "ended",
  ): Promise<string[]> {
    const found: string[] = [];
    let after: Parameters<LedgerQueries["findRuns"]>[0]["after"];
    do {
      const page = await store.findRuns({
        filter,
        limit,
        ...(status && { status }),
        ...(after && { after }),
      });
      found.push(...page.items.map(({ runId }) => runId));
      after = page.next;
    } while (after);
    return found;
  }

  /** Returns what the filter finds, by looking at every event. */
  function listMatchingEvents(filter: LedgerFilter): RunEvent[] {
    return runs.flatMap((run) => run.events.filter((event) => isMatch(filter, run, event)));
  }

  function isMatch(filter: LedgerFilter, run: QueriedRun, event: RunEvent): boolean {
    const { since = 0, until = Number.MAX_SAFE_INTEGER } = filter;
    const atMs = timeOf(event);
    return atMs >= since && atMs < until && hasCause(filter, run, event) && hasLabels(filter, run, event);
  }

  function hasCause({ cause }: LedgerFilter, { causes }: QueriedRun, { causationId }: RunEvent): boolean {
    if (!cause) return true;
    return cause.eventId ? causationId === cause.eventId : causes.includes(cause.coordinationId);
  }

  function hasLabels(filter: LedgerFilter, run: QueriedRun, { nodeId }: RunEvent): boolean {
    const step = run.steps.find(({ stepId }) => stepId === nodeId);
    const has = (wanted: string | undefined, ...values: (string | undefined)[]): boolean =>
      wanted === undefined || values.includes(wanted);
    return (
      has(filter.traceId, run.traceId) &&
      has(filter.session, run.session, step?.session) &&
      has(filter.agent, run.agent, step?.agent) &&
      has(filter.childSession, step?.child)
    );
  }

  function listMatchingRuns(filter: LedgerFilter): string[] {
    const { since = 0, until = Number.MAX_SAFE_INTEGER, ...labels } = filter;
    return runs
      .filter(({ startedAtMs }) => startedAtMs >= since && startedAtMs < until)
      .filter((run) =>
        Object.entries(labels).every(([name, value]) =>
          run.events.some((event) => isMatch({ [name]: value }, run, event)),
        ),
      )
      .map(({ runId }) => runId as string)
      .toReversed();
  }

  const timeAfter = (ms: number): EpochMs => (TEST_EPOCH_MS + ms) as EpochMs;
  const SOME: readonly (readonly [string, () => LedgerFilter])[] = [
    ["a trace", () => ({ traceId: nameTrace(3) })],
    ["a session", () => ({ session: nameSession(1) })],
    ["a session that asked for steps of others", () => ({ session: nameChild(2, "step-1") })],
    ["an agent", () => ({ agent: nameAgent(1) })],
    ["an agent of steps only", () => ({ agent: "worker" as AgentId })],
    ["a child session", () => ({ childSession: nameChild(5, "step-2") })],
    [
      "an event that caused others",
      () => ({ cause: { coordinationId: runs[4]!.runId, eventId: runs[4]!.events[0]!.eventId } }),
    ],
    ["a coordination that others followed from", () => ({ cause: { coordinationId: runs[0]!.runId } })],
    ["a time on", () => ({ since: timeAppended(20) })],
    ["a time before", () => ({ until: timeAppended(20) })],
    ["a span of time", () => ({ since: timeAppended(10), until: timeAppended(12) })],
    ["a session and a time on", () => ({ session: nameSession(1), since: timeAppended(30) })],
    ["a session and a time before", () => ({ session: nameSession(1), until: timeAppended(3) })],
    ["a session and an agent", () => ({ session: nameSession(1), agent: "worker" as AgentId })],
    [
      "a trace and a span of time",
      () => ({ traceId: nameTrace(1), since: timeAppended(1), until: timeAppended(30) }),
    ],
    ["a trace that another session owns", () => ({ traceId: nameTrace(1), session: "nobody" as SessionKey })],
    ["a trace of no coordination", () => ({ traceId: "none" })],
  ];

  describe(`${name}: events`, () => {
    it.each(SOME)("of %s are those that match, in pages of any size", async (_, filterOf) => {
      const filter = filterOf();
      const expected = idsOf(listMatchingEvents(filter));
      for (const limit of [1, 7, 1_000]) {
        const found = idsOf(await findAll({ filter }, limit));
        expect(found.toSorted()).toEqual(expected.toSorted());
        expect(new Set(found).size).toBe(found.length);
      }
    });

    it("of a label come coordination by coordination, each in the order of its log", async () => {
      const found = await findAll({ filter: { session: nameSession(1) } }, 9);
      expect(idsOf(found)).toEqual(idsOf(listMatchingEvents({ session: nameSession(1) })));
    });

    it("of a time come in the order of time", async () => {
      const found = await findAll({ filter: { since: timeAppended(5) } }, 9);
      expect(found.map(timeOf)).toEqual(found.map(timeOf).toSorted((a, b) => a - b));
    });

    it("of one coordination are found by the same filters", async () => {
      const { runId, events } = runs[5]!;
      const child = await findAll({ runId, filter: { childSession: nameChild(5, "step-2") } }, 2);
      expect(idsOf(child)).toEqual(idsOf(events.filter(({ nodeId }) => nodeId === "step-2")));
      expect(await findAll({ runId, filter: { traceId: "none" } }, 2)).toEqual([]);
      const eventId = runs[4]!.events[0]!.eventId;
      expect(
        await findAll({ runId, filter: { cause: { coordinationId: runs[4]!.runId, eventId } } }, 2),
      ).toEqual([]);
    });

    it("are read as they are appended, by the same filters", async () => {
      const filter = { session: nameSession(1) };
      const expected = idsOf(listMatchingEvents(filter)).toSorted();
      const found: RunEvent[] = [];
      let after = 0;
      const newest = await store.newestPosition();
      while (after < newest) {
        const { items, reached } = await store.readAppended({ filter, after, limit: 5 });
        expect(reached).toBeGreaterThan(after);
        found.push(...items);
        after = reached;
      }
      expect(idsOf(found).toSorted()).toEqual(expected);
      expect(await store.readAppended({ filter, after, limit: 5 })).toEqual({ items: [], reached: newest });
    });

    it.each([1, 7, 1_000])("arrive one after the other, %d at a time", async (limit) => {
      const arrived = new Map<string, number[]>();
      for (let after = 0; ;) {
        const { items, reached } = await store.readArrivals({ after, limit });
        if (items.length === 0) break;
        for (const { runId, sequence } of items)
          arrived.set(runId, [...(arrived.get(runId) ?? []), sequence]);
        after = reached;
      }
      expect(arrived).toEqual(
        new Map(runs.map(({ runId, events }) => [runId, events.map(({ sequence }) => sequence)])),
      );
    });
  });

  describe(`${name}: coordinations`, () => {
    it.each(SOME)(
      "of %s are those that match, the newest first, in pages of any size",
      async (_, filterOf) => {
        const filter = filterOf();
        for (const limit of [1, 7, 1_000])
          expect(await listAll(filter, limit)).toEqual(listMatchingRuns(filter));
      },
    );

    it.each(["running", "ended"] as const)("that are %s are found by the same filters", async (status) => {
      for (const filter of [
        { session: nameSession(1) },
        { traceId: nameTrace(3) },
        { since: timeAfter(0) },
        {},
      ]) {
        const expected = listMatchingRuns(filter).filter(
          (id) => runs.find(({ runId }) => runId === id)!.hasEnded === (status === "ended"),
        );
        for (const limit of [1, 1_000]) expect(await listAll(filter, limit, status)).toEqual(expected);
      }
    });
  });

  describe(`${name}: labels`, () => {
    it("are nothing that verification complains of", async () => {
      expect(await store.inspect()).toEqual([]);
    });
  });
}
