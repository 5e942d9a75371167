import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID, type AgentId, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { openOf } from "./claims-scene.ts";
import {
  admit,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planStep,
  startStep,
} from "./planned-scene.ts";
import {
  acknowledge,
  complete,
  createDispatched,
  fail,
  nameChild,
  OPEN,
  openScene,
  openWaitingScene,
  spawn,
  stepId,
  timeOut,
  type Scene,
} from "./scene.ts";
import { usageOf } from "./usage-scene.ts";

const READER = "reader" as AgentId;
const WORK = "work" as StepId;
const CHILD = "@step-2" as StepId;

const createUsed = (step: StepId, calls: number): FactDraft => ({
  type: "usage.recorded",
  payload: usageOf(step, calls),
});

/** A plan whose step works, and whose child spawned a child of its own, `@step-2`. */
function openPlanWithChild(): Scene {
  const spawned = spawn("own", {
    parentStepId: WORK,
    sourceSession: nameSessionOfAttempt("work"),
  });
  return openScene(
    openPlan({ steps: 1 }),
    admit(planStep("work", { retryBudget: 1 })),
    dispatch("work"),
    startStep("work"),
    spawned,
  );
}

describe("usage that is recorded", () => {
  it("is of the owner or of a step: other logs are damaged", () => {
    const scene = openScene(OPEN, spawn("a"));
    expect(() => {
      scene.happened([createUsed(stepId(9), 1)]);
    }).toThrow("usage of no step: co-1:");
    scene.happened([createUsed(OWNER_STEP_ID, 1), createUsed(stepId(1), 1)]);
    expect(openOf(scene).bill.sum.tokens).toBe(300);
  });

  it("counts for the plan where a child of its step's child used it, each record with what it adds", () => {
    const scene = openPlanWithChild();
    const { spent } = openOf(scene).plan!;
    expect(spent).toEqual({ spawns: 2, tokens: 0, costMicroUsd: 0 });
    scene.happened([createUsed(CHILD, 2)]);
    expect(openOf(scene).plan?.spent).toEqual({ spawns: 2, tokens: 300, costMicroUsd: 2_000 });
    scene.happened([createUsed(CHILD, 5)]);
    expect(openOf(scene).plan?.spent).toEqual({ spawns: 2, tokens: 750, costMicroUsd: 5_000 });
    expect(openOf(scene).bill.sum).toEqual({ tokens: 750, costMicroUsd: 5_000 });
  });

  it("does not count for the plan where the owner used it, or its step, whose runner tells", () => {
    const scene = openPlanWithChild();
    scene.happened([createUsed(WORK, 2), createUsed(OWNER_STEP_ID, 1)]);
    expect(openOf(scene).plan?.spent).toEqual({ spawns: 2, tokens: 0, costMicroUsd: 0 });
    expect(openOf(scene).bill.sum).toEqual({ tokens: 450, costMicroUsd: 3_000 });
  });
});

describe("B2: what the runner of a plan's step says that it used", () => {
  it.each([
    ["counts where it is more than the calls say", 1, { tokens: 400, costMicroUsd: 3_000 }],
    ["does not count where the calls say more", 4, { tokens: 600, costMicroUsd: 4_000 }],
  ])("%s", (_, calls, sum) => {
    const scene = openPlanWithChild();
    scene.happened([createUsed(WORK, calls)]);
    scene.when(finish("work", 1, { usage: { tokens: 400, costMicroUsd: 3_000 } }));
    expect(openOf(scene).bill.sum).toEqual(sum);
    expect(openOf(scene).plan?.spent).toMatchObject({ tokens: 400, costMicroUsd: 3_000 });
  });

  it("adds up over its attempts", () => {
    const usage = { tokens: 400, costMicroUsd: 3_000 };
    const scene = openPlanWithChild();
    scene.when(failStep("work", 1, "child_failed", usage));
    for (const command of [dispatch("work", 2), startStep("work", 2), finish("work", 2, { usage })])
      scene.when(command);
    expect(openOf(scene).bill.sum).toEqual({ tokens: 800, costMicroUsd: 6_000 });
  });
});

describe("spawns that models made", () => {
  const listSpawns = (scene: Scene): unknown => openOf(scene).bill.spawns.toJS();

  it("count for the agent whose session made them", () => {
    const below: Command = spawn("b", { parentStepId: stepId(1), sourceSession: nameChild(1) });
    const scene = openScene(OPEN, spawn("a", { agentId: READER }), acknowledge(1), below);
    expect(listSpawns(scene)).toEqual({ main: 1, reader: 1 });
    scene.when(fail(2, "spawn_refused"));
    expect(listSpawns(scene)).toEqual({ main: 1, reader: 0 });
  });

  it.each<readonly [string, number, readonly Command[]]>([
    ["do not count where one was refused", 0, [fail(1, "spawn_refused")]],
    ["do not count where one was cancelled before it had a child", 0, [fail(1, "child_cancelled")]],
    ["do not count where nothing was heard of one in time", 0, [timeOut(1)]],
    ["count where one completed before its child was heard of", 1, [complete(1)]],
    ["count where the child ran out of time", 1, [acknowledge(1), timeOut(1)]],
  ])("%s", (_, count, commands) => {
    const scene = openScene(OPEN, spawn("a"), ...commands);
    expect(openOf(scene).bill.spawnCount).toBe(count);
  });

  it("are taken off the bill once, however many attempts went wrong", () => {
    const scene = openWaitingScene(1);
    expect(openOf(scene).bill.spawnCount).toBe(1);
    for (const attempt of [1, 2]) {
      scene.happened([createDispatched(attempt)]);
      scene.when(timeOut(1, attempt));
      expect(openOf(scene).bill.spawnCount).toBe(0);
    }
  });
});
