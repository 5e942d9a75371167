import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { AgentId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { BudgetReached, RunUsage, TreeBudget } from "../../src/agents/coordination/contracts/usage.ts";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import {
  explainBudgetStop,
  findReachedBudget,
  recordUsage,
  stopAtBudget,
} from "../../src/agents/coordination/dispatch/decide-budget.ts";
import { nameRun } from "../../src/agents/coordination/ledger/bill.ts";
import type { OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { startReplay, continueReplay } from "../../src/agents/coordination/replay/replay-log.ts";
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

function stateOf(scene: Scene): OpenCoordination {
  if (scene.state.kind !== "open") throw new Error("it is open");
  return scene.state;
}

const record = (state: OpenCoordination, usage: RunUsage): ReturnType<typeof recordUsage> =>
  recordUsage(state, { type: "recordUsage", ...usage });

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
    const replayed = continueReplay(startReplay(RUN), scene.log, { from: 0, outputs: new Map() });
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
    const state = stateOf(scene);
    expect(findReachedBudget(state, { stepId: stepId(2), stopped: "run" })).toBeUndefined();
    const unrecorded = new Map([[READER, usageOf(stepId(2), 1)]]);
    expect(findReachedBudget(state, { stepId: stepId(2), stopped: "run" }, unrecorded)).toEqual({
      stepId: stepId(2),
      limit: "tokens",
      agentId: READER,
      allowed: 300,
      used: 300,
      stopped: "run",
    });
    expect(findReachedBudget(state, { stepId: OWNER_STEP, stopped: "spawn" }, unrecorded)).toBeUndefined();
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

describe("a record of what a run used", () => {
  const usage = usageOf(stepId(1), 2);

  it("is refused for a step that is not there", () => {
    const { state } = openWith({});
    expect(record(state as OpenCoordination, usageOf(stepId(9), 1))).toMatchObject({
      kind: "refused",
      code: "UNKNOWN_STEP",
      reason: "there is no step step-9",
    });
  });

  it("says nothing new when it has no call, or when it comes again", () => {
    const scene = openWith({});
    expect(scene.when({ type: "recordUsage", ...usageOf(stepId(1), 0) })).toEqual({ kind: "replay" });
    expect(scene.when({ type: "recordUsage", ...usage })).toMatchObject({ kind: "accepted" });
    expect(scene.when({ type: "recordUsage", ...usage })).toEqual({ kind: "replay" });
    expect(scene.when({ type: "recordUsage", ...usageOf(stepId(1), 1) })).toEqual({ kind: "replay" });
  });

  it.each<Partial<RunUsage>>([
    { calls: 3 },
    { inputTokens: 161 },
    { outputTokens: 41 },
    { cacheReadTokens: 81 },
    { cacheWriteTokens: 21 },
    { costMicroUsd: 2_001 },
    { models: ["mock/scripted", "mock/other"] },
  ])("is kept when it says more: %j", (more) => {
    const scene = openWith({});
    scene.when({ type: "recordUsage", ...usage });
    expect(scene.when({ type: "recordUsage", ...usage, ...more })).toMatchObject({ kind: "accepted" });
  });

  it("is refused beyond the number of runs that are kept, except of a run that is among them", () => {
    const state = stateOf(openWith({}));
    const usages = Array.from({ length: BOUNDS.usageRunsMax }, (_, at) =>
      usageOf(stepId(1), 1, { runId: `run-${at}` }),
    );
    const holdRuns = (runs: readonly RunUsage[]): OpenCoordination => ({
      ...state,
      bill: { ...state.bill, runs: state.bill.runs.concat(runs.map((each) => [nameRun(each), each])) },
    });
    expect(record(holdRuns(usages.slice(1)), usage)).toMatchObject({ kind: "accepted" });
    expect(record(holdRuns(usages), usage)).toMatchObject({
      kind: "refused",
      code: "TOO_MANY_RUNS",
      reason: `the usage of at most ${BOUNDS.usageRunsMax} runs is recorded`,
    });
    expect(record(holdRuns(usages), usageOf(stepId(1), 2, { runId: "run-0" })).kind).toBe("accepted");
  });
});

describe("the record of who was stopped", () => {
  const stop = { type: "stopAtBudget", stepId: stepId(1), stopped: "call" } as const;
  const reached: BudgetReached = {
    stepId: stepId(1),
    limit: "tokens",
    allowed: 100,
    used: 150,
    stopped: "call",
  };

  function openStopped(stops: readonly BudgetReached[]): OpenCoordination {
    const scene = openWith({ tokens: 100 });
    use(scene, stepId(1), 1);
    const state = stateOf(scene);
    return { ...state, bill: { ...state.bill, stops } };
  }

  it("names the bound, what was used and what was stopped", () => {
    expect(stopAtBudget(openStopped([]), stop)).toMatchObject({
      facts: [{ type: "budget.reached", payload: reached }],
    });
  });

  it("is made once, however much more was used since", () => {
    expect(stopAtBudget(openStopped([{ ...reached, used: 110 }]), stop)).toEqual({ kind: "replay" });
  });

  it.each<Partial<BudgetReached>>([
    { stepId: stepId(2) },
    { limit: "costMicroUsd" },
    { agentId: READER },
    { stopped: "run" },
  ])("is made beside one that differs in %j", (other) => {
    expect(stopAtBudget(openStopped([{ ...reached, ...other }]), stop).kind).toBe("accepted");
  });

  it("is not made beyond the number of records that are kept", () => {
    const others = Array.from({ length: BOUNDS.budgetStopsMax }, (_, at) => ({
      ...reached,
      stepId: stepId(at + 2),
    }));
    expect(stopAtBudget(openStopped(others.slice(1)), stop).kind).toBe("accepted");
    expect(stopAtBudget(openStopped(others), stop)).toEqual({ kind: "replay" });
  });
});

describe("what a bound stops", () => {
  it("is spawns alone for bounds of spawns and of depth", () => {
    const state = stateOf(openWith({ spawns: 1, depth: 1 }));
    for (const stopped of ["call", "run"] as const)
      expect(findReachedBudget(state, { stepId: stepId(1), stopped })).toBeUndefined();
    expect(findReachedBudget(state, { stepId: stepId(1), stopped: "spawn" })?.limit).toBe("spawns");
  });

  it("counts the spawns of the agent for a bound of the agent", () => {
    const scene = openWith({ agents: { [READER]: { spawns: 1 } } });
    expect(scene.when(spawnUnder("b", 1)).kind).toBe("accepted");
    scene.when(acknowledge(2));
    expect(scene.when(spawnUnder("c", 1))).toMatchObject({ code: "BUDGET_SPENT" });
  });

  it("is nobody whose session is not in the coordination", () => {
    const state = stateOf(openWith({ spawns: 1 }));
    expect(findReachedBudget(state, { stepId: stepId(9), stopped: "spawn" })).toBeUndefined();
  });

  it.each<[Partial<BudgetReached>, string]>([
    [
      { limit: "costMicroUsd", allowed: 1_500_000, used: 2_000_000 },
      "the operator's budget of this coordination is reached: 2 of 1.5 USD are spent; finish with what you have, without another subagent, and say that the budget stopped you",
    ],
    [
      { limit: "depth", allowed: 1, used: 1 },
      "the operator's budget of this coordination is reached: subagents may be spawned 1 level deep, and this session is on level 1; do the work yourself, or leave it to the session that spawned you",
    ],
    [
      { limit: "depth", allowed: 2, used: 2, agentId: READER },
      "the operator's budget of agent reader in this coordination is reached: subagents may be spawned 2 levels deep, and this session is on level 2; do the work yourself, or leave it to the session that spawned you",
    ],
    [
      { limit: "tokens", allowed: 300, used: 301 },
      "the operator's budget of this coordination is reached: 301 of 300 tokens are used; finish with what you have, without another subagent, and say that the budget stopped you",
    ],
  ])("is said in words: %j", (reached, sentence) => {
    const spawnStop = { stepId: stepId(1), limit: "spawns", allowed: 1, used: 1, stopped: "spawn" } as const;
    expect(explainBudgetStop({ ...spawnStop, ...reached })).toBe(sentence);
  });
});
