import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { runCheckedPlan, type CheckedPlanRun } from "./checked-plan.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, spawnOf, createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import {
  listEvents,
  createGatesWith,
  waitForever,
  waitUntilQuiet,
  createRuling,
  createScriptedVerifier,
  spawnChild,
} from "./gates-world.ts";
import { plan, scriptOf, step } from "./planned-world.ts";

const failuresOf = ({ run }: CheckedPlanRun): string[] =>
  run.events("verification.failed").map(({ payload }) => payload.because);
const statusOf = async ({ run }: CheckedPlanRun): Promise<string> => (await run.fates())["a"] ?? "";

describe("a result that is to be revised", () => {
  it("goes back to its agent in its session with the keys, and the second one is checked anew", async () => {
    const checkedPlan = await runCheckedPlan(
      (_, time) => createRuling(time === 1 ? "revise" : "pass", { criteria: ["style"] }),
      {
        scripts: [endDone({ n: 1 }), endDone({ n: 2 })],
      },
    );
    const [first, second] = checkedPlan.run.ordersOf("a");
    expect(second?.childSessionKey).toBe(first?.childSessionKey);
    expect(second?.idempotencyKey).not.toBe(first?.idempotencyKey);
    expect(second?.message).toContain("- style");
    expect(checkedPlan.asked.map(({ result }) => [result.attempt, result.text])).toEqual([
      [1, '{"n":1}'],
      [2, '{"n":2}'],
    ]);
    expect(checkedPlan.run.events("step.completed")[0]?.payload).toMatchObject({
      attempt: 2,
      released: "verified",
    });
    await checkedPlan.run.close();
  });

  it("again and again is for people after so many times", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("revise"), { gates: { revisionsMax: 2 } });
    expect(checkedPlan.run.ordersOf("a")).toHaveLength(3);
    expect(await statusOf(checkedPlan)).toBe("held");
    expect(checkedPlan.run.events("coordination.escalated")[0]?.payload).toMatchObject({ cause: "verifier" });
    await checkedPlan.run.close();
  });

  it("of a model's own spawn is continued in the child's session, and told of once at the end", async () => {
    const { verifier, checkRequests } = createScriptedVerifier((_, time) =>
      createRuling(time === 1 ? "revise" : "pass", { criteria: ["style"] }),
    );
    const runner = createScriptedRunner(({ childSessionKey }) =>
      childSessionKey.includes("subagent") ? { outcome: "completed", reply: "better" } : endDone(),
    );
    const world = createWorld({}, runner, { gates: createGatesWith(["lint"]), verifier });
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    expect(await child.says("worse")).not.toContain("worse");
    await child.ends();
    await waitUntilQuiet(world);
    await world.clock.advance(5_000);
    expect(checkRequests.map(({ result }) => result.text)).toEqual(["worse", "better"]);
    const sent = runner.orders.filter(({ childSessionKey }) => childSessionKey === child.session);
    expect(sent).toHaveLength(1);
    expect(listEvents(world, "step.completed")[0]?.payload).toMatchObject({
      attempt: 2,
      released: "verified",
    });
    expect(listEvents(world, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });
});

describe("a process that ends while a result is held", () => {
  it("is followed by one that asks what has not answered, and nothing else", async () => {
    const checkedPlan = await runCheckedPlan(
      ({ key }, time) => (key === "test" && time === 1 ? waitForever() : createRuling("pass")),
      {
        checks: ["lint", "test"],
      },
    );
    expect(checkedPlan.run.events("result.verified").map(({ payload }) => payload.check)).toEqual(["lint"]);
    await checkedPlan.run.restart();
    await waitUntilQuiet(checkedPlan.run.world);
    expect(checkedPlan.asked.map(({ key }) => key)).toEqual(["lint", "test", "test"]);
    expect(failuresOf(checkedPlan)).toEqual([]);
    expect((await checkedPlan.run.view()).status).toBe("success");
    await checkedPlan.run.close();
  });

  it("for so long that the time is over records that at once", async () => {
    const checkedPlan = await runCheckedPlan(waitForever);
    await checkedPlan.run.restart(() =>
      checkedPlan.run.world.clock.jump(checkedPlan.run.world.clock.now() + 60_000),
    );
    await waitUntilQuiet(checkedPlan.run.world);
    expect(failuresOf(checkedPlan)).toEqual(["timed_out"]);
    await checkedPlan.run.close();
  });

  it("between a verdict and its record asks again: the result is let through once", async () => {
    const { checkRequests, verifier } = createScriptedVerifier(() => createRuling("pass"));
    const world: World = createWorld({}, createScriptedRunner(scriptOf({ a: [endDone({ n: 1 })] })), {
      gates: createGatesWith(["lint"]),
      verifier,
    });
    let isBroken = true;
    const createFailingStore = (store: MemoryStore): MemoryStore => ({
      ...store,
      append: (request) =>
        isBroken && request.events.some(({ type }) => type === "result.verified")
          ? Promise.reject(new Error("the disk is full"))
          : store.append(request),
    });
    const first = world.start(createFailingStore);
    await first.start();
    await first.submitPlan({ plan: plan([step("a")]), ownerAgent: "main" as never });
    await waitUntilQuiet(world);
    expect(listEvents(world, "result.verified")).toEqual([]);
    expect(listEvents(world, "step.completed")).toEqual([]);
    await first.stop();
    isBroken = false;
    const second = world.start();
    await second.start();
    await waitUntilSettled();
    await waitUntilQuiet(world);
    expect(checkRequests.length).toBeGreaterThan(1);
    expect(listEvents(world, "step.completed").filter(({ payload }) => payload.stepId === "a")).toHaveLength(
      1,
    );
    await second.stop();
  });
});

describe("an answer that was cut", () => {
  it("is held for the confidence that its end states", async () => {
    const cut = {
      outcome: "completed",
      reply: "x".repeat(BOUNDS.replyCharsMax),
      replyEnd: 'x\n{"confidence": 0.1}',
    } as const;
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), { scripts: [cut], checks: [] });
    expect(await statusOf(checkedPlan)).toBe("held");
    expect(checkedPlan.run.events("coordination.escalated")[0]?.payload).toMatchObject({
      cause: "confidence",
      confidence: { measured: 1_000 },
    });
    await checkedPlan.run.close();
  });

  it.each<[string, string, object]>([
    [
      "the block at its end, and not an example at its beginning",
      '```json\n{"n":1}\n```\n{"confidence":0.9}',
      { type: "step.completed", payload: { output: { sha256: hash("sha256", '{"n":1}') } } },
    ],
    [
      "no example at its beginning where its end has no block",
      '{"confidence":0.9}',
      {
        type: "step.failed",
        payload: {
          error: {
            code: "output_invalid",
            message: expect.stringContaining("longer than 200000 characters") as string,
          },
        },
      },
    ],
  ])("gives as outputs %s", async (_, end, expected) => {
    const cut = {
      outcome: "completed",
      reply: '```json\n{"n":0}\n```\n'.padEnd(BOUNDS.replyCharsMax, "x"),
      replyEnd: `x\n${end}`,
    } as const;
    const fields = { outputSchema: { type: "object", required: ["n"] } };
    const { run } = await runCheckedPlan(() => createRuling("pass"), { scripts: [cut], checks: [], fields });
    const ends = [...run.events("step.completed"), ...run.events("step.failed")];
    expect(ends.filter(({ payload }) => payload.stepId === "a")).toMatchObject([expected]);
    await run.close();
  });
});

describe("a child that the ledger did not expect", () => {
  it("is gated as the one that it did", async () => {
    const { verifier } = createScriptedVerifier(() => createRuling("fail"));
    const world = createWorld({}, createScriptedRunner(), { gates: createGatesWith(["lint"]), verifier });
    const coordinator = world.start();
    await coordinator.start();
    await spawnChild(world, coordinator);
    // The host made a second one for the same call.
    const extra = world.host.spawn(spawnOf({ task: "t" }));
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
