import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunUsage } from "../../src/agents/coordination/contracts/usage.ts";
import {
  addRunUsage,
  changeSpawnCount,
  countTokens,
  createEmptyBill,
  mergeRunUsage,
  nameRun,
  replaceStepUsage,
  subtractTotals,
  computeStepUsage,
  type Bill,
} from "../../src/agents/coordination/ledger/bill.ts";
import { startReplay, continueReplay } from "../../src/agents/coordination/replay/replay-log.ts";
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

type ArbitraryRecord = typeof arbitraryRecords extends fc.Arbitrary<readonly (infer T)[]> ? T : never;

const recordOf = ({ step, run, meter, calls }: ArbitraryRecord): RunUsage =>
  usageOf(stepId(step), calls, { runId: `run-${step}-${run}`, meter });

const foldBill = (records: readonly ArbitraryRecord[]): Bill =>
  records.reduce((bill, entry) => addRunUsage(bill, recordOf(entry), AGENT), createEmptyBill());

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
        }, createEmptyBill());
      }),
    );
  });
});

describe("what a step used", () => {
  const step = stepId(1);
  const bill = addRunUsage(createEmptyBill(), usageOf(step, 2), AGENT);

  it("is what its calls say, or its runner where that is more, each of tokens and cost", () => {
    expect(computeStepUsage(bill, step, undefined)).toEqual({ tokens: 300, costMicroUsd: 2_000 });
    expect(computeStepUsage(bill, step, { tokens: 301, costMicroUsd: 1_999 })).toEqual({
      tokens: 301,
      costMicroUsd: 2_000,
    });
    expect(computeStepUsage(bill, step, { tokens: 299, costMicroUsd: 2_001 })).toEqual({
      tokens: 300,
      costMicroUsd: 2_001,
    });
  });

  it("is nothing for a step of which nothing is recorded", () => {
    expect(computeStepUsage(bill, stepId(2), undefined)).toEqual({ tokens: 0, costMicroUsd: 0 });
  });

  it("takes the place of what it used before in the sum of the coordination", () => {
    const before = { tokens: 10, costMicroUsd: 5 };
    const first = replaceStepUsage(bill, { before: { tokens: 0, costMicroUsd: 0 }, after: before });
    const second = replaceStepUsage(first, { before, after: { tokens: 17, costMicroUsd: 9 } });
    expect([first.sum, second.sum]).toEqual([before, { tokens: 17, costMicroUsd: 9 }]);
    expect(second.total).toEqual(bill.total);
  });

  it("names the models of its newest run, and those before where that has none yet", () => {
    const listModels = (all: Bill): unknown => all.steps.get(step)?.models;
    const begun = addRunUsage(bill, { ...usageOf(step, 1, { runId: "second" }), models: [] }, AGENT);
    const called = addRunUsage(begun, { ...usageOf(step, 1, { runId: "second" }), models: ["b"] }, AGENT);
    expect([listModels(begun), listModels(called)]).toEqual([["mock/scripted"], ["b"]]);
    const silent = addRunUsage(createEmptyBill(), { ...usageOf(step, 1), models: [] }, AGENT);
    expect(listModels(silent)).toEqual([]);
  });

  it("has the longer list of models of one run, and the larger of each total", () => {
    const [few, many] = [usageOf(step, 3), { ...usageOf(step, 1), models: ["a", "b"] }];
    const merged = { ...usageOf(step, 3), models: ["a", "b"] };
    expect([mergeRunUsage(few, many), mergeRunUsage(many, few), mergeRunUsage(undefined, few)]).toEqual([
      merged,
      merged,
      few,
    ]);
    expect(mergeRunUsage({ ...few, models: ["a"] }, { ...few, models: ["b"] }).models).toEqual(["b"]);
  });

  it("is told apart by its step, its run and its meter", () => {
    const names = [
      usageOf(step, 1),
      usageOf(stepId(2), 1, { runId: `run-of-${step}` }),
      usageOf(step, 1, { runId: "other" }),
      usageOf(step, 1, { meter: "other" }),
    ].map(nameRun);
    expect(new Set(names).size).toBe(4);
  });

  it("differs from less by each kind of token, and counts the tokens of all kinds", () => {
    const difference = subtractTotals(usageOf(step, 5), usageOf(step, 2));
    expect(difference).toEqual({
      calls: 3,
      inputTokens: 240,
      outputTokens: 60,
      cacheReadTokens: 120,
      cacheWriteTokens: 30,
      costMicroUsd: 3_000,
    });
    expect(countTokens(difference)).toBe(450);
  });
});

describe("spawns on a bill", () => {
  it("are counted for each agent and together, up and down", () => {
    const other = "other" as AgentId;
    let bill = createEmptyBill();
    for (const [agentId, by] of [
      [AGENT, 1],
      [AGENT, 1],
      [other, 1],
      [AGENT, -1],
    ] as const)
      bill = changeSpawnCount(bill, agentId, by);
    expect([bill.spawns.toJS(), bill.spawnCount]).toEqual([{ main: 1, other: 1 }, 2]);
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
    const replayed = continueReplay(startReplay(RUN), scene.log, { from: 0, outputs: new Map() });
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
