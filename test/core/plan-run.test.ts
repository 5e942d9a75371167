import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createCoordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createPQueueLanes } from "../../src/infra/lanes/p-queue-lanes.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, createWorld } from "../support/fake-clock-host.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import {
  AGENT,
  plan,
  PLAN_ID,
  createRetries,
  runPlan,
  scriptOf,
  step,
  type Fields,
} from "./planned-world.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";

const DELIVERY = "@delivery";
const CONTRACT = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
const createDiamond = (fields: Fields = {}): Fields =>
  plan(
    [
      step("a"),
      step("b", { dependsOn: ["a"], input: { of: "{{steps.a.outputs.from}}" } }),
      step("c", { dependsOn: ["a"] }),
      step("d", {
        dependsOn: ["b", "c"],
        input: { text: "{{steps.b.outputs.from}}+{{steps.c.outputs.from}}" },
      }),
    ],
    fields,
  );

describe("a plan", () => {
  it("runs a diamond in the order of its dependencies, hands outputs on and tells its owner once", async () => {
    const run = await runPlan(({ envelope }) => endDone({ from: envelope.stepId }), createDiamond());
    await run.advance(1);
    expect((await run.view()).status).toBe("success");
    expect(await run.fates()).toEqual({
      a: "completed",
      b: "completed",
      c: "completed",
      d: "completed",
      [DELIVERY]: "completed",
    });
    const orders = run.ordersOf(DELIVERY);
    expect(orders).toHaveLength(1);
    expect(orders[0]?.message).toContain("4 of 4 steps completed");
    expect(run.ordersOf("d")[0]?.message).toContain('"text": "b+c"');
    await run.close();
  });

  it("goes on where it was when another coordinator takes over, at every point", async () => {
    const run = await runPlan(
      ({ envelope }) => (envelope.stepId === DELIVERY ? endDone() : "work"),
      createDiamond(),
    );
    for (const stepId of ["a", "b", "c", "d"]) {
      await run.restart();
      expect((await run.fates())[stepId]).toBe("running");
      await run.restart(() => {
        run.world.plans.end(stepId, endDone({ from: stepId }));
      });
      await run.advance(1_000);
      expect((await run.fates())[stepId]).toBe("completed");
    }
    expect((await run.view()).status).toBe("success");
    for (const stepId of ["a", "b", "c", "d", DELIVERY]) expect(run.ordersOf(stepId)).toHaveLength(1);
    expect(run.ordersOf("d")[0]?.message).toContain('"text": "b+c"');
    await run.close();
  });

  it("keeps its timers over a restart: they follow from the ledger", async () => {
    const planFields = plan([step("a", { timeoutMs: 10_000, ...createRetries(1, 4_000) })]);
    const run = await runPlan({ a: ["work"] }, planFields);
    await run.advance(6_000);
    await run.restart();
    await run.advance(4_000);
    expect(await run.fates()).toEqual({ a: "backoff" });
    await run.restart();
    const { retryAtMs } = run.events("step.timed_out")[0]!.payload;
    await run.advance(retryAtMs! - run.world.clock.now() - 1);
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.advance(1);
    expect(run.ordersOf("a")).toHaveLength(2);
    await run.close();
  });

  it("of 300 steps is admitted in several appends and runs through", async () => {
    const steps = Array.from({ length: 300 }, (_, index) =>
      step(
        `step-${index}`,
        index >= 290 ? { dependsOn: ["step-0", `step-${index - 290}`].slice(0, index === 290 ? 1 : 2) } : {},
      ),
    );
    const run = await runPlan({}, plan(steps));
    await run.advance(1_000);
    const view = await run.view();
    expect(view.status).toBe("success");
    expect(view.steps).toHaveLength(301);
    const admissions = run.appends.map((types) => types.filter((type) => type === "step.admitted").length);
    expect(admissions.filter((count) => count > 0)).toEqual([250, 50, 1]);
    expect(run.events("coordination.terminal")[0]?.payload.steps).toMatchObject({
      total: 300,
      completed: 300,
    });
    await run.close();
  });

  it("hands outputs on though texts are not kept, and keeps none after its end", async () => {
    const run = await runPlan(
      ({ envelope }) => (envelope.stepId === "b" ? "work" : endDone({ from: envelope.stepId })),
      createDiamond(),
      { contentMs: 0 },
    );
    await run.advance(200_000);
    run.world.plans.end("b", endDone({ from: "b" }));
    await run.advance(1_000);
    expect((await run.view()).status).toBe("success");
    expect(run.ordersOf("d")[0]?.message).toContain('"text": "b+c"');
    await run.advance(61_000);
    expect(run.world.ledger.contents.size).toBe(0);
    await run.close();
  });

  it("fails a step whose input names what is not there, and says where", async () => {
    const run = await runPlan({ a: [endDone({})] }, createDiamond());
    await run.advance(1_000);
    const failed = run.events("step.failed").find(({ nodeId }) => nodeId === "b");
    expect(failed?.payload.error).toEqual({
      code: "input_unavailable",
      message: "input.of: steps.a.outputs.from is not there",
    });
    expect(run.ordersOf("b")).toEqual([]);
    await run.close();
  });
});

describe("the outputs of a step", () => {
  it("that break their contract fail the attempt, with the path first", async () => {
    const planFields = plan([step("a", { outputSchema: CONTRACT, ...createRetries(1) })]);
    const run = await runPlan({ a: [endDone({ n: "x" }), endDone({ n: 1 })] }, planFields);
    await run.advance(5_000);
    expect(run.events("step.failed")[0]?.payload.error).toMatchObject({
      code: "output_invalid",
      message: expect.stringMatching(/^n: /u) as string,
    });
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("that are no object where there is a contract fail the attempt", async () => {
    const planFields = plan([step("a", { outputSchema: CONTRACT })]);
    const run = await runPlan({ a: [{ outcome: "completed", reply: "all done" }] }, planFields);
    await run.advance(1_000);
    expect(run.events("step.failed")[0]?.payload.error.message).toMatch(/^\(root\): /u);
    await run.close();
  });
});

describe("a child's report", () => {
  const runReporting = (fields: Fields = {}) =>
    runPlan(
      { a: ["work"] },
      plan([
        step("a", { outputSchema: CONTRACT, ...fields }),
        step("b", { dependsOn: ["a"], input: { n: "{{steps.a.outputs.n}}" } }),
      ]),
    );
  const prose = { outcome: "completed", reply: "I have reported." } as const;

  it("counts, and not its last words; the newest one of several", async () => {
    const run = await runReporting();
    const session = run.ordersOf("a")[0]!.childSessionKey;
    for (const n of [6, 7])
      expect(await run.coordinator.report(session, { outcome: "completed", outputs: { n } })).toEqual({
        kind: "recorded",
        coordinationId: PLAN_ID,
        stepId: "a",
      });
    run.world.plans.end("a", prose);
    await run.advance(1_000);
    expect(run.ordersOf("b")[0]?.message).toContain('"n": 7');
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it("that breaks the contract is answered with what is wrong, and the child may report again", async () => {
    const run = await runReporting();
    const session = run.ordersOf("a")[0]!.childSessionKey;
    expect(
      await run.coordinator.report(session, { outcome: "completed", outputs: { n: "x" } }),
    ).toMatchObject({
      kind: "invalid",
      problems: [{ path: "n" }],
    });
    expect(run.events("step.reported")).toEqual([]);
    expect(await run.coordinator.report(session, { outcome: "completed", outputs: { n: 1 } })).toMatchObject({
      kind: "recorded",
    });
    await run.close();
  });

  it("that the work cannot be done fails the attempt when the child ends", async () => {
    const run = await runReporting();
    const session = run.ordersOf("a")[0]!.childSessionKey;
    await run.coordinator.report(session, {
      outcome: "failed",
      outputs: { why: "no access" },
      confidence: 0.5,
    });
    expect(run.events("step.reported")[0]?.payload).toMatchObject({ outcome: "failed", confidence: 5_000 });
    run.world.plans.end("a", prose);
    await run.advance(1_000);
    expect(run.events("step.failed")[0]?.payload.error.code).toBe("reported_failed");
    expect(await run.fates()).toMatchObject({ a: "failed", b: "skipped" });
    await run.close();
  });

  it("of a session that works on nothing is refused", async () => {
    const run = await runReporting();
    const words = { outcome: "completed", outputs: { n: 1 } } as const;
    for (const session of [OWNER, `${run.ordersOf("a")[0]!.childSessionKey}x` as typeof OWNER])
      expect(await run.coordinator.report(session, words)).toMatchObject({ kind: "refused" });
    await run.close();
  });

  it("counts after a restart, too", async () => {
    const run = await runReporting();
    const session = run.ordersOf("a")[0]!.childSessionKey;
    await run.coordinator.report(session, { outcome: "completed", outputs: { n: 3 } });
    await run.restart(() => {
      run.world.plans.end("a", prose);
    });
    await run.advance(2_000);
    expect(run.ordersOf("b")[0]?.message).toContain('"n": 3');
    await run.close();
  });
});

describe("a plan of a child", () => {
  const NESTED = "plan-2" as CoordinationId;

  /** One place in the data lane for all. */
  async function runNesting() {
    const runner = createScriptedRunner(
      scriptOf({ a: ["work"], [DELIVERY]: [endDone({ text: "the owner heard" })] }),
    );
    const world = createWorld({}, runner);
    const store = world.ledger.open(world.clock);
    const limits = { control: 2, data: 1, escalation: 1, queueMax: 10, agingMs: 60_000 };
    const coordinator = createCoordinator({
      store,
      content: store,
      ...planDependencies(runner),
      ...createArbitrationDependencies(),
      ...createGateDependencies(),
      clock: world.clock,
      runner: world.host,
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: () => undefined,
        error: () => undefined,
      },
      lanes: createPQueueLanes(limits, world.clock),
      gate: createSpawnGate({ clock: world.clock, limits: { spawnsMax: 10 } }),
      settings: world.settings,
      newCoordinationId: () => "co-1" as CoordinationId,
    });
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a"), step("z")]), ownerAgent: AGENT });
    await waitUntilSettled();
    const session = runner.orders[0]!.childSessionKey;
    const inner = plan([step("n"), step("m")], { coordinationId: NESTED, ownerSession: session });
    const submit = () => coordinator.submitPlan({ plan: inner, submittedBy: session, ownerAgent: AGENT });
    const stepIds = (): string[] => runner.orders.map(({ envelope }) => envelope.stepId);
    return { world: world, runner, coordinator, session, submit, stepIds };
  }

  it("gets the place of its step, which waits for it and ends with what its child says then", async () => {
    const { world, runner, coordinator, submit, stepIds } = await runNesting();
    expect(stepIds()).toEqual(["a"]);
    expect(await submit()).toMatchObject({ kind: "accepted", coordinationId: NESTED });
    // The host has no other words of the child than its answer.
    runner.end("a", { outcome: "completed" });
    await world.clock.advance(5_000);
    expect(stepIds()).toEqual(expect.arrayContaining(["n", "m", "z"]));
    const outer = world.ledger.events()[0]!;
    const inner = world.ledger.events()[1]!;
    expect(inner[0]).toMatchObject({ payload: { parent: { coordinationId: PLAN_ID, stepId: "a" } } });
    expect(inner.at(-2)?.type).toBe("coordination.terminal");
    expect(outer.at(-2)?.type).toBe("coordination.terminal");
    const completed = outer.find(({ type, nodeId }) => type === "step.completed" && nodeId === "a");
    const { output } = completed!.payload as { output: { sha256: string } };
    expect(world.ledger.contents.get(output.sha256)?.text).toBe('{"text":"the owner heard"}');
    await coordinator.stop();
    expect((await verifyLedger(world.ledger.open(world.clock))).problems).toEqual([]);
  });

  it("keeps its step open while it runs, though the child's own run has ended", async () => {
    const { world, runner, coordinator, submit } = await runNesting();
    await submit();
    runner.end("a", endDone());
    await waitUntilSettled();
    const isOver = (): boolean =>
      world.ledger.events()[0]!.some(({ type, nodeId }) => type === "step.completed" && nodeId === "a");
    const isInnerOver = (): boolean =>
      world.ledger.events()[1]!.some(({ type }) => type === "coordination.terminal");
    for (let time = 0; time < 50 && !isInnerOver(); time += 1) {
      expect(isOver()).toBe(false);
      await world.clock.advance(100);
    }
    expect(isInnerOver()).toBe(true);
    await world.clock.advance(2_000);
    expect(isOver()).toBe(true);
    await coordinator.stop();
  });
});

describe("what is asked about plans", () => {
  it("is a replay, or refused, where the plan is there already", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a")]));
    const submitAgain = (fields: Fields): Promise<unknown> =>
      run.coordinator.submitPlan({ plan: plan([step("a")], fields), ownerAgent: AGENT });
    expect(await submitAgain({})).toEqual({ kind: "replay", coordinationId: PLAN_ID, steps: 1 });
    expect(await submitAgain({ objective: "other" })).toMatchObject({
      kind: "refused",
      problems: [{ path: "coordinationId", code: "COORDINATION_TAKEN" }],
    });
    await run.close();
  });

  it("H3: is refused to a session that does not own it", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a")]));
    const askedBy = run.ordersOf("a")[0]!.childSessionKey;
    const request = { coordinationId: PLAN_ID, by: "agent", askedBy } as const;
    expect(await run.coordinator.cancel(request)).toMatchObject({ kind: "refused", code: "NOT_OWNER" });
    expect(await run.coordinator.retry(request)).toMatchObject({ kind: "refused", code: "NOT_OWNER" });
    const nobody = { ...request, coordinationId: "nobody" as CoordinationId };
    expect(await run.coordinator.cancel(nobody)).toMatchObject({ kind: "refused", code: "NOT_FOUND" });
    const foreign = {
      plan: plan([step("a")], { coordinationId: "p2" }),
      submittedBy: askedBy,
      ownerAgent: AGENT,
    };
    expect(await run.coordinator.submitPlan(foreign)).toMatchObject({
      kind: "refused",
      problems: [{ code: "OWNER_MISMATCH" }],
    });
    await run.close();
  });

  it("lets a blocked step be tried again, and a question expire", async () => {
    const hitl = { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" };
    const planFields = plan([step("a"), step("b")], { failurePolicy: hitl });
    const run = await runPlan(
      { a: [{ outcome: "failed" }, endDone()], b: [{ outcome: "failed" }] },
      planFields,
    );
    expect(await run.fates()).toEqual({ a: "blocked", b: "blocked" });
    const request = { coordinationId: PLAN_ID, by: "operator", stepId: "a" } as never;
    expect(await run.coordinator.retry(request)).toMatchObject({ kind: "accepted" });
    await run.advance(1_000);
    expect(await run.fates()).toEqual({ a: "completed", b: "blocked" });
    await run.advance(run.world.settings.escalateMs);
    expect((await run.view()).status).toBe("escalated");
    await run.close();
  });

  it("stops at the budget, asks, and goes on where people allow it", async () => {
    const hitl = { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" };
    const chain = [step("a"), step("b", { dependsOn: ["a"] }), step("c", { dependsOn: ["b"] })];
    const planFields = plan(chain, { failurePolicy: hitl, budget: { spawns: 2 } });
    const run = await runPlan({}, planFields);
    await run.advance(100_000);
    expect(await run.fates()).toEqual({ a: "completed", b: "completed", c: "waiting" });
    expect(run.events("coordination.escalated").map(({ payload }) => payload.cause)).toEqual(["budget"]);
    await run.restart();
    await run.coordinator.retry({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(1_000);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });
});
