/** Spawns that the host refused, or whose child it never made: what a plan's and a step's budget count of them, now and in older logs. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { computeUseSinceAllowed } from "../../src/agents/coordination/dispatch/plan-rules.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { idOf } from "./plan-progress-scene.ts";
import {
  admit,
  answer,
  beginSteps,
  failStep,
  finish,
  HITL,
  lend,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  TRIP,
  type PlanSetup,
  type PlanScene,
} from "./planned-scene.ts";
import { RUN, spawn } from "./scene.ts";

const spawnBy = (parent: string, call = "first", rest: object = {}): Command =>
  spawn(call, {
    parentStepId: idOf(parent),
    sourceSession: nameSessionOfAttempt(parent),
    ...rest,
  });
const refuse = (name: string, rest: object = { unspawned: true }): Command => ({
  ...(failStep(name, 1, "spawn_refused") as Command & { type: "failStep" }),
  via: "hook",
  ...rest,
});
/** A plan of the steps `a` and `b`, of which `a` is at work and has spawned `@step-3`. */
const openWithSpawn = (opened: Partial<PlanSetup> = {}): PlanScene =>
  planScene(
    openPlan({ steps: 2, ...opened }),
    admit(planStep("a", { budget: { spawns: 4 } }), planStep("b")),
    ...beginSteps("a"),
    spawnBy("a"),
  );
const countSpawns = (scene: PlanScene): unknown[] => [
  scene.open.plan.spent.spawns,
  scene.step("a").spent?.spawns,
];

/** Decides the log again and returns where that differs from what is recorded. */
async function findDifference({ log }: PlanScene) {
  const store = {
    read: (_: unknown, { from, limit }: { from: number; limit: number }) =>
      Promise.resolve(log.slice(from, from + limit)),
    get: () => Promise.resolve(undefined),
  };
  const { decisions, difference } = await replayCoordination(store, RUN);
  expect(decisions).toBeGreaterThan(0);
  return difference;
}

describe("a spawn of which there is no child", () => {
  it("counts neither for its step nor for the plan", async () => {
    const scene = openWithSpawn();
    expect(countSpawns(scene)).toEqual([2, 2]);
    scene.then(refuse("@step-3"));
    expect(countSpawns(scene)).toEqual([1, 1]);
    expect(scene.last("step.failed").payload.unspawned).toBe(true);
    expect(await findDifference(scene)).toBeUndefined();
  });

  it("counts in the log of an earlier release, which does not say so", async () => {
    const scene = openWithSpawn().then(refuse("@step-3", {}));
    expect(countSpawns(scene)).toEqual([2, 2]);
    expect(await findDifference(scene)).toBeUndefined();
  });

  it("counts for the plan alone where the child of a spawn spawned it", () => {
    const scene = openWithSpawn().then(spawnBy("@step-3"));
    expect(countSpawns(scene)).toEqual([3, 2]);
    expect(countSpawns(scene.then(refuse("@step-4")))).toEqual([2, 2]);
  });

  describe("in a plan that people let go on", () => {
    const openAllowed = (): PlanScene =>
      openWithSpawn({ ...HITL, plan: { budget: { spawns: 2 } } }).then(TRIP, answer(1, "approve"));
    const countUsedSpawns = (scene: PlanScene): number => computeUseSinceAllowed(scene.open.plan).spawns;

    it("is not counted twice as not counted where it was admitted before", () => {
      const scene = openAllowed();
      expect(countUsedSpawns(scene.then(refuse("@step-3")))).toBe(0);
    });

    it("leaves what was used since where it was admitted before", () => {
      const scene = openAllowed().then(...beginSteps("b"), spawnBy("b", "second"));
      expect(countUsedSpawns(scene)).toBe(2);
      expect(countUsedSpawns(scene.then(refuse("@step-3")))).toBe(2);
    });

    it("is not counted as used where it was admitted since", () => {
      const scene = openAllowed().then(...beginSteps("b"), spawnBy("b", "second"), refuse("@step-4"));
      expect(countUsedSpawns(scene)).toBe(1);
    });
  });
});

describe("a spawn beside a plan of the same agent", () => {
  it("is admitted as it was where the log is of an earlier release, which did not count what was lent", async () => {
    const scene = openWithSpawn({ plan: { budget: { spawns: 9 } } });
    scene.then(lend("a", 1, { budget: { spawns: 2 } }));
    expect(scene.says(spawnBy("a", "second", { countsLoans: true }))).toBe("BUDGET_SPENT");
    scene.then(spawnBy("a", "second"), finish("@step-3"));
    expect(await findDifference(scene)).toBeUndefined();
  });
});
