/** The plans that an agent of a plan submits: what they use counts for the step that the agent works on, and its plan. */
import { describe, expect, it } from "vitest";
import { runCheckedPlan } from "./checked-plan.ts";
import { createRuling, spawnChild, waitUntilQuiet } from "./gates-world.ts";
import {
  AGENT,
  createRetries,
  plan,
  PLAN_ID,
  runPlan,
  step,
  type Fields,
  type PlanRun,
} from "./planned-world.ts";
import type { PlanSubmitted } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { DELIVERY_STEP_ID, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { readAgentTree, type TreeNode } from "../../src/plugins/reports/tree.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { endDone, endFailing, type ScriptedAttempt } from "../support/scripted-runner.ts";

/** The child of the newest attempt of a step submits a plan. */
function submitAs(run: PlanRun, stepId: string, fields: Fields): Promise<PlanSubmitted> {
  const session = run.ordersOf(stepId).at(-1)!.childSessionKey;
  const nested = { ...plan([step("n"), step("m")]), ownerSession: session, ...fields };
  return run.coordinator.submitPlan({ plan: nested, submittedBy: session, ownerAgent: AGENT });
}

/** The child of the newest attempt of `a` submits a plan, and time goes on. */
async function submitNested(run: PlanRun, coordinationId: string, steps: readonly Fields[]) {
  const submitted = await submitAs(run, "a", { coordinationId, steps });
  await run.advance(5_000);
  return submitted;
}
const listBudgets = (run: PlanRun): unknown[] =>
  run.events("coordination.created").map(({ payload }) => payload.plan?.budget);
const listUsages = (run: PlanRun, stepId: string): unknown[] =>
  [
    ...run.events("result.held"),
    ...run.events("step.completed"),
    ...run.events("step.failed"),
    ...run.events("step.timed_out"),
  ]
    .filter((event) => event.payload.stepId === stepId && event.runId === PLAN_ID)
    .map(({ payload }) => payload.usage);
const endUsing = (tokens: number) => ({ ...endDone(), usage: { tokens } });

describe("the budget of a plan", () => {
  it("counts what a plan of its agent spawned", async () => {
    const run = await runPlan(
      { a: ["work"] },
      plan([step("a"), step("b", { dependsOn: ["a"] })], { budget: { spawns: 3 } }),
    );
    await submitNested(run, "plan-2", [step("n"), step("m")]);
    run.world.plans.end("a", endDone());
    await run.advance(5_000);
    expect(await run.fates()).toMatchObject({ a: "completed", b: "skipped" });
    expect(run.ordersOf("b")).toEqual([]);
    await run.close();
  });

  it("leaves the next plan of an attempt what the ones before it did not use", async () => {
    const run = await runPlan(
      { a: ["work"], n: [endUsing(30)], m: [endUsing(20)] },
      plan([step("a", { budget: { tokens: 100, spawns: 5 } })]),
    );
    await submitNested(run, "plan-2", [step("n")]);
    await submitNested(run, "plan-3", [step("m")]);
    await submitNested(run, "plan-4", [step("o")]);
    expect(listBudgets(run).slice(1)).toEqual([
      { tokens: 100, spawns: 4 },
      { tokens: 70, spawns: 3 },
      { tokens: 50, spawns: 2 },
    ]);
    run.world.plans.end("a", endUsing(5));
    await run.advance(5_000);
    expect(listUsages(run, "a")).toEqual([{ spawns: 3, tokens: 55, costMicroUsd: 0 }]);
    await run.close();
  });

  it("lets the agent of a step spawn no more than its plans leave of the step's budget", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a", { budget: { spawns: 4 } })]));
    const source = run.ordersOf("a").at(-1)!.childSessionKey;
    const spawn = (task: string) => run.coordinator.admitSpawn(spawnOf({ task, source }));
    const refused = { kind: "refused", code: "BUDGET_SPENT" };
    await submitAs(run, "a", { coordinationId: "plan-2", steps: [step("n")], budget: { spawns: 2 } });
    expect(await spawn("one")).toMatchObject({ kind: "admitted" });
    expect(await spawn("two")).toMatchObject({
      ...refused,
      reason: "plans of this step may use the rest of its budget; finish without another subagent",
    });
    // The plan is over, and has used one.
    await run.advance(5_000);
    expect(await spawn("three")).toMatchObject({ kind: "admitted" });
    expect(await Promise.all([spawn("four"), spawn("five")])).toMatchObject([refused, refused]);
    await run.close();
  });

  it.each(["the plan", "the step"])(
    "of %s does not count a spawn that the host refused or never made",
    async (whose) => {
      const budget = { spawns: 2 };
      const run = await runPlan(
        { a: ["work"] },
        whose === "the plan" ? plan([step("a")], { budget }) : plan([step("a", { budget })]),
      );
      const source = run.ordersOf("a").at(-1)!.childSessionKey;
      const spawn = (task: string) => run.coordinator.admitSpawn(spawnOf({ task, source }));
      const refused = { kind: "refused", code: "BUDGET_SPENT" };
      expect(await spawn("one")).toMatchObject({ kind: "admitted" });
      expect(await spawn("early")).toMatchObject(refused);
      const claim = { coordinationId: PLAN_ID, sourceSession: source };
      await run.coordinator.refuseSpawn({ ...claim, stepId: "@step-2" as StepId, toolCallId: "one" }, "no");
      expect(await spawn("two")).toMatchObject({ kind: "admitted" });
      await run.advance(run.world.settings.acknowledgeMs + 1_000);
      expect(run.events("step.failed").map(({ payload }) => payload.error.code)).toEqual([
        "spawn_refused",
        "spawn_not_confirmed",
      ]);
      await spawnChild(run.world, run.coordinator, "three", source);
      expect(await spawn("four")).toMatchObject(refused);
      await run.close();
    },
  );

  it("takes a plan that is submitted again for the same one, also where it used up all that was left", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a", { budget: { spawns: 2 } })]));
    await submitNested(run, "plan-2", [step("n")]);
    expect(await submitNested(run, "plan-2", [step("n")])).toMatchObject({ kind: "replay" });
    expect(await submitNested(run, "plan-3", [step("n")])).toMatchObject({
      kind: "refused",
      problems: [{ code: "NESTED_BUDGET" }],
    });
    await run.close();
  });

  it("counts what the plan of a failed attempt used", async () => {
    const run = await runPlan(
      { a: ["work", "work"], n: [endUsing(90)] },
      plan([step("a", { ...createRetries(1), budget: { tokens: 100 } })]),
    );
    await submitNested(run, "plan-2", [step("n")]);
    run.world.plans.end("a", endFailing());
    await run.advance(5_000);
    expect(run.ordersOf("a")).toHaveLength(2);
    await submitNested(run, "plan-3", [step("m")]);
    expect(listBudgets(run).at(-1)).toEqual({ tokens: 10 });
    await run.close();
  });

  it("counts what the plan of an attempt used that is cut off at its deadline, also while it runs", async () => {
    const run = await runPlan(
      { a: ["work", "work"], n: [endUsing(90)], m: ["work"] },
      plan([step("a", { ...createRetries(1), timeoutMs: 60_000, budget: { tokens: 90 } })]),
    );
    await submitNested(run, "plan-2", [step("n"), step("m")]);
    await run.advance(120_000);
    expect(listUsages(run, "a")).toEqual([{ spawns: 2, tokens: 90, costMicroUsd: 0 }]);
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.close();
  });
});

describe("the tree of a plan", () => {
  const readTreeOf = async (run: PlanRun) =>
    readAgentTree(run.world.ledger.open(run.world.clock), await run.view(), run.world.clock.now());

  const listUses = (node: TreeNode | undefined): unknown[] =>
    (node?.children ?? [])
      .filter(({ stepId }) => stepId !== DELIVERY_STEP_ID)
      .map(({ stepId, usage }) => [stepId, usage?.tokens]);

  it("has every plan of a step, and what all of them used", async () => {
    const run = await runPlan(
      { a: ["work"], n: [endUsing(100)], m: [endUsing(50)], o: ["work"] },
      plan([step("a")]),
    );
    await submitNested(run, "plan-2", [step("n")]);
    await submitNested(run, "plan-3", [step("m")]);
    const { usage: usageSoFar } = await readTreeOf(run);
    expect(usageSoFar.tokens).toBe(150);
    await submitNested(run, "plan-4", [step("o")]);
    run.world.plans.end("o", endUsing(0));
    await run.advance(5_000);
    run.world.plans.end("a", endUsing(10));
    await run.advance(5_000);
    const { usage, tree } = await readTreeOf(run);
    expect(usage).toEqual((await run.view()).usage);
    expect(usage.tokens).toBe(160);
    expect(tree.children[0]).toMatchObject({ stepId: "a", planId: "plan-4", usage: { tokens: 10 } });
    expect(listUses(tree.children[0])).toEqual([
      ["n", 100],
      ["m", 50],
      ["o", undefined],
    ]);
    await run.close();
  });

  it("has the plans of attempts that failed", async () => {
    const run = await runPlan(
      { a: ["work", "work"], n: [endUsing(90)], m: [endUsing(5)] },
      plan([step("a", createRetries(1))]),
    );
    await submitNested(run, "plan-2", [step("n")]);
    run.world.plans.end("a", endFailing());
    await run.advance(5_000);
    await submitNested(run, "plan-3", [step("m")]);
    const { usage, tree } = await readTreeOf(run);
    expect(usage.tokens).toBe(95);
    expect(listUses(tree.children[0])).toEqual([
      ["n", 90],
      ["m", 5],
    ]);
    await run.close();
  });
});

describe("the plans of two steps at once", () => {
  const runBoth = (scripts: Readonly<Record<string, readonly ScriptedAttempt[]>>) =>
    runPlan(
      { a: ["work"], b: ["work"], n: ["work"], m: ["work"], ...scripts },
      plan([step("a"), step("b")], { budget: { spawns: 6, tokens: 100 } }),
    );
  const SPENT = { kind: "refused", problems: [{ code: "NESTED_BUDGET" }] };

  it("are not both given all that is left", async () => {
    const run = await runBoth({});
    expect(await submitAs(run, "a", { coordinationId: "plan-2" })).toMatchObject({ kind: "accepted" });
    expect(await submitAs(run, "b", { coordinationId: "plan-3" })).toMatchObject(SPENT);
    expect(listBudgets(run).slice(1)).toEqual([{ spawns: 4, tokens: 100 }]);
    await run.close();
  });

  it("are not both given it where both are submitted in the same moment", async () => {
    const run = await runBoth({});
    const submitted = await Promise.all([
      submitAs(run, "a", { coordinationId: "plan-2" }),
      submitAs(run, "b", { coordinationId: "plan-3" }),
    ]);
    expect(submitted).toMatchObject([{ kind: "accepted" }, SPENT]);
    await run.close();
  });

  it("are given what the other one may not use by its own budget", async () => {
    const run = await runBoth({});
    const budget = { spawns: 1, tokens: 30 };
    await submitAs(run, "a", { coordinationId: "plan-2", budget });
    await submitAs(run, "b", { coordinationId: "plan-3" });
    expect(listBudgets(run).slice(1)).toEqual([budget, { spawns: 3, tokens: 70 }]);
    await run.close();
  });

  it("are given what the other one did not use, once that has ended", async () => {
    const run = await runBoth({ n: [endUsing(10)], m: [endUsing(5)] });
    await submitAs(run, "a", { coordinationId: "plan-2" });
    await run.advance(5_000);
    await submitAs(run, "b", { coordinationId: "plan-3" });
    expect(listBudgets(run).slice(1)).toEqual([
      { spawns: 4, tokens: 100 },
      { spawns: 2, tokens: 85 },
    ]);
    run.world.plans.end("a", endUsing(1));
    await run.advance(5_000);
    expect(listUsages(run, "a")).toEqual([{ spawns: 2, tokens: 16, costMicroUsd: 0 }]);
    await run.close();
  });
});

describe("a result that was revised", () => {
  it("is the agent's own, and not the answer to a plan of the attempt before", async () => {
    const checkedPlan = await runCheckedPlan(
      ({ result }) => createRuling(result.stepId === "a" && result.attempt === 1 ? "revise" : "pass"),
      { scripts: ["work", "work"] },
    );
    const { run } = checkedPlan;
    await submitNested(run, "plan-2", [step("n")]);
    run.world.plans.end("a", endDone({ n: 1 }));
    await run.advance(10_000);
    await waitUntilQuiet(run.world);
    expect(run.ordersOf("a")).toHaveLength(2);
    run.world.plans.end("a", endDone({ n: 2 }));
    await run.advance(10_000);
    await waitUntilQuiet(run.world);
    expect(checkedPlan.asked.at(-1)?.result).toMatchObject({ attempt: 2, text: '{"n":2}' });
    expect(listUsages(run, "a")).toEqual([{ spawns: 1, tokens: 0, costMicroUsd: 0 }, {}, undefined]);
    await run.close();
  });
});
