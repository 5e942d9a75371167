import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import {
  canBeginStep,
  canHoldBack,
  computeCallsPerSecond,
  computeRefusedWaitMs,
  createProviderLane,
  findNextCallTime,
  recordCallAnswer,
  recordCallBeginning,
  recordCallRefusal,
  type ProviderLane,
} from "../../src/agents/coordination/lanes/provider-lane.ts";

const RULES = { retryAfterMsMax: 600_000 };
const YEAR_MS = 365 * 86_400_000;
const timeOf = (ms: number): EpochMs => (1_000_000 + ms) as EpochMs;

interface RefusalTimes {
  readonly now: number;
  readonly begunAt?: number;
  readonly letGoAt?: number;
  readonly retryAfterMs?: number;
}

function refuse(
  lane: ProviderLane,
  { now, begunAt = now, letGoAt = begunAt, retryAfterMs }: RefusalTimes,
): ProviderLane {
  const call = { begunAtMs: timeOf(begunAt), letGoAtMs: timeOf(letGoAt), retryAfterMs, fraction: 0.5 };
  return recordCallRefusal(lane, call, { now: timeOf(now), rules: RULES });
}

function begin(lane: ProviderLane, ...times: readonly number[]): ProviderLane {
  return times.reduce((begun, time) => recordCallBeginning(begun, timeOf(time)), lane);
}

/** Five calls began, 100 ms apart, and the sixth was refused, as was heard at 600. */
const createNarrowed = (): ProviderLane =>
  refuse(begin(createProviderLane(), 0, 100, 200, 300, 400, 500), { now: 600, begunAt: 500 });

const findNext = (lane: ProviderLane, now: number, released = 0): number =>
  findNextCallTime(lane, { released, now: timeOf(now) }) - timeOf(0);

describe("the lane of a provider", () => {
  it("holds back nothing before the provider refuses a call", () => {
    const lane = begin(createProviderLane(), 0, 1, 2, 3);
    expect(findNext(lane, 4)).toBe(4);
    expect(computeCallsPerSecond(lane, timeOf(4))).toBe(Infinity);
    expect(canHoldBack(lane, timeOf(4))).toBe(false);
    expect(canBeginStep(lane, { waitingCalls: 0, now: timeOf(4) })).toBe(true);
  });

  it("lets begin in any second what the provider took in the second before it refused", () => {
    const lane = createNarrowed();
    expect(computeCallsPerSecond(lane, timeOf(600))).toBe(5);
    expect(findNext(lane, 900)).toBe(1_040);
    expect(findNext(begin(lane, 1_040), 1_040)).toBe(1_140);
  });

  it("counts a call that was let go on and has not begun", () => {
    const lane = createNarrowed();
    expect(findNext(lane, 1_000, 1)).toBe(1_140);
    expect(findNext(lane, 2_000, 5)).toBe(3_040);
  });

  it("lets calls go on as much earlier as they take to begin at least", () => {
    let lane = createNarrowed();
    lane = recordCallBeginning(lane, timeOf(1_000), timeOf(1_000));
    expect(findNext(lane, 1_000)).toBe(1_140);
    for (let call = 0; call < 40; call += 1)
      lane = recordCallBeginning(lane, timeOf(2_000 + call), timeOf(1_900 + call));
    expect(lane.leadMs).toBeGreaterThan(90);
    expect(lane.leadMs).toBeLessThanOrEqual(100);
    expect(recordCallBeginning(lane, timeOf(3_020), timeOf(3_000)).leadMs).toBe(20);
  });

  it("comes near a longer time to begin by a tenth of the difference, and takes a shorter one at once", () => {
    const lanes = [100, 100, 5].reduce(
      (all, leadMs) => [...all, recordCallBeginning(all.at(-1)!, timeOf(leadMs), timeOf(0))],
      [createProviderLane()],
    );
    const leads = lanes.map(({ leadMs }) => leadMs);
    expect(leads).toEqual([0, 10, 19, 5]);
    const lane = { ...createNarrowed(), leadMs: 40 };
    expect(findNext(lane, 1_000, 5)).toBe(2_000);
  });

  it("remembers the newest 256 calls", () => {
    const lane = begin(createProviderLane(), ...Array.from({ length: 300 }, (_, call) => call));
    expect([lane.begun.length, lane.begun[0], lane.begun.at(-1)]).toEqual([256, timeOf(44), timeOf(299)]);
  });

  it("counts the calls of the second that ended with the refused one", () => {
    const lane = begin(createProviderLane(), 0, 1, 2, 1_001, 1_001, 1_001, 1_002);
    expect(computeCallsPerSecond(refuse(lane, { now: 1_050, begunAt: 1_001 }), timeOf(1_050))).toBe(3);
  });

  it("keeps the others where it does not remember the refused call", () => {
    expect(refuse(begin(createProviderLane(), 0, 1), { now: 5, begunAt: 4 }).begun).toEqual([
      timeOf(0),
      timeOf(1),
    ]);
  });

  it("learns nothing from calls that were let go on in the moment in which the pace began", () => {
    const lane = createNarrowed();
    expect(recordCallAnswer(lane, timeOf(600))).toBe(lane);
    expect(refuse(begin(lane, 610), { now: 700, begunAt: 610, letGoAt: 600 }).refusedInRow).toBe(1);
  });

  it("may hold back until a retry-after that is longer than a pace is remembered", () => {
    const lane = refuse(createProviderLane(), { now: 0, retryAfterMs: 120_000 });
    expect([119_999, 120_000].map((now) => canHoldBack(lane, timeOf(now)))).toEqual([true, false]);
  });

  it("takes all refusals of one crowd for one, and counts what the provider took of it", () => {
    const crowd = begin(createProviderLane(), 0, 100, 200, 300, 400, 500, 550);
    const first = refuse(crowd, { now: 600, begunAt: 550 });
    expect(computeCallsPerSecond(first, timeOf(600))).toBe(6);
    const second = refuse(begin(first, 650), { now: 700, begunAt: 500 });
    expect(computeCallsPerSecond(second, timeOf(700))).toBe(5);
    // It had been on its way when the first refusal was heard of.
    expect(computeCallsPerSecond(refuse(second, { now: 800, begunAt: 650, letGoAt: 590 }), timeOf(800))).toBe(
      5,
    );
  });

  it("leaves a share of the pace for a refusal later on, and answers take it back and a little beyond", () => {
    const slower = refuse(begin(createNarrowed(), 3_000), { now: 3_000 });
    expect(computeCallsPerSecond(slower, timeOf(3_000))).toBeCloseTo(4.5);
    let lane = slower;
    const paces: number[] = [];
    for (let call = 0; call < 80; call += 1) {
      lane = recordCallAnswer(lane, timeOf(4_000 + call));
      paces.push(computeCallsPerSecond(lane, timeOf(5_000)));
    }
    expect(paces[0]).toBeCloseTo(4.514);
    expect(paces[9]).toBeGreaterThan(4.6);
    expect(paces[9]).toBeLessThan(5);
    expect(paces[79]).toBeGreaterThan(5);
    expect(paces[79]).toBeLessThan(5.6);
    expect(recordCallAnswer(slower, timeOf(2_999))).toEqual(slower);
  });

  it("keeps what it knows the provider takes together when later crowds are refused", () => {
    const slower = refuse(begin(createNarrowed(), 3_000, 3_010), { now: 3_020, begunAt: 3_000 });
    const again = refuse(slower, { now: 3_030, begunAt: 3_010 });
    expect(again.pace).toMatchObject({ together: 5, perSecond: 4.5 });
  });

  it("forgets a pace after a minute without a refusal", () => {
    const lane = createNarrowed();
    expect(computeCallsPerSecond(lane, timeOf(60_599))).toBe(5);
    expect(computeCallsPerSecond(lane, timeOf(60_600))).toBe(Infinity);
    expect(canHoldBack(lane, timeOf(60_600))).toBe(false);
  });

  it("obeys a retry-after, and one of a year for ten minutes", () => {
    const lane = createProviderLane();
    expect(findNext(refuse(lane, { now: 0, retryAfterMs: 7_000 }), 0)).toBe(7_000);
    const year = refuse(lane, { now: 0, retryAfterMs: YEAR_MS });
    expect(findNext(year, 0)).toBe(600_000);
    expect(canBeginStep(year, { waitingCalls: 0, now: timeOf(599_999) })).toBe(false);
    expect(canBeginStep(year, { waitingCalls: 0, now: timeOf(600_000) })).toBe(true);
  });

  it("never shortens a retry-after because of a refusal that names none", () => {
    const lane = refuse(createProviderLane(), { now: 0, retryAfterMs: 7_000 });
    expect(findNext(refuse(lane, { now: 2_000 }), 2_000)).toBe(7_000);
  });

  it("waits twice as long after each refusal in a row of a provider that never names a time", () => {
    const waits = [1, 2, 3, 4].map((inRow) => computeRefusedWaitMs(inRow, 0));
    expect(waits).toEqual([125, 250, 500, 1_000]);
    expect([0.5, 0.999].map((fraction) => computeRefusedWaitMs(1, fraction))).toEqual([187, 249]);
    expect(computeRefusedWaitMs(1_000, 0.999)).toBeLessThanOrEqual(60_000);
    let lane = createNarrowed();
    for (const now of [2_000, 4_000, 8_000]) lane = refuse(lane, { now });
    expect(lane.refusedInRow).toBe(4);
    expect(recordCallAnswer(lane, timeOf(9_000)).refusedInRow).toBe(0);
  });

  it("lets no step begin while calls for more than a second wait", () => {
    const lane = createNarrowed();
    const canBegin = (waitingCalls: number) => canBeginStep(lane, { waitingCalls, now: timeOf(1_000) });
    expect([0, 5, 6].map(canBegin)).toEqual([true, true, false]);
  });

  it("keeps to its bounds whatever happens, and in the time of its pace lets no more begin than that", () => {
    const event = fc.record({
      kind: fc.constantFrom("begin", "answer", "refuse"),
      afterMs: fc.integer({ min: 0, max: 3_000 }),
      retryAfterMs: fc.option(fc.integer({ min: 0, max: YEAR_MS }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let lane = createProviderLane();
        let now = 0;
        for (const { kind, afterMs, retryAfterMs } of events) {
          now += afterMs;
          if (kind === "begin") lane = begin(lane, now);
          else if (kind === "answer") lane = recordCallAnswer(lane, timeOf(now));
          else lane = refuse(lane, { now, ...(retryAfterMs !== undefined && { retryAfterMs }) });
          const next = findNext(lane, now);
          expect(next).toBeGreaterThanOrEqual(now);
          expect(next - now).toBeLessThanOrEqual(600_000 + 60_000);
          const perSecond = computeCallsPerSecond(lane, timeOf(next));
          expect(perSecond).toBeGreaterThanOrEqual(1 / 60);
          const spanMs = ((lane.pace?.together ?? 1) / perSecond) * 1_000;
          const recent = lane.begun.filter((atMs) => atMs > timeOf(next) - spanMs).length;
          if (lane.pace && next > now) expect(recent).toBeLessThanOrEqual(lane.pace.together);
        }
      }),
    );
  });
});
