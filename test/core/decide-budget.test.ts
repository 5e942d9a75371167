import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { AgentId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { TreeBudget } from "../../src/agents/coordination/contracts/usage.ts";
import { findReachedBudget } from "../../src/agents/coordination/dispatch/decide-budget.ts";
import { replayOf, replayOn } from "../../src/agents/coordination/replay/replay-log.ts";
import { acknowledge, fail, nameChild, OPEN, openScene, RUN, spawn, stepId, type Scene } from "./scene.ts";
import { usageOf } from "./usage-scene.ts";

const OWNER_STEP = "@owner" as StepId;
const READER = "reader" as AgentId;

/** A child of the owner, which works for the agent `reader`. */
function openWith(budget: TreeBudget): Scene {
  const opening = { ...OPEN, budget, questions: { answerMs: 60_000, notify: [] } } as Command;
  return openScene(opening, spawn("a", { agentId: READER }), acknowledge(1));
}

const spawnUnder = (call: string, parent: number): Command =>
  spawn(call, { parentStepId: stepId(parent), sourceSession: nameChild(parent) });

const use = (scene: Scene, step: StepId, calls: number): void => {
  scene.when({ type: "recordUsage", ...usageOf(step, calls) });
};

describe("the operator's budget", () => {
  it("refuses the spawn beyond the bound and says which, how much was used and what to do", () => {
    const scene = openWith({ spawns: 2 });
    expect(scene.when(spawn("b")).kind).toBe("accepted");
    const refused = scene.when(spawn("c"));
    expect(refused).toMatchObject({ kind: "refused", code: "BUDGET_SPENT" });
    expect(refused).toHaveProperty(
      "reason",
      "the operator's budget of this coordination is reached: 2 of 2 subagents were spawned; finish with what you have, without another subagent, and say that the budget stopped you",
    );
    expect(refused).toHaveProperty("facts", [
      {
        type: "budget.reached",
        payload: { stepId: OWNER_STEP, limit: "spawns", allowed: 2, used: 2, stopped: "spawn" },
      },
    ]);
  });

  it("does not count a spawn that ended before it had a child", () => {
    const scene = openWith({ spawns: 2 });
    scene.when(spawn("b"));
    scene.when(fail(2, "spawn_refused"));
    expect(scene.when(spawn("c")).kind).toBe("accepted");
    scene.when(acknowledge(3));
    scene.when(fail(3, "child_failed"));
    expect(scene.when(spawn("d"))).toMatchObject({ code: "BUDGET_SPENT" });
  });

  it("records once who was stopped by what, however often they try", () => {
    const scene = openWith({ spawns: 1 });
    const refused = scene.when(spawn("b"));
    scene.happened("facts" in refused ? (refused.facts ?? []) : []);
    expect(scene.when(spawn("c"))).toMatchObject({ code: "BUDGET_SPENT", facts: [] });
    const replayed = replayOn(replayOf(RUN), scene.log, { from: 0, outputs: new Map() });
    expect(replayed.difference).toBeUndefined();
  });

  it("lets children be so many levels deep and no deeper", () => {
    const scene = openWith({ depth: 2 });
    expect(scene.when(spawnUnder("b", 1)).kind).toBe("accepted");
    scene.when(acknowledge(2));
    expect(scene.when(spawnUnder("c", 2))).toMatchObject({ code: "BUDGET_SPENT" });
    expect(scene.when(spawn("d")).kind).toBe("accepted");
  });

  it("stops at tokens and at cost once they are used, and not before", () => {
    for (const budget of [{ tokens: 300 }, { costMicroUsd: 2_000 }]) {
      const scene = openWith(budget);
      const ask = { type: "stopAtBudget", stepId: stepId(1), stopped: "call" } as const;
      use(scene, stepId(1), 1);
      expect(scene.when(ask)).toEqual({ kind: "replay" });
      expect(scene.when(spawn("b")).kind).toBe("accepted");
      use(scene, OWNER_STEP, 1);
      expect(scene.when(ask)).toMatchObject({ kind: "accepted" });
      expect(scene.when(spawn("c"))).toMatchObject({ code: "BUDGET_SPENT" });
    }
  });

  it("holds an agent to its own part, for all of its sessions together", () => {
    const scene = openWith({ agents: { [READER]: { tokens: 300 } } });
    scene.when(spawn("b", { agentId: READER }));
    use(scene, OWNER_STEP, 100);
    use(scene, stepId(1), 1);
    if (scene.state.kind !== "open") throw new Error("it is open");
    expect(findReachedBudget(scene.state, { stepId: stepId(2), stopped: "run" })).toBeUndefined();
    const unrecorded = new Map([[READER, usageOf(stepId(2), 1)]]);
    expect(findReachedBudget(scene.state, { stepId: stepId(2), stopped: "run" }, unrecorded)).toEqual({
      stepId: stepId(2),
      limit: "tokens",
      agentId: READER,
      allowed: 300,
      used: 300,
      stopped: "run",
    });
    expect(
      findReachedBudget(scene.state, { stepId: OWNER_STEP, stopped: "spawn" }, unrecorded),
    ).toBeUndefined();
  });

  it("bounds nothing where there is none", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    use(scene, stepId(1), 1_000_000);
    expect(scene.when(spawnUnder("b", 1)).kind).toBe("accepted");
    expect(scene.when({ type: "stopAtBudget", stepId: stepId(1), stopped: "run" })).toEqual({
      kind: "replay",
    });
  });
});
