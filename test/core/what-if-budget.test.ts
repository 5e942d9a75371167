import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunUsage, TreeBudget } from "../../src/agents/coordination/contracts/usage.ts";
import { acknowledge, complete, fail, MAIN, nameChild, OPEN, spawn, stepId, SETTLE } from "./scene.ts";
import { usageOf } from "./usage-scene.ts";
import { replayUnderPolicy } from "./what-if-scene.ts";

const openWith = (budget?: TreeBudget): Command =>
  ({ ...OPEN, questions: { answerMs: 600_000 }, ...(budget && { budget }) }) as Command;
const record = (usage: RunUsage): Command => ({ type: "recordUsage", ...usage });
const child = [spawn("one"), acknowledge(1)] as const;

describe("a budget that calls would have reached", () => {
  it.each<readonly [string, TreeBudget, string]>([
    ["tokens", { tokens: 1_000 }, "1500 of 1000 tokens are used"],
    ["cost", { costMicroUsd: 9_000 }, "0.01 of 0.009 USD are spent"],
    ["an agent's tokens", { agents: { [MAIN]: { tokens: 200 } } }, "agent main"],
  ])("may have stopped the child that reached it: %s", async (_, budget, why) => {
    const whatIf = await replayUnderPolicy({ budget }, [
      openWith(),
      ...child,
      record(usageOf(stepId(1), 10)),
      complete(1),
    ]);
    expect(whatIf.points).toMatchObject([
      {
        stepId: "step-1",
        decided: "its calls go on",
        would: "the budget stops its next call",
        why: expect.stringContaining(why) as unknown,
        certainty: "unknown",
      },
    ]);
    expect(whatIf.uncertain.map(({ stepId: id }) => id)).toEqual(["step-1"]);
    expect(whatIf.leftOut).toBe(1);
  });

  it("is told also where the usage is recorded after the end", async () => {
    const whatIf = await replayUnderPolicy({ budget: { tokens: 1_000 } }, [
      openWith(),
      ...child,
      complete(1),
      SETTLE,
      record(usageOf(stepId(1), 10)),
    ]);
    expect(whatIf.points).toMatchObject([{ stepId: "step-1", certainty: "unknown" }]);
  });

  it("is not told of the owner, whose turns nothing stops, nor where the one call of a step is its last", async () => {
    const { points } = await replayUnderPolicy({ budget: { tokens: 100 } }, [
      openWith(),
      ...child,
      complete(1),
      record(usageOf(stepId(1), 1)),
      record(usageOf(OWNER_STEP_ID, 10)),
    ]);
    expect(points).toEqual([]);
  });

  it("is told of a single call where it was reached before, because that call may have come after", async () => {
    const { points } = await replayUnderPolicy({ budget: { tokens: 1_000 } }, [
      openWith(),
      ...child,
      spawn("two"),
      acknowledge(2),
      record(usageOf(stepId(1), 10)),
      complete(2),
      record(usageOf(stepId(2), 1)),
    ]);
    expect(points.map(({ stepId: id }) => id)).toEqual(["step-1", "step-2"]);
  });

  it.each([
    ["is told of two runs of one call each, because either may have come after", 100],
    ["is told of the run that reaches it where the step has another one", 300],
  ])("%s", async (_, tokens) => {
    const { points } = await replayUnderPolicy({ budget: { tokens } }, [
      openWith(),
      ...child,
      complete(1),
      record(usageOf(stepId(1), 1)),
      record(usageOf(stepId(1), 1, { runId: "second-run" })),
    ]);
    expect(points.map(({ stepId: id }) => id)).toEqual(["step-1"]);
  });

  it("is not told where the budget that held was reached then, too", async () => {
    const { points } = await replayUnderPolicy({ budget: { tokens: 900 } }, [
      openWith({ tokens: 1_000 }),
      ...child,
      record(usageOf(stepId(1), 10)),
      { type: "stopAtBudget", stepId: stepId(1), stopped: "call" },
      fail(1, "child_cancelled"),
    ]);
    expect(points).toEqual([]);
  });
});

describe("a budget that stopped somebody", () => {
  const refused: Command = { type: "stopAtBudget", stepId: OWNER_STEP_ID, stopped: "spawn" };

  it("would have let the owner spawn, and nothing that it spawned afterwards is certain", async () => {
    const whatIf = await replayUnderPolicy({ budget: { spawns: 100 } }, [
      openWith({ spawns: 1 }),
      spawn("one"),
      refused,
      // It had no child, so it does not count.
      fail(1),
      spawn("two"),
    ]);
    expect(whatIf.points).toMatchObject([
      {
        decided: "the budget refuses a spawn",
        would: "the budget allows it",
        why: "the budget is not reached",
        certainty: "differs",
      },
      { stepId: "step-2", would: "no longer certain" },
    ]);
    expect(whatIf.points[0]).not.toHaveProperty("stepId");
  });

  it("would have let a child go on, so that its end is no evidence", async () => {
    const whatIf = await replayUnderPolicy({ budget: {} }, [
      openWith({ tokens: 1_000 }),
      ...child,
      record(usageOf(stepId(1), 10)),
      { type: "stopAtBudget", stepId: stepId(1), stopped: "call" },
      fail(1, "child_cancelled"),
    ]);
    expect(whatIf.points).toMatchObject([
      { stepId: "step-1", decided: "the budget stops its next call", would: "the budget allows it" },
    ]);
    expect(whatIf.uncertain.map(({ stepId: id }) => id)).toEqual(["step-1"]);
    expect(whatIf.leftOut).toBe(1);
  });

  it("would have stopped it all the same where the policy says nothing of that limit", async () => {
    const commands = [openWith({ spawns: 1, agents: { [MAIN]: { depth: 1 } } }), ...child, refused];
    for (const budget of [{ tokens: 100_000 }, { agents: { [MAIN]: { tokens: 100_000 } } }])
      expect((await replayUnderPolicy({ budget }, commands)).points).toEqual([]);
    const laxer = await replayUnderPolicy({ budget: { spawns: 2 } }, commands);
    expect(laxer.points).toMatchObject([{ would: "the budget allows it" }]);
  });

  it.each([{ agents: {} }, { agents: { [MAIN]: {} } }])(
    "would have stopped it all the same where the policy's budget limits nothing: %j",
    async (budget) => {
      const commands = [openWith({ spawns: 1 }), ...child, refused];
      expect((await replayUnderPolicy(parseReplayPolicy({ budget }), commands)).points).toEqual([]);
      const none = await replayUnderPolicy(parseReplayPolicy({ budget: {} }), commands);
      expect(none.points).toMatchObject([{ would: "the budget allows it" }]);
    },
  );

  it("would have stopped the same spawner earlier, and is not told as one that allows the later spawn", async () => {
    const { points } = await replayUnderPolicy({ budget: { spawns: 1 } }, [
      openWith({ spawns: 2 }),
      ...child,
      spawn("two"),
      acknowledge(2),
      refused,
    ]);
    expect(points).toMatchObject([{ stepId: "step-2", would: "the spawn is refused" }]);
  });

  it("would have let a child spawn, whose own result is then no evidence", async () => {
    const whatIf = await replayUnderPolicy({ budget: { depth: 5 } }, [
      openWith({ depth: 1 }),
      ...child,
      { type: "stopAtBudget", stepId: stepId(1), stopped: "spawn" },
      complete(1),
      spawn("later"),
      acknowledge(2, nameChild("later")),
    ]);
    expect(whatIf.points).toMatchObject([
      { stepId: "step-1", decided: "the budget refuses a spawn", would: "the budget allows it" },
      { stepId: "step-2", would: "no longer certain", certainty: "follows" },
    ]);
  });
});
