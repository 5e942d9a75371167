import { describe, expect, it } from "vitest";
import { checked, type Checked } from "./checked-plan.ts";
import { settled } from "../support/fake-clock.ts";
import { OWNER, spawnOf, world, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { done, scriptedRunner } from "../support/scripted-runner.ts";
import { eventsIn, gatesWith, never, quiet, ruling, scriptedVerifier, spawnChild } from "./gates-world.ts";
import { plan, scriptOf, step } from "./planned-world.ts";

const failuresOf = ({ run }: Checked): string[] =>
  run.events("verification.failed").map(({ payload }) => payload.because);
const statusOf = async ({ run }: Checked): Promise<string> => (await run.fates())["a"] ?? "";

describe("a result that is to be revised", () => {
  it("goes back to its agent in its session with the keys, and the second one is checked anew", async () => {
    const it = await checked((_, time) => ruling(time === 1 ? "revise" : "pass", { criteria: ["style"] }), {
      scripts: [done({ n: 1 }), done({ n: 2 })],
    });
    const [first, second] = it.run.ordersOf("a");
    expect(second?.childSessionKey).toBe(first?.childSessionKey);
    expect(second?.idempotencyKey).not.toBe(first?.idempotencyKey);
    expect(second?.message).toContain("- style");
    expect(it.asked.map(({ result }) => [result.attempt, result.text])).toEqual([
      [1, '{"n":1}'],
      [2, '{"n":2}'],
    ]);
    expect(it.run.events("step.completed")[0]?.payload).toMatchObject({ attempt: 2, released: "verified" });
    await it.run.close();
  });

  it("again and again is for people after so many times", async () => {
    const it = await checked(() => ruling("revise"), { gates: { revisionsMax: 2 } });
    expect(it.run.ordersOf("a")).toHaveLength(3);
    expect(await statusOf(it)).toBe("held");
    expect(it.run.events("coordination.escalated")[0]?.payload).toMatchObject({ cause: "verifier" });
    await it.run.close();
  });

  it("of a model's own spawn is continued in the child's session, and told of once at the end", async () => {
    const { verifier, asked } = scriptedVerifier((_, time) =>
      ruling(time === 1 ? "revise" : "pass", { criteria: ["style"] }),
    );
    const runner = scriptedRunner(({ childSessionKey }) =>
      childSessionKey.includes("subagent") ? { outcome: "completed", reply: "better" } : done(),
    );
    const it = world({}, runner, { gates: gatesWith(["lint"]), verifier });
    const coordinator = it.start();
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    expect(await child.says("worse")).not.toContain("worse");
    await child.ends();
    await quiet(it);
    await it.clock.advance(5_000);
    expect(asked.map(({ result }) => result.text)).toEqual(["worse", "better"]);
    const sent = runner.orders.filter(({ childSessionKey }) => childSessionKey === child.session);
    expect(sent).toHaveLength(1);
    expect(eventsIn(it, "step.completed")[0]?.payload).toMatchObject({ attempt: 2, released: "verified" });
    expect(eventsIn(it, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });
});

describe("a process that ends while a result is held", () => {
  it("is followed by one that asks what has not answered, and nothing else", async () => {
    const it = await checked(({ key }, time) => (key === "test" && time === 1 ? never() : ruling("pass")), {
      checks: ["lint", "test"],
    });
    expect(it.run.events("result.verified").map(({ payload }) => payload.check)).toEqual(["lint"]);
    await it.run.restart();
    await quiet(it.run.it);
    expect(it.asked.map(({ key }) => key)).toEqual(["lint", "test", "test"]);
    expect(failuresOf(it)).toEqual([]);
    expect((await it.run.view()).status).toBe("success");
    await it.run.close();
  });

  it("for so long that the time is over records that at once", async () => {
    const it = await checked(never);
    await it.run.restart(() => it.run.it.clock.jump(it.run.it.clock.now() + 60_000));
    await quiet(it.run.it);
    expect(failuresOf(it)).toEqual(["timed_out"]);
    await it.run.close();
  });

  it("between a verdict and its record asks again: the result is let through once", async () => {
    const { asked, verifier } = scriptedVerifier(() => ruling("pass"));
    const it: World = world({}, scriptedRunner(scriptOf({ a: [done({ n: 1 })] })), {
      gates: gatesWith(["lint"]),
      verifier,
    });
    let isBroken = true;
    const failing = (store: MemoryStore): MemoryStore => ({
      ...store,
      append: (request) =>
        isBroken && request.events.some(({ type }) => type === "result.verified")
          ? Promise.reject(new Error("the disk is full"))
          : store.append(request),
    });
    const first = it.start(failing);
    await first.start();
    await first.submitPlan({ plan: plan([step("a")]), ownerAgent: "main" as never });
    await quiet(it);
    expect(eventsIn(it, "result.verified")).toEqual([]);
    expect(eventsIn(it, "step.completed")).toEqual([]);
    await first.stop();
    isBroken = false;
    const second = it.start();
    await second.start();
    await settled();
    await quiet(it);
    expect(asked.length).toBeGreaterThan(1);
    expect(eventsIn(it, "step.completed").filter(({ payload }) => payload.stepId === "a")).toHaveLength(1);
    await second.stop();
  });
});

describe("a child that the ledger did not expect", () => {
  it("is gated as the one that it did", async () => {
    const { verifier } = scriptedVerifier(() => ruling("fail"));
    const it = world({}, scriptedRunner(), { gates: gatesWith(["lint"]), verifier });
    const coordinator = it.start();
    await coordinator.start();
    await spawnChild(it, coordinator);
    // The host made a second one for the same call.
    const extra = it.host.spawn(spawnOf({ task: "t" }));
    const { childSessionKey, childRunId } = extra;
    await coordinator.confirmSpawn(
      { coordinationId: "co-1" as never, stepId: "step-1" as never, sourceSession: OWNER, toolCallId: "t" },
      { childSessionKey, childRunId },
    );
    const gated = await coordinator.heldSessions.gated(childSessionKey);
    expect(gated).toMatchObject({ stepId: "step-2", isStrict: true, gate: { checks: ["lint"] } });
    await coordinator.stop();
  });
});
