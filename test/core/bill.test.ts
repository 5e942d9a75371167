import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunUsage } from "../../src/agents/coordination/contracts/usage.ts";
import {
  addRunUsage,
  countTokens,
  createBill,
  type Bill,
} from "../../src/agents/coordination/ledger/bill.ts";
import { replayOf, replayOn } from "../../src/agents/coordination/replay/replay-log.ts";
import { acknowledge, complete, fail, OPEN, openScene, RUN, SETTLE, spawn, stepId } from "./scene.ts";
import { usageOf } from "./usage-scene.ts";

const AGENT = "main" as AgentId;

/** Entries of processes about the runs of a few steps: for each run and meter the totals up to some call. */
const arbitraryRecords = fc.array(
  fc.record({
    step: fc.integer({ min: 1, max: 3 }),
    run: fc.integer({ min: 1, max: 2 }),
    meter: fc.constantFrom("a", "b"),
    calls: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 40 },
);

type Told = typeof arbitraryRecords extends fc.Arbitrary<readonly (infer T)[]> ? T : never;

const recordOf = ({ step, run, meter, calls }: Told): RunUsage =>
  usageOf(stepId(step), calls, { runId: `run-${step}-${run}`, meter });

const foldBill = (records: readonly Told[]): Bill =>
  records.reduce((bill, entry) => addRunUsage(bill, recordOf(entry), AGENT), createBill());

describe("a bill", () => {
  it("is the sum of the largest totals of each run and meter, in whatever order and however often they come", () => {
    fc.assert(
      fc.property(arbitraryRecords, fc.array(fc.nat(), { maxLength: 40 }), (records, again) => {
        const largest = new Map<string, number>();
        for (const { step, run, meter, calls } of records) {
          const name = `${step}:${run}:${meter}`;
          largest.set(name, Math.max(calls, largest.get(name) ?? 0));
        }
        const calls = [...largest.values()].reduce((sum, count) => sum + count, 0);
        const repeated = again.flatMap((at) => records[at % Math.max(1, records.length)] ?? []);
        for (const order of [records, records.toReversed(), [...records, ...repeated]]) {
          const { total, agents, steps } = foldBill(order);
          expect(total.calls).toBe(calls);
          expect(agents.get(AGENT)?.calls ?? 0).toBe(calls);
          expect(steps.reduce((sum, step) => sum + step.totals.calls, 0)).toBe(calls);
          expect(total.costMicroUsd).toBe(calls * usageOf(stepId(1), 1).costMicroUsd);
        }
      }),
    );
  });

  it("never falls", () => {
    fc.assert(
      fc.property(arbitraryRecords, (records) => {
        records.reduce((bill, entry) => {
          const next = addRunUsage(bill, recordOf(entry), AGENT);
          expect(countTokens(next.total)).toBeGreaterThanOrEqual(countTokens(bill.total));
          expect(next.sum.tokens).toBeGreaterThanOrEqual(bill.sum.tokens);
          return next;
        }, createBill());
      }),
    );
  });
});

describe("usage in the log", () => {
  it("counts for its step and for the owner, and a record that says nothing new is a replay", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    const used = { type: "recordUsage", ...usageOf(stepId(1), 2) } as const;
    expect(scene.when(used).kind).toBe("accepted");
    expect(scene.when(used).kind).toBe("replay");
    expect(scene.when({ ...used, ...usageOf(stepId(1), 1) }).kind).toBe("replay");
    scene.when({ type: "recordUsage", ...usageOf("@owner" as StepId, 3) });
    expect(scene.state).toMatchObject({ bill: { total: { calls: 5 }, sum: { tokens: 5 * 150 } } });
    expect(scene.when({ ...used, stepId: "step-9" as StepId })).toMatchObject({ code: "UNKNOWN_STEP" });
  });

  it("counts after the end of the step and of the coordination, and neither ends again", () => {
    const opening = { ...OPEN, questions: { answerMs: 60_000, notify: [] } } as typeof OPEN;
    const scene = openScene(opening, spawn("a"), acknowledge(1), complete(1), SETTLE);
    const ended = scene.state;
    const late = { type: "recordUsage", ...usageOf(stepId(1), 2) } as const;
    expect(scene.when(late, 60_000).kind).toBe("accepted");
    expect(scene.state).toMatchObject({ kind: "ended", bill: { total: { calls: 2 } } });
    if (ended.kind !== "ended" || scene.state.kind !== "ended") throw new Error("it ended");
    expect(scene.state).toMatchObject({ status: "success", endedAtMs: ended.endedAtMs });
    expect(scene.when({ type: "stopAtBudget", stepId: stepId(1), stopped: "call" })).toMatchObject({
      code: "COORDINATION_ENDED",
    });
    const replayed = replayOn(replayOf(RUN), scene.log, { from: 0, outputs: new Map() });
    expect(replayed.difference).toBeUndefined();
    expect(replayed.state).toEqual(scene.state);
  });

  it("does not put off the end of a coordination that is quiet", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1), fail(1));
    const quietSince = scene.state.kind === "open" ? scene.state.changedAtMs : 0;
    scene.when({ type: "recordUsage", ...usageOf(stepId(1), 2) }, 50_000);
    expect(scene.state).toMatchObject({ changedAtMs: quietSince });
  });
});
