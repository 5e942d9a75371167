import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PRIORITIES, type Priority } from "../../src/agents/coordination/contracts/envelope.ts";
import type { AgentId, EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createBinaryHeap } from "../../src/agents/coordination/lanes/binary-heap.ts";
import { pickBestRequests, type ReadyRequest } from "../../src/agents/coordination/lanes/pick-best.ts";
import {
  compareRanks,
  rankRequest,
  type RequestUrgency,
} from "../../src/agents/coordination/lanes/rank-request.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);
const AGING_MS = 60_000;

const request = (fields: Partial<ReadyRequest> = {}): ReadyRequest => ({
  priority: "normal",
  readyAtMs: 1_000_000 as EpochMs,
  criticalPathMs: 0,
  session: "agent:main:main" as SessionKey,
  agentId: "main" as AgentId,
  ...fields,
});

const timeAt = (ms: number): EpochMs => ms as EpochMs;

/** The order in which requests that arrive in this order go. */
const orderRequests = (requests: readonly RequestUrgency[], agingMs = AGING_MS): RequestUrgency[] =>
  requests
    .map((each, arrival) => ({ each, rank: rankRequest(each, agingMs, arrival) }))
    .sort((a, b) => compareRanks(a.rank, b.rank))
    .map(({ each }) => each);

const requests: fc.Arbitrary<ReadyRequest> = fc
  .record({
    priority: fc.constantFrom(...PRIORITIES),
    readyAtMs: fc.integer({ min: 0, max: 500_000 }).map(timeAt),
    criticalPathMs: fc.integer({ min: 0, max: 3 }),
    session: fc.constantFrom("s1", "s2", "s3").map((key) => key as SessionKey),
    agentId: fc.constantFrom("a1", "a2").map((id) => id as AgentId),
  })
  .map(request);

describe("given requests that wait for a lane", () => {
  it("the one of the higher priority goes first when both became ready together", () => {
    const all = PRIORITIES.map((priority) => request({ priority }));
    expect(orderRequests(all).map(({ priority }) => priority)).toEqual(["critical", "high", "normal", "low"]);
  });

  it("the one that is ready for longer goes first among equal priorities", () => {
    const [late, early] = [request({ readyAtMs: timeAt(2_000) }), request({ readyAtMs: timeAt(1_000) })];
    expect(orderRequests([late, early])).toEqual([early, late]);
  });

  it.each([
    ["low", "normal", 1],
    ["normal", "critical", 2],
    ["low", "critical", 3],
  ] satisfies [Priority, Priority, number][])(
    "one of %s overtakes one of %s that became ready %i times the ageing later",
    (lower, higher, levels) => {
      const waiting = request({ priority: lower, readyAtMs: timeAt(0) });
      const requestLater = (ms: number) => request({ priority: higher, readyAtMs: timeAt(ms) });
      const justEarlyEnough = requestLater(levels * AGING_MS - 1);
      const tooLate = requestLater(levels * AGING_MS + 1);
      expect(orderRequests([waiting, justEarlyEnough])).toEqual([justEarlyEnough, waiting]);
      expect(orderRequests([waiting, tooLate])).toEqual([waiting, tooLate]);
    },
  );

  it("the one with the longer critical path goes first among those with one key", () => {
    const [short, long] = [request({ criticalPathMs: 5 }), request({ criticalPathMs: 50 })];
    expect(orderRequests([short, long])).toEqual([long, short]);
  });

  it("a short wait counts more than a long critical path", () => {
    const [long, waited] = [request({ criticalPathMs: 50 }), request({ readyAtMs: timeAt(999_999) })];
    expect(orderRequests([long, waited])).toEqual([waited, long]);
  });

  it("the one that came first has the smaller rank when nothing else tells them apart", () => {
    const [first, second] = [1, 2].map((arrival) => rankRequest(request(), AGING_MS, arrival));
    expect([compareRanks(first!, second!), compareRanks(second!, first!)]).toEqual([-1, 1]);
  });

  it("they go in the order of their coming when nothing tells them apart", () => {
    const [first, second, third] = [request(), request(), request()];
    const inOrder = orderRequests([first, second, third]);
    expect(inOrder.map((each) => [first, second, third].indexOf(each as ReadyRequest))).toEqual([0, 1, 2]);
  });
});

describe("for all requests", () => {
  it("N1: none is overtaken by one that became ready later than the levels between them allow", () => {
    const rankPriority = (priority: Priority): number => PRIORITIES.indexOf(priority);
    fc.assert(
      fc.property(
        fc.array(requests, { maxLength: 40 }),
        fc.integer({ min: 1, max: 100_000 }),
        (all, agingMs) => {
          const inOrder = orderRequests(all, agingMs);
          for (const [place, overtaken] of inOrder.entries())
            for (const first of inOrder.slice(0, place)) {
              const levels = rankPriority(first.priority) - rankPriority(overtaken.priority);
              expect(first.readyAtMs - overtaken.readyAtMs).toBeLessThanOrEqual(levels * agingMs);
            }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("N2: the order does not depend on the order of their coming, as long as their keys differ", () => {
    const distinct = fc
      .uniqueArray(requests, {
        maxLength: 30,
        selector: (each) => {
          const { key, criticalPathMs } = rankRequest(each, AGING_MS, 0);
          return `${key}:${criticalPathMs}`;
        },
      })
      .chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })));
    fc.assert(
      fc.property(distinct, ([all, shuffled]) => {
        expect(orderRequests(shuffled)).toEqual(orderRequests(all));
      }),
      { numRuns: RUNS },
    );
  });

  it("a heap gives them out in order, also when adding and taking alternate", () => {
    const acts = fc.array(fc.oneof(fc.integer({ min: 0, max: 99 }), fc.constant(undefined)), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(acts, (all) => {
        const heap = createBinaryHeap<{ readonly value: number }>((a, b) => a.value - b.value);
        const model: number[] = [];
        for (const value of all) {
          if (value === undefined) expect(heap.takeFirst()?.value).toBe(model.shift());
          else {
            heap.add({ value });
            model.push(value);
            model.sort((a, b) => a - b);
          }
          expect([heap.size(), heap.first()?.value]).toEqual([model.length, model[0]]);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

describe("given more ready requests than a lane has room for", () => {
  it("the best are picked, in their order", () => {
    const all = [5, 3, 9, 1, 7].map((ms) => request({ readyAtMs: timeAt(ms) }));
    const picked = pickBestRequests(all, { count: 3, agingMs: AGING_MS });
    expect(picked.map(({ readyAtMs }) => readyAtMs)).toEqual([1, 3, 5]);
  });

  it("those that came first are picked when nothing tells them apart", () => {
    const all = ["s1", "s2", "s3"].map((session) => request({ session: session as SessionKey }));
    expect(pickBestRequests(all, { count: 2, agingMs: AGING_MS })).toEqual(all.slice(0, 2));
  });

  it("none is picked for a lane without room", () => {
    expect(pickBestRequests([request()], { count: 0, agingMs: AGING_MS })).toEqual([]);
  });

  it("all are picked when there is room for more", () => {
    expect(pickBestRequests([request(), request()], { count: 9, agingMs: AGING_MS })).toHaveLength(2);
  });

  it("N4: a session gets no more than its allowance and the next session gets the rest", () => {
    const requestOf = (session: string, ms: number): ReadyRequest =>
      request({ session: session as SessionKey, readyAtMs: timeAt(ms) });
    const all = [requestOf("s1", 1), requestOf("s1", 2), requestOf("s1", 3), requestOf("s2", 4)];
    const picked = pickBestRequests(all, { count: 3, agingMs: AGING_MS, allowance: { ofSession: () => 1 } });
    expect(picked).toEqual([all[0], all[3]]);
  });

  it("N4: a session that has used up its allowance gets nothing", () => {
    const allowance = { ofSession: () => -1 };
    expect(pickBestRequests([request()], { count: 3, agingMs: AGING_MS, allowance })).toEqual([]);
  });

  it("picks the same as putting all in order and taking those that are allowed", () => {
    const allowances = fc.option(fc.integer({ min: -1, max: 4 }), { nil: undefined });
    const count = fc.integer({ min: 0, max: 12 });
    fc.assert(
      fc.property(
        fc.array(requests, { maxLength: 60 }),
        count,
        allowances,
        allowances,
        (all, max, session, agent) => {
          const allowance = {
            ...(session !== undefined && { ofSession: () => session }),
            ...(agent !== undefined && { ofAgent: () => agent }),
          };
          const expected: ReadyRequest[] = [];
          for (const each of orderRequests(all) as ReadyRequest[]) {
            const countTaken = (by: "session" | "agentId") =>
              expected.filter((other) => other[by] === each[by]).length;
            const isAllowed =
              countTaken("session") < (session ?? Infinity) && countTaken("agentId") < (agent ?? Infinity);
            if (isAllowed && expected.length < max) expected.push(each);
          }
          const picked = pickBestRequests(all, { count: max, agingMs: AGING_MS, allowance });
          expect(picked.map((each) => all.indexOf(each))).toEqual(expected.map((each) => all.indexOf(each)));
        },
      ),
      { numRuns: RUNS },
    );
  });
});
