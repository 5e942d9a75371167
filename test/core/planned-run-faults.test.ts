import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Start } from "../../src/agents/coordination/ports/agent-runner.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf, createWorld } from "../support/fake-clock-host.ts";
import { endDone, endFailing, createScriptedRunner } from "../support/scripted-runner.ts";
import { plan, PLAN_ID, createRetries, runPlan, scriptOf, step, submitTo } from "./planned-world.ts";

const DELIVERY = "@delivery";

describe("an attempt that fails", () => {
  it("is followed by another one when its backoff is over, in a session of its own", async () => {
    const run = await runPlan({ a: [endFailing("oh"), endDone()] }, plan([step("a", createRetries(1))]));
    const [failed] = run.events("step.failed");
    expect(failed?.payload).toMatchObject({ error: { code: "child_failed", message: "oh" }, via: "runner" });
    const waitMs = failed!.payload.retryAtMs! - run.world.clock.now();
    await run.advance(waitMs - 1);
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.advance(1);
    const [one, two] = run.ordersOf("a");
    expect([one?.idempotencyKey, two?.idempotencyKey]).toEqual(["plan-1:a:1", "plan-1:a:2"]);
    expect(two?.childSessionKey).not.toBe(one?.childSessionKey);
    expect(await run.fates()).toEqual({ a: "completed", [DELIVERY]: "completed" });
    await run.close();
  });

  it("ends its step when the budget is spent, and the owner is told which", async () => {
    const run = await runPlan({ a: [endFailing("oh")] }, plan([step("a", createRetries(2)), step("b")]));
    await run.advance(20_000);
    expect(run.ordersOf("a")).toHaveLength(3);
    expect(run.ordersOf(DELIVERY)[0]?.message).toContain("- a: failed after 3 attempts: oh");
    expect((await run.view()).status).toBe("partial");
    await run.close();
  });

  it("is refused by the host and tried again", async () => {
    const run = await runPlan({ a: [{ refuse: "no room" }, endDone()] }, plan([step("a", createRetries(1))]));
    await run.advance(5_000);
    expect(run.events("step.failed")[0]?.payload.error).toEqual({
      code: "spawn_refused",
      message: "no room",
    });
    expect((await run.view()).status).toBe("success");
    await run.close();
  });
});

describe("an attempt that runs out of time", () => {
  it("is given up, its agent is stopped, and what it says later is refused and recorded", async () => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"], b: ["work"] }));
    const deaf = { ...runner, cancel: () => Promise.resolve("unreachable" as const) };
    const run = await submitTo(createWorld({}, deaf), plan([step("a", { timeoutMs: 10_000 }), step("b")]));
    await run.advance(9_999);
    expect(await run.fates()).toEqual({ a: "running", b: "running" });
    await run.advance(1);
    expect(await run.fates()).toEqual({ a: "timed_out", b: "running" });
    expect(run.events("step.child_stopped").map(({ payload }) => payload.outcome)).toEqual(["unreachable"]);
    const session = run.ordersOf("a")[0]!.childSessionKey;
    runner.end("a", endDone({ n: 1 }));
    await run.advance(120_000);
    for (let time = 0; time < 2; time += 1) {
      const answer = await run.coordinator.report(session, { outcome: "completed", outputs: {} });
      expect(answer).toMatchObject({ kind: "refused", reason: "step a is timed_out" });
    }
    expect(run.events("step.outcome_refused").map(({ payload }) => payload)).toEqual([
      { stepId: "a", attempt: 1, outcome: "reported", because: "step_ended" },
    ]);
    expect(await run.fates()).toEqual({ a: "timed_out", b: "running" });
    runner.end("b", endDone());
    await run.advance(1_000);
    expect((await run.view()).status).toBe("partial");
    await run.close();
  });

  it("is tried again, and the agent of the first one is told to stop", async () => {
    const run = await runPlan(
      { a: ["work", endDone()] },
      plan([step("a", { timeoutMs: 10_000, ...createRetries(1) })]),
    );
    await run.advance(20_000);
    expect(run.world.plans.cancelled).toEqual(["plan-1:a:1"]);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("refuses the report of an attempt before, and takes that of the present one", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a", { timeoutMs: 10_000, ...createRetries(1) })]));
    await run.advance(12_000);
    const [one, two] = run.ordersOf("a");
    const words = { outcome: "completed", outputs: { n: 1 } } as const;
    expect(await run.coordinator.report(one!.childSessionKey, words)).toMatchObject({
      kind: "refused",
      reason: "attempt 1 of step a is not the current attempt, which is 2",
    });
    expect(await run.coordinator.report(two!.childSessionKey, words)).toMatchObject({ kind: "recorded" });
    expect(run.events("step.outcome_refused")[0]?.payload).toMatchObject({ because: "stale_attempt" });
    await run.close();
  });
});

describe("a runner", () => {
  it("that hangs is asked what it did, and the attempt goes on", async () => {
    const run = await runPlan({ a: ["hang"] }, plan([step("a")]));
    await run.advance(44_999);
    expect(await run.fates()).toEqual({ a: "dispatched" });
    await run.advance(1_001);
    expect(await run.fates()).toEqual({ a: "running" });
    expect(run.events("step.acknowledged")[0]?.payload.via).toBe("reconciled");
    run.world.plans.end("a", endDone());
    await run.advance(1_000);
    expect((await run.view()).status).toBe("success");
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.close();
  });

  it("that hangs beyond the deadline changes nothing when it answers, and its agent is stopped", async () => {
    const planFields = plan([step("a", { timeoutMs: 5_000 }), step("b")]);
    const run = await runPlan({ a: ["hang"], b: ["work"] }, planFields);
    await run.advance(5_000);
    expect(await run.fates()).toEqual({ a: "timed_out", b: "running" });
    const length = run.world.ledger.events().flat().length;
    run.world.plans.answer("a");
    await waitUntilSettled();
    expect(run.world.ledger.events().flat()).toHaveLength(length);
    expect(run.world.plans.cancelled).toContain("plan-1:a:1");
    await run.close();
  });

  it("that throws and began nothing is asked again under the same key", async () => {
    const run = await runPlan({ a: ["throw", endDone()] }, plan([step("a")]));
    await run.advance(5_000);
    expect(run.ordersOf("a").map(({ idempotencyKey }) => idempotencyKey)).toEqual([
      "plan-1:a:1",
      "plan-1:a:1",
    ]);
    expect(run.events("step.dispatched").filter(({ nodeId }) => nodeId === "a")).toHaveLength(1);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("that throws whatever it is asked ends with the deadline", async () => {
    const failBroken = (): never => {
      throw new Error("broken");
    };
    const runner = createScriptedRunner();
    const isOwner = (stepId: string): boolean => stepId === DELIVERY;
    const throwing = {
      ...runner,
      start: (order: Parameters<typeof runner.start>[0]) =>
        isOwner(order.envelope.stepId) ? runner.start(order) : failBroken(),
      observe: failBroken,
      follow: failBroken,
      cancel: failBroken,
    };
    const run = await submitTo(createWorld({}, throwing), plan([step("a", { timeoutMs: 5_000 })]));
    await run.advance(5_000);
    await run.advance(60_000);
    expect(await run.fates()).toEqual({ a: "timed_out", [DELIVERY]: "completed" });
    expect(run.events("step.child_stopped")[0]?.payload.outcome).toBe("unreachable");
    await run.close();
  });

  it("that speaks of another session changes nothing", async () => {
    const elsewhere = { as: "agent:main:subagent:elsewhere" as SessionKey };
    const run = await runPlan({ a: [elsewhere] }, plan([step("a", { timeoutMs: 5_000 })]));
    run.world.plans.end("a", endDone());
    await run.advance(4_999);
    expect(await run.fates()).toEqual({ a: "dispatched" });
    await run.advance(1);
    expect((await run.fates())["a"]).toBe("timed_out");
    expect(run.events("step.acknowledged").filter(({ nodeId }) => nodeId === "a")).toEqual([]);
    expect(run.world.lines).toContainEqual({
      level: "warn",
      message: "a runner answered for another session",
    });
    await run.close();
  });

  it("that answers twice, to two coordinators of one ledger, is heard once", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a"), step("b", { dependsOn: ["a"] })]));
    const other = run.world.start();
    await other.start();
    run.world.plans.end("a", endDone());
    await run.advance(70_000);
    expect(await run.fates()).toEqual({ a: "completed", b: "completed", [DELIVERY]: "completed" });
    expect(run.events("step.completed")).toHaveLength(3);
    expect(run.world.plans.runs.size).toBe(3);
    await other.stop();
    await run.close();
  });

  it("whose start is unknown is asked, and not started again", async () => {
    const run = await runPlan({ a: ["silent"] }, plan([step("a")]));
    await run.advance(2_000);
    expect(await run.fates()).toEqual({ a: "running" });
    run.world.plans.end("a", endDone());
    await run.advance(1_000);
    expect((await run.view()).status).toBe("success");
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.close();
  });

  it("that refuses a start when nobody waits for it any more is not asked for it again, and says why", async () => {
    const runner = createScriptedRunner();
    const { promise: refused, resolve: refuse } = Promise.withResolvers<Start>();
    let starts = 0;
    let isStarting = true;
    const slow: typeof runner = {
      ...runner,
      start: (order) => {
        if (order.idempotencyKey !== "plan-1:a:1") return runner.start(order);
        starts += 1;
        return refused;
      },
      observe: (attempt) => (isStarting ? Promise.resolve({ kind: "unknown" }) : runner.observe(attempt)),
    };
    const run = await submitTo(createWorld({}, slow), plan([step("a", createRetries(1))]));
    await run.advance(50_000);
    isStarting = false;
    refuse({ kind: "refused", message: "not ready" });
    await run.advance(10_000);
    expect(starts).toBe(1);
    expect(run.events("step.failed")[0]?.payload.error).toEqual({
      code: "spawn_refused",
      message: "not ready",
    });
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("that forgot a running agent has lost it, and the step is tried again", async () => {
    const run = await runPlan({ a: ["work", endDone()] }, plan([step("a", createRetries(1))]));
    await run.restart(() => {
      run.world.plans.forget("a");
    });
    await run.advance(10_000);
    expect(run.events("step.failed")[0]?.payload.error.code).toBe("child_lost");
    expect((await run.view()).status).toBe("success");
    await run.close();
  });
});

describe("a host that forgot an attempt before it was acknowledged", () => {
  const runForgetting = async (deliveryMode: string) => {
    const run = await runPlan({ a: ["hang", endDone()] }, plan([step("a", { deliveryMode })]));
    await run.restart(() => {
      run.world.plans.forget("a");
    });
    await run.advance(5_000);
    return run;
  };

  it("D2: is given an at_least_once attempt again under the same key", async () => {
    const run = await runForgetting("at_least_once");
    expect(run.ordersOf("a").map(({ idempotencyKey }) => idempotencyKey)).toEqual([
      "plan-1:a:1",
      "plan-1:a:1",
    ]);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("is never given a best_effort attempt again", async () => {
    const run = await runForgetting("best_effort");
    expect(run.ordersOf("a")).toHaveLength(1);
    expect(run.events("step.failed")[0]?.payload.error.code).toBe("spawn_not_confirmed");
    expect((await run.view()).status).toBe("failed");
    await run.close();
  });
});

describe("telling the owner", () => {
  it("is tried again in time where the host refused, though the plan's deadline has passed", async () => {
    const planFields = plan([step("a", { timeoutMs: 5_000 })], { deadlineMs: 5_000 });
    const run = await runPlan({ a: ["work"], [DELIVERY]: [{ refuse: "busy" }, endDone()] }, planFields);
    await run.advance(5_000);
    await run.advance(4_000);
    expect(run.ordersOf(DELIVERY)).toHaveLength(2);
    expect((await run.view()).status).toBe("failed");
    expect(run.events("coordination.terminal")[0]?.payload.delivery).toBe("delivered");
    await run.close();
  });

  it("is not repeated after a crash between the message and its record", async () => {
    const run = await runPlan({ [DELIVERY]: ["hang"] }, plan([step("a")]));
    expect(run.ordersOf(DELIVERY)).toHaveLength(1);
    await run.restart();
    run.world.plans.end(DELIVERY, endDone());
    await run.advance(5_000);
    expect(run.ordersOf(DELIVERY)).toHaveLength(1);
    expect(run.events("coordination.terminal")[0]?.payload.delivery).toBe("delivered");
    await run.close();
  });

  it("is not repeated where the host began the turn and forgot it", async () => {
    const run = await runPlan({ [DELIVERY]: ["work"] }, plan([step("a")]));
    await run.restart(() => {
      run.world.plans.forget(DELIVERY);
    });
    await run.advance(120_000);
    expect(run.ordersOf(DELIVERY)).toHaveLength(1);
    expect(run.events("coordination.terminal")[0]?.payload.delivery).toBe("unknown");
    await run.close();
  });

  it("is unknown when nobody answers in time, and is not repeated", async () => {
    const run = await runPlan({ [DELIVERY]: ["work"] }, plan([step("a")]));
    await run.advance(600_000);
    await run.advance(1_000);
    expect(run.ordersOf(DELIVERY)).toHaveLength(1);
    expect(run.events("coordination.terminal")[0]?.payload).toMatchObject({
      status: "success",
      delivery: "unknown",
    });
    expect(run.world.plans.cancelled).toEqual([]);
    await run.close();
  });

  it("does not hold up the stop when its time is over and the host does not say what became of it", async () => {
    const runner = createScriptedRunner(scriptOf({ [DELIVERY]: ["work"] }));
    const mute = { ...runner, observe: () => new Promise<never>(() => undefined) };
    const run = await submitTo(createWorld({}, mute), plan([step("a")]));
    await run.advance(600_000);
    const stopping = { isDone: false };
    void run.coordinator.stop().then(() => (stopping.isDone = true));
    await waitUntilSettled();
    expect(stopping.isDone).toBe(true);
    expect(run.world.clock.pending).toBe(0);
    expect(run.events("coordination.terminal")).toEqual([]);
  });
});

describe("a cancellation", () => {
  it("stops what runs, skips what waits, and is told to the owner", async () => {
    const planFields = plan([step("a"), step("b", { dependsOn: ["a"] })]);
    const run = await runPlan({ a: ["work"] }, planFields);
    const request = { coordinationId: PLAN_ID, by: "operator" } as const;
    expect(await run.coordinator.cancel(request)).toMatchObject({ kind: "accepted" });
    expect(await run.coordinator.cancel(request)).toMatchObject({ kind: "replay" });
    await run.advance(2_000);
    expect(run.world.plans.cancelled).toEqual(["plan-1:a:1"]);
    expect(await run.fates()).toEqual({ a: "cancelled", b: "skipped", [DELIVERY]: "completed" });
    expect((await run.view()).status).toBe("cancelled");
    await run.close();
  });

  it("of one step leaves the others at work, also of a step that has not begun", async () => {
    const planFields = plan([step("a"), step("b"), step("c", { dependsOn: ["b"] })]);
    const run = await runPlan({ a: ["work"], b: ["work"] }, planFields);
    for (const stepId of ["b", "c"]) {
      const request = { coordinationId: PLAN_ID, by: "operator", stepId } as never;
      expect(await run.coordinator.cancel(request)).toMatchObject({ kind: "accepted" });
    }
    await run.advance(1_000);
    expect(await run.fates()).toEqual({ a: "running", b: "cancelled", c: "skipped" });
    await run.close();
  });

  it("of spawns that are only observed stops them at once, and ends the coordination as cancelled", async () => {
    const world = createWorld();
    const coordinator = world.start();
    await coordinator.start();
    const request = spawnOf({ task: "dig" });
    const admission = await coordinator.admitSpawn(request);
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    const child = world.host.spawn(request);
    const claim = { coordinationId, stepId, sourceSession: request.sourceSession, toolCallId: "dig" };
    await coordinator.confirmSpawn(claim, child);
    await coordinator.cancel({ coordinationId, by: "operator" });
    await world.clock.advance(1_000);
    expect(world.host.children.get(child.childSessionKey)?.ending).toEqual({ outcome: "cancelled" });
    await world.clock.advance(60_000);
    const facts = world.ledger.events().flat();
    expect(facts.find(({ type }) => type === "coordination.terminal")?.payload).toMatchObject({
      status: "cancelled",
    });
    await coordinator.stop();
  });

  it("finds a child that has done its work: its result counts", async () => {
    const runner = createScriptedRunner(scriptOf({ a: ["work"] }));
    const quick = {
      ...runner,
      follow: (_: unknown, signal: AbortSignal) =>
        new Promise<{ kind: "unknown" }>((resolve) => {
          signal.addEventListener("abort", () => resolve({ kind: "unknown" }));
        }),
    };
    const run = await submitTo(createWorld({}, quick), plan([step("a")]));
    runner.end("a", endDone({ n: 1 }));
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "task_flow" });
    await run.advance(2_000);
    expect((await run.fates())["a"]).toBe("completed");
    expect((await run.view()).status).toBe("success");
    await run.close();
  });
});
