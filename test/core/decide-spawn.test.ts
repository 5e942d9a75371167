import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { nameChild, openScene, OPEN, spawn } from "./scene.ts";
import {
  admit,
  answer,
  dispatch,
  finish,
  HITL,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  startStep,
  TRIP,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

const spawnBy = (name: string, call: string): Command =>
  spawn(call, { parentStepId: name as StepId, sourceSession: nameSessionOfAttempt(name) });

describe("the budget of spawns", () => {
  it("of a plan counts anew from where people let the plan go on", () => {
    const scene = planScene(
      openPlan({ steps: 3, ...HITL, plan: { budget: { spawns: 2 } } }),
      admit(planStep("a"), planStep("b"), planStep("c")),
      ...["a", "b"].flatMap((name) => [dispatch(name), startStep(name), finish(name)]),
      TRIP,
      answer(1, "approve"),
      dispatch("c"),
      startStep("c"),
    );
    expect(scene.says(spawnBy("c", "1"))).toBe("step.admitted step.dispatched");
    expect(scene.says(spawnBy("c", "2"))).toBe("BUDGET_SPENT");
  });

  const createStepAtWork = (fields: StepFields): PlanScene =>
    planScene(openPlan({ steps: 1 }), admit(planStep("a", fields)), dispatch("a"), startStep("a"));
  const createPlanAtWork = (plan: NonNullable<PlanSetup["plan"]>): PlanScene =>
    planScene(openPlan({ steps: 1, plan }), admit(planStep("a")), dispatch("a"), startStep("a"));

  it("of a step counts the attempt itself, and is no limit where none is set", () => {
    const limited = createStepAtWork({ budget: { spawns: 2 } });
    expect(limited.says(spawnBy("a", "1"))).toBe("step.admitted step.dispatched");
    expect(limited.when(spawnBy("a", "2"))).toMatchObject({
      code: "BUDGET_SPENT",
      reason: "the spawn budget of the step is spent; finish without another subagent",
    });
    const free = createStepAtWork({ budget: { tokens: 1 } });
    for (const call of ["1", "2", "3"])
      expect(free.says(spawnBy("a", call))).toBe("step.admitted step.dispatched");
  });

  it.each<readonly [string, () => PlanScene]>([
    ["plan", () => createPlanAtWork({ budget: { spawns: 1 } })],
    ["step", () => createStepAtWork({ budget: { spawns: 1 } })],
  ])("of a %s that is used up keeps no child out of the log that the host has made already", (_, begin) => {
    const scene = begin();
    expect(scene.says(spawnBy("a", "1"))).toBe("BUDGET_SPENT");
    const child = { childSessionKey: nameChild("late"), childRunId: "run-late" };
    expect(scene.says({ ...spawnBy("a", "1"), child } as Command)).toBe(
      "step.admitted step.dispatched step.acknowledged",
    );
    expect(scene.step("a").spent?.spawns).toBe(2);
  });
});

describe("a spawn that is asked for again", () => {
  it.each([
    { toolCallId: "call-1", spanId: "span-1" },
    { runId: "run-1", spanId: "span-1" },
    { spanId: "span-1" },
  ])("is another one where its call cannot be told from others: %o", (call) => {
    const scene = openScene(OPEN, spawn("a", { call }));
    expect(scene.when(spawn("a", { call }))).toMatchObject({ kind: "accepted", stepId: "step-2" });
  });
});
