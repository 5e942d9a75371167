import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { findNextDeadline } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { timeAt, nameChild, spawn } from "./scene.ts";
import {
  admit,
  BACKOFF_MS,
  cancel,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  recordFinding,
  runOut,
  SETTLE_PLAN,
  startStep,
  TRIP,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

/** Steps a, b and c that wait for nothing. */
function createThreeSteps(fields: StepFields = {}, opened: Partial<PlanSetup> = {}): PlanScene {
  const names = ["a", "b", "c"];
  return planScene(openPlan({ steps: 3, ...opened }), admit(...names.map((name) => planStep(name, fields))));
}
const runSteps = (...names: string[]): Command[] => names.flatMap((name) => [dispatch(name), finish(name)]);
const spawnBy = (name: string): Command =>
  spawn("x", { parentStepId: name as StepId, sourceSession: nameSessionOfAttempt(name) });

describe("what a child of a plan spawns", () => {
  it("never takes the id of a step of the plan that is not admitted yet", () => {
    const scene = planScene(openPlan({ steps: 3 }), admit(planStep("step-1")), dispatch("step-1"));
    scene.then(startStep("step-1"), spawnBy("step-1"));
    scene.then(admit(planStep("step-2"), planStep("step-3")));
    expect(scene.open.plan.admitted).toBe(3);
    expect(scene.step("step-2").spec.planned).toBeDefined();
  });

  it("keeps the plan open until it has ended, and is stopped with the plan", () => {
    const scene = createThreeSteps().then(dispatch("a"), startStep("a"), spawnBy("a"));
    const spawned = [...scene.open.steps.keys()].at(-1)!;
    const child = { childSessionKey: nameChild("n"), childRunId: "r" };
    scene.then({ type: "acknowledgeStep", stepId: spawned, attempt: 1, ...child, via: "hook" });
    scene.then(finish("a"), ...runSteps("b"), ...runSteps("c"));
    expect(scene.says(SETTLE_PLAN)).toBe("STEPS_OPEN");
    scene.then(cancel());
    expect(scene.plans()).toEqual([`stopObserved ${spawned} 1`]);
  });
});

describe("what the child of an attempt spawned", () => {
  /** Step `a`, whose child has a child of its own. */
  function createParentAtWork(
    fields: StepFields = {},
    opened: Partial<PlanSetup> = {},
  ): { scene: PlanScene; spawned: string } {
    const scene = createThreeSteps(fields, opened).then(dispatch("a"), startStep("a"), spawnBy("a"));
    const spawned = [...scene.open.steps.keys()].at(-1)!;
    const child = { childSessionKey: nameChild("n"), childRunId: "r" };
    scene.then({ type: "acknowledgeStep", stepId: spawned, attempt: 1, ...child, via: "hook" });
    return { scene, spawned };
  }
  /** A child that a spawned child has spawned in turn. */
  function spawnLeaf(scene: PlanScene, parent: string): string {
    scene.then(spawn("y", { parentStepId: parent as StepId, sourceSession: nameChild("n") }));
    const leaf = [...scene.open.steps.keys()].at(-1)!;
    const child = { childSessionKey: nameChild("leaf"), childRunId: "r2" };
    scene.then({ type: "acknowledgeStep", stepId: leaf, attempt: 1, ...child, via: "hook" });
    return leaf;
  }
  const listStops = (scene: PlanScene): readonly string[] =>
    scene.plans().filter((effect) => effect.startsWith("stopObserved "));

  it("is stopped when the attempt ran out of time, failed or was cancelled", () => {
    for (const end of [runOut("a"), failStep("a"), failStep("a", 1, "child_cancelled")]) {
      const { scene, spawned } = createParentAtWork();
      expect(listStops(scene)).toEqual([]);
      scene.then(end);
      expect(listStops(scene)).toEqual([`stopObserved ${spawned} 1`]);
      expect(findNextDeadline(scene.open)).toBeLessThanOrEqual(timeAt(scene.nowMs));
    }
  });

  it("is stopped when the step is tried again", () => {
    const { scene, spawned } = createParentAtWork({ retryBudget: 1 });
    scene.then(failStep("a"));
    scene.passes(10 * BACKOFF_MS);
    scene.then(dispatch("a", 2), startStep("a", 2));
    expect(listStops(scene)).toEqual([`stopObserved ${spawned} 1`]);
  });

  it("goes on when the attempt completed", () => {
    const { scene } = createParentAtWork();
    scene.then(finish("a"));
    expect(listStops(scene)).toEqual([]);
  });

  it("takes what it spawned itself with it", () => {
    const { scene, spawned } = createParentAtWork();
    const leaf = spawnLeaf(scene, spawned);
    scene.then(runOut("a"), failStep(spawned, 1, "child_cancelled"));
    expect(listStops(scene)).toEqual([`stopObserved ${leaf} 1`]);
  });

  it("takes what it spawned itself with it also where it has ended by itself", () => {
    for (const createEnd of [finish, failStep]) {
      const { scene, spawned } = createParentAtWork();
      const leaf = spawnLeaf(scene, spawned);
      scene.then(createEnd(spawned));
      expect(listStops(scene)).toEqual([]);
      scene.then(failStep("a"));
      expect(listStops(scene)).toEqual([`stopObserved ${leaf} 1`]);
    }
  });

  it("is stopped where the attempt completed and the plan fails fast", () => {
    const { scene, spawned } = createParentAtWork({}, { policy: { timeoutPolicy: "fail_fast" } });
    scene.then(finish("a"), dispatch("b"));
    expect(listStops(scene)).toEqual([]);
    scene.then(failStep("b"));
    expect(listStops(scene)).toEqual([`stopObserved ${spawned} 1`]);
    expect(findNextDeadline(scene.open)).toBeLessThanOrEqual(timeAt(scene.nowMs));
  });

  it("is stopped at the deadline of the plan where the attempt completed", () => {
    const deadlineMs = 30_000;
    const { scene, spawned } = createParentAtWork({}, { plan: { deadlineAtMs: timeAt(deadlineMs) } });
    scene.then(finish("a"), ...runSteps("b"), ...runSteps("c"));
    expect(findNextDeadline(scene.open)).toBe(timeAt(deadlineMs));
    expect(scene.plans(deadlineMs - 1)).toEqual([]);
    expect(scene.plans(deadlineMs)).toEqual([`stopObserved ${spawned} 1`]);
    scene.then(failStep(spawned, 1, "child_cancelled"));
    expect(scene.plans()).toEqual([`endCoordination`]);
  });

  it("is stopped at that deadline also where the plan's budget was used up before", () => {
    const deadlineMs = 30_000;
    const plan = { deadlineAtMs: timeAt(deadlineMs), budget: { spawns: 2 } };
    const { scene, spawned } = createParentAtWork({}, { plan });
    scene.then(finish("a"), TRIP);
    expect(scene.open.plan.stop).toBe("budget");
    expect(listStops(scene)).toEqual([]);
    scene.passes(deadlineMs);
    expect(listStops(scene)).toEqual([`stopObserved ${spawned} 1`]);
  });

  it("is not continued any more where its plan failed fast while its result was revised", () => {
    const gate = { threshold: 0, checks: ["lint"], revisionsMax: 1 };
    const scene = createThreeSteps({}, { policy: { timeoutPolicy: "fail_fast" } });
    scene.then(dispatch("a"), startStep("a"));
    scene.then(spawn("x", { gate, parentStepId: "a" as StepId, sourceSession: nameSessionOfAttempt("a") }));
    const spawned = [...scene.open.steps.keys()].at(-1)!;
    scene.then(startStep(spawned), finish(spawned));
    scene.then(recordFinding(scene.step(spawned), { verdict: "revise", criteria: ["shorter"] }));
    scene.then(dispatch(spawned, 2), startStep(spawned, 2));
    scene.then(finish("a"), dispatch("b"), failStep("b"));
    const effects = scene.plans().filter((effect) => effect.includes(spawned));
    expect(effects).toEqual([`stopObserved ${spawned} 2`]);
  });
});
