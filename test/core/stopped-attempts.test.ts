/** Attempts that are stopped, at their deadline or because they are cancelled: what they used counts like that of any other. */
import { describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { createUsageBook } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone, endFailing } from "../support/scripted-runner.ts";
import {
  AGENT,
  createRetries,
  plan,
  PLAN_ID,
  runPlan,
  scriptOf,
  step,
  submitTo,
  type Fields,
  type PlanRun,
} from "./planned-world.ts";
import { logOver } from "./run-log-scene.ts";
import { usageOf } from "./usage-scene.ts";

const DOLLAR = 1_000_000;
const spendDollar = { using: { tokens: 40, costMicroUsd: DOLLAR } };
const createSpendingStep = (fields: Fields = {}): Fields =>
  step("a", { timeoutMs: 60_000, ...createRetries(5), ...fields });
const HOUR_MS = 3_600_000;
/** As `usageOf` has it. */
const CALL = {
  model: "mock/scripted",
  inputTokens: 80,
  outputTokens: 20,
  cacheReadTokens: 40,
  cacheWriteTokens: 10,
  costNanoUsd: 1_000_000,
};

const listUsages = (run: PlanRun): unknown[] =>
  [...run.events("step.failed"), ...run.events("step.timed_out")].map(({ payload }) => payload.usage);

describe("what an attempt used that runs out of time", () => {
  it("counts for the plan's budget, which then begins no further one", async () => {
    const run = await runPlan({ a: [spendDollar] }, plan([createSpendingStep()], { budget: { costUsd: 1 } }));
    await run.advance(HOUR_MS);
    expect(run.ordersOf("a")).toHaveLength(1);
    expect(listUsages(run)).toEqual([{ spawns: 0, tokens: 40, costMicroUsd: DOLLAR }]);
    expect(run.events("coordination.escalated")).toMatchObject([{ payload: { cause: "budget" } }]);
    expect(await run.fates()).toMatchObject({ a: "timed_out" });
    await run.close();
  });

  it("counts for the step's budget, all attempts together", async () => {
    const run = await runPlan({ a: [spendDollar] }, plan([createSpendingStep({ budget: { costUsd: 2 } })]));
    await run.advance(HOUR_MS);
    expect(run.ordersOf("a")).toHaveLength(2);
    expect(await run.fates()).toMatchObject({ a: "timed_out" });
    await run.close();
  });

  it("is known before the next attempt begins, because its agent is stopped first", async () => {
    const run = await runPlan({ a: [spendDollar, endDone()] }, plan([createSpendingStep()]));
    await run.advance(HOUR_MS);
    const timedOut = run.appends.find((types) => types.includes("step.timed_out"));
    expect(timedOut).toContain("step.child_stopped");
    expect(run.world.plans.cancelled).toEqual(["plan-1:a:1"]);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });

  it("counts once where its agent is out of reach at first, and stopped then", async () => {
    const runner = createScriptedRunner(scriptOf({ a: [spendDollar] }));
    let requests = 0;
    const deaf: typeof runner = {
      ...runner,
      cancel: (attempt) => {
        requests += 1;
        return requests === 1 ? Promise.resolve("unreachable") : runner.cancel(attempt);
      },
    };
    const run = await submitTo(
      createWorld({}, deaf),
      plan([createSpendingStep()], { budget: { costUsd: 1 } }),
    );
    await run.advance(HOUR_MS);
    const usage = { spawns: 0, tokens: 40, costMicroUsd: DOLLAR };
    expect(run.events("step.child_stopped")).toMatchObject([{ payload: { outcome: "stopped", usage } }]);
    expect(listUsages(run)).toEqual([undefined]);
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.close();
  });

  it("is what its recorded calls used where its agent is out of reach at first, and unknown then", async () => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"] }));
    const unreachable: typeof runner = { ...runner, cancel: () => Promise.resolve("unreachable") };
    const run = await submitTo(
      createWorld({}, unreachable),
      plan([step("a", createRetries(1))], { budget: { tokens: 1_500 } }),
    );
    const usage = usageOf("a" as StepId, 10, { runId: "run-1" });
    await logOver(run.world).submit(PLAN_ID, [{ type: "recordUsage", ...usage }]);
    await run.advance(HOUR_MS);
    const used = { spawns: 0, tokens: 1_500, costMicroUsd: 10_000 };
    expect(run.events("step.child_stopped")).toMatchObject([
      { payload: { outcome: "unreachable", usage: used } },
    ]);
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.close();
  });

  it("counts also where its agent is stopped only when the next attempt has begun", async () => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"] }));
    const untilReached = Promise.withResolvers<"unreachable">();
    let requests = 0;
    const slow: typeof runner = {
      ...runner,
      cancel: () => {
        requests += 1;
        return requests === 1 ? Promise.resolve("unreachable") : untilReached.promise;
      },
    };
    const run = await submitTo(createWorld({}, slow), plan([createSpendingStep()]));
    const recordUse = (attempt: number, calls: number) => {
      const usage = usageOf("a" as StepId, calls, { runId: `plan-1:a:${attempt}` });
      return logOver(run.world).submit(PLAN_ID, [{ type: "recordUsage", ...usage }]);
    };
    await recordUse(1, 10);
    await run.advance(65_000);
    expect(run.ordersOf("a")).toHaveLength(2);
    await recordUse(2, 4);
    untilReached.resolve("unreachable");
    await run.advance(1_000);
    const usedLast = { tokens: 600, costMicroUsd: 4_000 };
    run.world.plans.end("a", { ...endDone(), usage: usedLast });
    await run.advance(10_000);
    const used = { spawns: 0, tokens: 1_500, costMicroUsd: 10_000 };
    expect(run.events("step.child_stopped")).toMatchObject([{ payload: { usage: used } }]);
    expect(run.events("step.completed")[0]).toMatchObject({ nodeId: "a", payload: { usage: usedLast } });
    await run.close();
  });

  it("is not taken for a cancelled step where the process dies before it can record the time-out", async () => {
    const run = await runPlan({ a: [spendDollar, endDone()] }, plan([createSpendingStep()]));
    const [order] = run.ordersOf("a");
    await run.restart(() => {
      run.world.clock.jump(order!.deadlineAtMs);
      void run.world.plans.cancel(order!);
    });
    await run.advance(HOUR_MS);
    expect(listUsages(run)).toEqual([{ spawns: 0, tokens: 40, costMicroUsd: DOLLAR }]);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });
});

describe("what an attempt used that ends by itself", () => {
  /** The runner reads the newest messages of an agent only. */
  const toldByRunner = { tokens: 600, costMicroUsd: 4_000 };
  const used = { spawns: 0, tokens: 1_500, costMicroUsd: 10_000 };

  it.each([
    ["completes", "step.completed", endDone()],
    ["fails", "step.failed", endFailing()],
  ] as const)(
    "is what its calls used where that is more than its runner says, and it %s",
    async (_, type, ending) => {
      const steps = [step("a"), step("b", { dependsOn: ["a"] })];
      const run = await runPlan({ a: ["work"] }, plan(steps, { budget: { tokens: 1_500 } }));
      const usage = usageOf("a" as StepId, 10, { runId: "plan-1:a:1" });
      await logOver(run.world).submit(PLAN_ID, [{ type: "recordUsage", ...usage }]);
      await run.restart(() => undefined);
      run.world.plans.end("a", { ...ending, usage: toldByRunner });
      await run.advance(5_000);
      expect(run.events(type)[0]).toMatchObject({ nodeId: "a", payload: { usage: used } });
      expect(run.ordersOf("b")).toEqual([]);
      await run.close();
    },
  );

  it.each([
    ["later", "work"],
    ["before its start is answered", { ...endDone(), usage: toldByRunner }],
  ] as const)("is also what calls used that were not recorded yet, where it ends %s", async (_, scripted) => {
    const book = createUsageBook("meter-1");
    const runner = createScriptedRunner(({ childSessionKey: session, idempotencyKey: runId }) => {
      for (let call = 0; call < 10; call += 1) {
        book.beginCall({ session, runId });
        book.addUsage(session, CALL);
      }
      return scripted;
    });
    const world = createWorld({}, runner);
    const { clock, host } = world;
    const start: World["start"] = (wrap) => world.start(wrap, { clock, runner: host, usage: book });
    const run = await submitTo({ ...world, start }, plan([step("a")]));
    runner.end("a", { ...endDone(), usage: toldByRunner });
    await run.advance(5_000);
    expect(run.events("step.completed")[0]).toMatchObject({ nodeId: "a", payload: { usage: used } });
    await run.close();
  });
});

describe("what an attempt used that is cancelled", () => {
  it("counts for the plan's budget", async () => {
    const steps = [step("a"), step("b"), step("c", { dependsOn: ["b"] })];
    const run = await runPlan({ a: [spendDollar], b: ["work"] }, plan(steps, { budget: { costUsd: 1 } }));
    await run.coordinator.cancel({ coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" });
    run.world.plans.end("b", endDone());
    await run.advance(5_000);
    expect(await run.fates()).toMatchObject({ a: "cancelled", b: "completed", c: "skipped" });
    expect(listUsages(run)).toEqual([{ spawns: 0, tokens: 40, costMicroUsd: DOLLAR }]);
    await run.close();
  });
});

describe("what an attempt used whose agent the host no longer knows", () => {
  it("is what its model calls used, as far as they are recorded and no other end counted them", async () => {
    const run = await runPlan(
      { a: ["work"] },
      plan([step("a", { ...createRetries(5), budget: { tokens: 3_000 } })]),
    );
    for (const attempt of [1, 2]) {
      const runId = `run-${attempt}`;
      const usage = usageOf("a" as StepId, 10, { runId });
      await logOver(run.world).submit(PLAN_ID, [{ type: "recordUsage", ...usage }]);
      await run.restart(() => run.world.plans.forget("a"));
      await run.advance(10_000);
    }
    const used = { spawns: 0, tokens: 1_500, costMicroUsd: 10_000 };
    expect(listUsages(run)).toEqual([used, used]);
    expect(run.ordersOf("a")).toHaveLength(2);
    await run.close();
  });
});

describe("what the steps of a plan inside used that are stopped with the attempt around them", () => {
  const CANCEL_A = { coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" } as const;
  /** A step `a` whose agent has submitted a plan, whose step `n` is at work and has used a dollar when it is stopped. */
  const runNested = async (runner = createScriptedRunner(scriptOf({ a: ["work"], n: [spendDollar] }))) => {
    const run = await submitTo(createWorld({}, runner), plan([step("a", { timeoutMs: 60_000 })]));
    const ownerSession = run.ordersOf("a")[0]!.childSessionKey;
    const inside = plan([step("n")], { coordinationId: "plan-2", ownerSession });
    const submitted = await run.coordinator.submitPlan({ plan: inside, ownerAgent: AGENT });
    expect(submitted).toMatchObject({ kind: "accepted" });
    await run.advance(1_000);
    return run;
  };
  const listUsagesOfA = (run: PlanRun): unknown[] =>
    [...run.events("step.failed"), ...run.events("step.timed_out")]
      .filter(({ nodeId }) => nodeId === "a")
      .map(({ payload }) => payload.usage);

  it.each<[string, (run: PlanRun) => unknown]>([
    ["runs out of time", () => undefined],
    ["is cancelled", (run) => run.coordinator.cancel(CANCEL_A)],
    ["fails", (run) => run.world.plans.end("a", endFailing())],
    ["is lost", (run) => run.restart(() => run.world.plans.forget("a"))],
  ])("counts where that %s", async (_, endAttempt) => {
    const run = await runNested();
    await endAttempt(run);
    await run.advance(70_000);
    expect(listUsagesOfA(run)).toEqual([{ spawns: 1, tokens: 40, costMicroUsd: DOLLAR }]);
    await run.close();
  });

  it("is waited for no longer than the stopping may take", async () => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"], n: [spendDollar] }));
    const cancel: typeof runner.cancel = (attempt) =>
      attempt.idempotencyKey.startsWith("plan-2:") ? new Promise(() => undefined) : runner.cancel(attempt);
    const run = await runNested({ ...runner, cancel });
    await run.advance(59_000 + 15_000);
    expect(listUsagesOfA(run)).toEqual([{ spawns: 1, tokens: 0, costMicroUsd: 0 }]);
    await run.advance(60_000);
    await run.close();
  });
});

describe("an agent that completed while nobody could hear of it", () => {
  /** The follower hears nothing, as while the ledger is away; the host has its record all the same. */
  const createDeaf = (script: Parameters<typeof scriptOf>[0]) => {
    const runner = createScriptedRunner(scriptOf(script));
    const ignoreEnd: typeof runner.follow = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ kind: "unknown" }));
      });
    return { ...runner, follow: ignoreEnd };
  };

  it("has done its work, also where that is found out only at its deadline", async () => {
    const deaf = createDeaf({ a: ["work"] });
    const run = await submitTo(createWorld({}, deaf), plan([createSpendingStep({ timeoutMs: 20_000 })]));
    deaf.end("a", endDone({ n: 1 }));
    await run.advance(HOUR_MS);
    expect(run.events("step.timed_out")).toEqual([]);
    expect(run.ordersOf("a")).toHaveLength(1);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });

  it("is told to stop nothing, which it may have left at work, and need not be within reach", async () => {
    const deaf = createDeaf({ a: ["work"] });
    const stopped: string[] = [];
    const cancel: typeof deaf.cancel = ({ idempotencyKey }) => {
      stopped.push(idempotencyKey);
      return Promise.resolve("unreachable");
    };
    const world = createWorld({}, { ...deaf, cancel });
    const run = await submitTo(world, plan([createSpendingStep({ timeoutMs: 20_000 })]));
    deaf.end("a", endDone({ n: 1 }));
    await run.advance(HOUR_MS);
    expect(stopped).toEqual([]);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });

  it("has done it also where the host says so only once it is told to stop it", async () => {
    const deaf = createDeaf({ a: ["work"] });
    let isTold = false;
    const observe: typeof deaf.observe = (attempt) =>
      isTold ? deaf.observe(attempt) : new Promise(() => undefined);
    const cancel: typeof deaf.cancel = (attempt) => {
      isTold = true;
      return deaf.cancel(attempt);
    };
    const world = createWorld({}, { ...deaf, observe, cancel });
    const run = await submitTo(world, plan([createSpendingStep({ timeoutMs: 20_000 })]));
    deaf.end("a", endDone({ n: 1 }));
    await run.advance(HOUR_MS);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });

  it("has done it also where nobody had heard that it began", async () => {
    const deaf = createDeaf({ a: ["silent"] });
    let isHeard = false;
    const observe: typeof deaf.observe = (attempt) =>
      isHeard ? deaf.observe(attempt) : Promise.resolve({ kind: "unknown" });
    const mute = { ...deaf, observe };
    const run = await submitTo(createWorld({}, mute), plan([createSpendingStep({ timeoutMs: 20_000 })]));
    deaf.end("a", endDone({ n: 1 }));
    await run.advance(19_999);
    expect(await run.fates()).toEqual({ a: "dispatched" });
    isHeard = true;
    await run.advance(HOUR_MS);
    expect(run.ordersOf("a")).toHaveLength(1);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });

  it("has run out of time where it failed", async () => {
    const deaf = createDeaf({ a: ["work", endDone()] });
    const run = await submitTo(createWorld({}, deaf), plan([createSpendingStep({ timeoutMs: 20_000 })]));
    deaf.end("a", endFailing());
    await run.advance(HOUR_MS);
    expect(run.events("step.timed_out")).toHaveLength(1);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });
});
