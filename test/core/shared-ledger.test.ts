/** Several gateways on one ledger: each coordination is driven by one of them, and goes on when that one is gone. */
import { describe, expect, it } from "vitest";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { endDone, type Script } from "../support/scripted-runner.ts";
import {
  AGENT,
  createGateways,
  LEASE_MS,
  ORPHAN_MS,
  type Gateways,
  type TestGateway,
} from "./gateways-scene.ts";
import { plan, PLAN_ID, step, type Fields } from "./planned-world.ts";

const LOST = "the agent ran in gateway a, which is gone";
const RETRIED: Fields = { defaults: { retry: { budget: 1, backoffMs: 1_000 } } };

/** Works on `slow` until the test ends it; everything else is done at once. */
const workOnSlow: Script = ({ envelope }) => (envelope.stepId === "slow" ? "work" : endDone());

async function submitPlan({ coordinator }: TestGateway, steps: readonly Fields[] = [step("slow")]) {
  const submitted = await coordinator.submitPlan({ plan: plan(steps, RETRIED), ownerAgent: AGENT });
  expect(submitted).toMatchObject({ kind: "accepted" });
  await waitUntilSettled();
}

function listStarts({ plans }: TestGateway): string[] {
  return plans.orders.map(({ idempotencyKey }) => idempotencyKey);
}

async function fatesOf(gateways: Gateways, runId: CoordinationId = PLAN_ID) {
  const { steps, status } = await gateways.view(runId);
  return { status, ...Object.fromEntries(steps.map(({ stepId, status: fate }) => [stepId, fate])) };
}

async function spawn({ coordinator, host }: TestGateway, task = "task") {
  const request = spawnOf({ task });
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId } = admission.envelope;
  const child = host.spawn(request);
  await coordinator.confirmSpawn(admission.envelope, child);
  return { coordinationId, child };
}

describe("a plan", () => {
  it("is driven by the gateway that it was submitted to, and by no other one while that one is there", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    const b = await gateways.start("b", workOnSlow);
    await submitPlan(a, [step("slow"), step("after", { dependsOn: ["slow"] })]);
    await gateways.clock.advance(LEASE_MS * 5);
    expect(await gateways.driverOf(PLAN_ID)).toBe("a");
    a.plans.end("slow", endDone());
    await gateways.clock.advance(LEASE_MS);
    expect(await fatesOf(gateways)).toMatchObject({
      status: "success",
      slow: "completed",
      after: "completed",
    });
    expect(b.plans.orders).toEqual([]);
  });

  for (const isOnMachine of [true, false])
    it(`goes on in another gateway after its own was killed ${isOnMachine ? "on one machine" : "elsewhere"}, and ends there once its owner is told`, async () => {
      await using gateways = createGateways();
      const a = await gateways.start("a", workOnSlow);
      const b = await gateways.start("b");
      await submitPlan(a, [step("first"), step("slow", { dependsOn: ["first"] })]);
      a.kill({ isOnMachine });
      await gateways.clock.advance(isOnMachine ? LEASE_MS / 5 : LEASE_MS * 0.9);
      expect(await gateways.driverOf(PLAN_ID)).toBe(isOnMachine ? "b" : "a");
      await gateways.clock.advance(LEASE_MS * 2);
      expect(await gateways.driverOf(PLAN_ID)).toBe("b");
      expect(listStarts(b)).toEqual(["plan-1:slow:2"]);
      expect(await fatesOf(gateways)).toMatchObject({
        first: "completed",
        slow: "completed",
        status: "running",
      });
      const again = await gateways.start("a");
      await gateways.clock.advance(LEASE_MS);
      expect(listStarts(again)).toEqual([expect.stringContaining(DELIVERY_STEP_ID)]);
      expect(await fatesOf(gateways)).toMatchObject({ status: "success" });
      const failures = gateways.eventsOf(PLAN_ID).filter(({ type }) => type === "step.failed");
      expect(failures).toMatchObject([
        { payload: { stepId: "slow", attempt: 1, error: { code: "child_lost", message: LOST } } },
      ]);
    });

  it("goes on in another gateway also where the answer of the ledger to taking it over was lost", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    const b = await gateways.start("b");
    await submitPlan(a);
    b.loseTake();
    a.kill();
    await gateways.clock.advance(LEASE_MS * 3);
    expect(await gateways.driverOf(PLAN_ID)).toBe("b");
    expect(listStarts(b)).toEqual(["plan-1:slow:2"]);
    expect(await fatesOf(gateways)).toMatchObject({ slow: "completed" });
  });

  it("ends untold when the gateway of its owner does not come back in time", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    const b = await gateways.start("b");
    await submitPlan(a);
    a.kill();
    await gateways.clock.advance(ORPHAN_MS * 0.9);
    expect(await fatesOf(gateways)).toMatchObject({ status: "running", slow: "completed" });
    await gateways.clock.advance(ORPHAN_MS);
    const terminal = gateways.eventsOf(PLAN_ID).find(({ type }) => type === "coordination.terminal");
    expect(terminal?.payload).toMatchObject({ status: "success", delivery: "not_delivered" });
    expect(listStarts(b)).toEqual(["plan-1:slow:2"]);
  });

  it("is not written to by a gateway that was paused until another one had taken over; its agents are stopped", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    const b = await gateways.start("b", workOnSlow);
    await submitPlan(a);
    a.pause();
    await gateways.clock.advance(LEASE_MS * 2);
    expect(listStarts(b)).toEqual(["plan-1:slow:2"]);
    a.plans.end("slow", endDone());
    await a.resume();
    await gateways.clock.advance(LEASE_MS);
    expect(await gateways.driverOf(PLAN_ID)).toBe("b");
    expect(a.plans.cancelled).toEqual(["plan-1:slow:1"]);
    b.plans.end("slow", endDone());
    await gateways.clock.advance(LEASE_MS);
    expect(await fatesOf(gateways)).toMatchObject({ status: "success", slow: "completed" });
    expect(listStarts(a)).toHaveLength(2);
    const completed = gateways.eventsOf(PLAN_ID).filter(({ type }) => type === "step.completed");
    expect(completed.map(({ payload }) => payload)).toMatchObject([
      { attempt: 2 },
      { stepId: DELIVERY_STEP_ID },
    ]);
  });

  it("is driven on by a gateway that was paused and nobody took its place", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    await submitPlan(a);
    a.pause();
    await gateways.clock.advance(LEASE_MS * 3);
    await a.resume();
    a.plans.end("slow", endDone());
    await gateways.clock.advance(LEASE_MS);
    expect(await fatesOf(gateways)).toMatchObject({ status: "success" });
    expect(a.plans.cancelled).toEqual([]);
  });

  it("is cancelled through any gateway, and stopped by the one that drives it", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    const b = await gateways.start("b");
    await submitPlan(a);
    expect(await b.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" })).toMatchObject({
      kind: "accepted",
    });
    await gateways.clock.advance(2_000);
    expect(a.plans.cancelled).toEqual(["plan-1:slow:1"]);
    await gateways.clock.advance(2_000);
    expect(await fatesOf(gateways)).toMatchObject({ status: "cancelled", slow: "cancelled" });
    expect([b.plans.orders, b.plans.cancelled]).toEqual([[], []]);
  });

  it("tells its owner what the ledger says, and not what a cancellation that came too late made of it", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    const b = await gateways.start("b");
    await submitPlan(a, [step("doubted", { verify: { requireConfidence: true } })]);
    await gateways.clock.advance(2_000);
    a.pause();
    const cancelled = a.coordinator.cancel({
      coordinationId: PLAN_ID,
      stepId: "doubted" as StepId,
      by: "operator",
    });
    await waitUntilSettled();
    const approved = await b.coordinator.answer({
      questionId: `${PLAN_ID}:escalation-1`,
      answer: "approve",
      by: { kind: "operator" },
      through: "cli",
    });
    expect(approved).toMatchObject({ kind: "accepted" });
    await a.resume();
    await cancelled;
    await gateways.clock.advance(LEASE_MS);
    expect(await fatesOf(gateways)).toMatchObject({ status: "success", doubted: "completed" });
    const messages = a.plans.orders.filter(({ envelope }) => envelope.stepId === DELIVERY_STEP_ID);
    expect(messages.map(({ message }) => message)).toEqual([
      expect.stringContaining("success, 1 of 1 steps completed"),
    ]);
  });

  it("is taken back at once by its gateway when that begins again first", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    await submitPlan(a);
    a.kill({ isOnMachine: false });
    const again = await gateways.start("a", workOnSlow);
    await gateways.start("b");
    await gateways.clock.advance(LEASE_MS * 3);
    expect(await gateways.driverOf(PLAN_ID)).toBe("a");
    again.plans.end("slow", endDone());
    await gateways.clock.advance(LEASE_MS);
    expect(await fatesOf(gateways)).toMatchObject({ status: "success" });
  });
});

describe("two processes of one gateway", () => {
  it("do not both drive: the one that is seen at work by the other stops", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a", workOnSlow);
    await gateways.start("a");
    await submitPlan(a);
    await gateways.clock.advance(LEASE_MS);
    expect(gateways.lines.filter((line) => line.startsWith("a: was replaced")).length).toBeGreaterThan(0);
  });
});

describe("what a model spawned", () => {
  it("waits for its gateway, and goes on there", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    await gateways.start("b");
    const { coordinationId, child } = await spawn(a);
    a.kill();
    await gateways.clock.advance(LEASE_MS * 6);
    expect(await gateways.driverOf(coordinationId)).toBe("b");
    expect(await fatesOf(gateways, coordinationId)).toEqual({ status: "running", "step-1": "running" });
    const again = await gateways.start("a");
    again.host.end(child.childSessionKey, { outcome: "completed" });
    await gateways.clock.advance(LEASE_MS);
    expect(await gateways.driverOf(coordinationId)).toBe("a");
    expect(await fatesOf(gateways, coordinationId)).toEqual({ status: "success", "step-1": "completed" });
  });

  it("ends when its gateway does not come back in time, with that reason", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    const b = await gateways.start("b");
    const { coordinationId } = await spawn(a);
    a.kill();
    await gateways.clock.advance(ORPHAN_MS * 2);
    expect(await fatesOf(gateways, coordinationId)).toEqual({ status: "failed", "step-1": "failed" });
    const [failure] = gateways.eventsOf(coordinationId).filter(({ type }) => type === "step.failed");
    expect(failure?.payload).toMatchObject({
      error: { code: "child_lost", message: "the child ran in gateway a, which is gone" },
    });
    expect(b.host.asked).toEqual([]);
  });

  it("is not written to by its gateway between a pause that was too long and being given back to it", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    await gateways.start("b");
    const { coordinationId, child } = await spawn(a);
    a.pause();
    await gateways.clock.advance(LEASE_MS * 2);
    a.host.end(child.childSessionKey, { outcome: "completed" });
    const ending = a.coordinator.endChild(child.childSessionKey, { outcome: "completed" });
    const refusal = expect(ending).rejects.toMatchObject({ code: "NOT_OWNER" });
    await a.resume();
    await refusal;
    expect(await gateways.driverOf(coordinationId)).toBe("b");
    await gateways.clock.advance(LEASE_MS);
    expect(await gateways.driverOf(coordinationId)).toBe("a");
    expect(await fatesOf(gateways, coordinationId)).toEqual({ status: "success", "step-1": "completed" });
  });

  it("goes on in its gateway when it was given back to that one during a pause", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    const b = await gateways.start("b");
    const { coordinationId, child } = await spawn(a);
    a.pause();
    const drivers: (string | undefined)[] = [];
    // The other gateway dies between taking it over and forgetting the gateway that was paused.
    while (drivers.at(-1) !== "b" && drivers.length < 100) {
      await gateways.clock.advance(LEASE_MS / 20);
      drivers.push(await gateways.driverOf(coordinationId));
    }
    b.kill();
    // A new process takes the paused one to be there, until a lease has passed.
    await gateways.start("b");
    await gateways.clock.advance(LEASE_MS / 2);
    drivers.push(await gateways.driverOf(coordinationId));
    a.host.end(child.childSessionKey, { outcome: "completed" });
    await a.resume();
    await gateways.clock.advance(LEASE_MS * 10);
    expect(drivers.slice(-2)).toEqual(["b", "a"]);
    expect(await fatesOf(gateways, coordinationId)).toEqual({ status: "success", "step-1": "completed" });
  });

  it("ends at once when people cancel it while its gateway is gone", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    const b = await gateways.start("b");
    const { coordinationId } = await spawn(a);
    a.kill();
    await gateways.clock.advance(LEASE_MS);
    expect(await b.coordinator.cancel({ coordinationId, by: "operator" })).toMatchObject({
      kind: "accepted",
    });
    await gateways.clock.advance(LEASE_MS);
    expect(await fatesOf(gateways, coordinationId)).toEqual({ status: "cancelled", "step-1": "cancelled" });
  });

  it("is recorded by the gateway that it runs in only", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    const b = await gateways.start("b");
    const { coordinationId, child } = await spawn(a);
    const { childSessionKey } = child;
    const ending = { outcome: "failed" } as const;
    await expect(b.coordinator.endChild(childSessionKey, ending)).rejects.toMatchObject({
      code: "NOT_OWNER",
    });
    await a.coordinator.endChild(childSessionKey, { outcome: "completed" });
    expect(await fatesOf(gateways, coordinationId)).toMatchObject({ "step-1": "completed" });
  });

  it("is no work of another gateway's session of the same name", async () => {
    await using gateways = createGateways();
    const a = await gateways.start("a");
    const b = await gateways.start("b");
    const first = await spawn(a);
    const second = await b.coordinator.admitSpawn(spawnOf({ task: "other", trace: "trace-2" }));
    expect(second).toMatchObject({ kind: "admitted" });
    if (second.kind === "admitted") expect(second.envelope.coordinationId).not.toBe(first.coordinationId);
    expect((await gateways.view(first.coordinationId)).steps).toHaveLength(1);
  });
});
