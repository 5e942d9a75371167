import { describe, expect, it } from "vitest";
import { runCheckedPlan, type CheckedPlanRun } from "./checked-plan.ts";
import { type GivenGates, createGateDependencies } from "../support/gate-dependencies.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import type { CheckAnswer } from "../../src/agents/coordination/ports/verifier.ts";
import {
  listEvents,
  createGatesWith,
  LINT,
  waitForever,
  waitUntilQuiet,
  createRuling,
  createScriptedVerifier,
  type Answers,
} from "./gates-world.ts";
import { plan, PLAN_ID, scriptOf, step } from "./planned-world.ts";

const failuresOf = ({ run }: CheckedPlanRun): string[] =>
  run.events("verification.failed").map(({ payload }) => payload.because);
const statusOf = async ({ run }: CheckedPlanRun): Promise<string> => (await run.fates())["a"] ?? "";

describe("a check of a held result", () => {
  it("is asked with the result, what it is about and until when, and lets it through", async () => {
    const checkedPlan = await runCheckedPlan(() =>
      createRuling("pass", { criteria: ["style"], confidence: 0.7 }),
    );
    expect(checkedPlan.asked).toHaveLength(1);
    const [request] = checkedPlan.asked;
    const [decided] = checkedPlan.run.events("agent.decided");
    expect(request).toMatchObject({
      key: "lint",
      check: LINT,
      result: {
        coordinationId: PLAN_ID,
        stepId: "a",
        attempt: 1,
        agentId: "main",
        target: decided?.eventId,
        text: '{"n":1}',
        outputs: { n: 1 },
      },
    });
    expect(request?.deadlineAtMs).toBe(checkedPlan.run.events("result.held")[0]?.payload.verifyByMs);
    expect(checkedPlan.run.events("result.verified")[0]?.payload).toEqual({
      stepId: "a",
      attempt: 1,
      check: "lint",
      agentId: "check:lint",
      verdict: "pass",
      criteria: ["style"],
      confidence: 7_000,
    });
    expect((await checkedPlan.run.view()).status).toBe("success");
    await checkedPlan.run.close();
  });

  it("knows what the agent was asked to do", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"));
    expect(checkedPlan.asked[0]?.result.task).toContain("do a");
    await checkedPlan.run.close();
  });

  it("of an agent's words is given the words", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), {
      scripts: [{ outcome: "completed", reply: "All is well." }],
    });
    expect(checkedPlan.asked[0]?.result.text).toBe("All is well.");
    await checkedPlan.run.close();
  });

  it("that hangs has given none at the time until which it may take, and is told to stop", async () => {
    const checkedPlan = await runCheckedPlan(waitForever);
    expect(failuresOf(checkedPlan)).toEqual([]);
    await checkedPlan.run.advance(9_000);
    expect([await statusOf(checkedPlan), failuresOf(checkedPlan)]).toEqual(["held", []]);
    expect(checkedPlan.asked[0]?.signal.aborted).toBe(false);
    await checkedPlan.run.advance(1_000);
    expect(failuresOf(checkedPlan)).toEqual(["timed_out"]);
    expect(checkedPlan.asked[0]?.signal.aborted).toBe(true);
    expect(await statusOf(checkedPlan)).toBe("held");
    expect(checkedPlan.run.events("coordination.escalated")[0]?.payload).toMatchObject({
      cause: "verifier",
      stepId: "a",
    });
    await checkedPlan.run.advance(600_000);
    expect(checkedPlan.asked).toHaveLength(1);
    await checkedPlan.run.close();
  });

  it("that answers after that has no say any more", async () => {
    const late = Promise.withResolvers<CheckAnswer>();
    const checkedPlan = await runCheckedPlan(() => late.promise);
    await checkedPlan.run.advance(10_000);
    late.resolve(createRuling("pass"));
    await waitUntilQuiet(checkedPlan.run.world);
    expect(checkedPlan.run.events("result.verified")).toEqual([]);
    expect(await statusOf(checkedPlan)).toBe("held");
    await checkedPlan.run.close();
  });

  it.each([
    ["released", "approve", "completed"],
    ["withheld", "deny", "failed"],
  ] as const)("that answers after people %s the result changes nothing of it", async (_, answer, status) => {
    const late = Promise.withResolvers<CheckAnswer>();
    const checkedPlan = await runCheckedPlan(() => late.promise);
    await checkedPlan.run.advance(10_000);
    const by = { kind: "operator" } as const;
    const questionId = `${PLAN_ID}:escalation-1`;
    expect(
      await checkedPlan.run.coordinator.answer({ questionId, answer, by, through: "cli" }),
    ).toMatchObject({
      kind: "accepted",
    });
    expect(await statusOf(checkedPlan)).toBe(status);
    late.resolve(createRuling(answer === "approve" ? "fail" : "pass"));
    await waitUntilQuiet(checkedPlan.run.world);
    expect(await statusOf(checkedPlan)).toBe(status);
    expect(checkedPlan.run.events("result.verified")).toEqual([]);
    await checkedPlan.run.close();
  });

  it("that answers after another check failed lets nothing through", async () => {
    const late = Promise.withResolvers<CheckAnswer>();
    const checkedPlan = await runCheckedPlan(
      ({ key }) => (key === "test" ? late.promise : createRuling("fail")),
      {
        checks: ["lint", "test"],
      },
    );
    expect(await statusOf(checkedPlan)).toBe("failed");
    late.resolve(createRuling("pass"));
    await waitUntilQuiet(checkedPlan.run.world);
    expect(await statusOf(checkedPlan)).toBe("failed");
    expect(checkedPlan.asked.find(({ key }) => key === "test")?.signal.aborted).toBe(true);
    await checkedPlan.run.close();
  });

  it.each<[string, Answers]>([
    ["throws", () => Promise.reject(new Error("broken"))],
    [
      "throws at once",
      () => {
        throw new Error("broken");
      },
    ],
    ["says nothing", () => undefined as never],
    ["says null", () => null as never],
  ])("that %s has given none", async (_, answers) => {
    const checkedPlan = await runCheckedPlan(answers);
    expect(failuresOf(checkedPlan)).toEqual(["failed"]);
    expect(await statusOf(checkedPlan)).toBe("held");
    await checkedPlan.run.close();
  });

  it.each<[string, object]>([
    ["a verdict that there is none of", { verdict: "ok" }],
    ["no verdict", { verdict: undefined }],
    ["a confidence above one", { confidence: 1.1 }],
    ["a confidence below zero", { confidence: -0.1 }],
    ["a confidence that is not a number", { confidence: Number.NaN }],
    ["a confidence as text", { confidence: "0.9" }],
    ["criteria that are no keys", { criteria: ["no key of any kind"] }],
    ["criteria that are none", { criteria: undefined }],
    ["criteria that are text", { criteria: "style" }],
    ["more criteria than there may be", { criteria: Array.from({ length: 65 }, (_, index) => `c${index}`) }],
    ["nobody who ruled", { agentId: undefined }],
    ["an agent id that is too short", { agentId: "a" }],
    ["another kind of answer", { kind: "verdicts" }],
  ])("that says %s has given none that can be read", async (_, rest) => {
    const checkedPlan = await runCheckedPlan(() => ({ ...createRuling("pass"), ...rest }));
    expect(await statusOf(checkedPlan)).toBe("held");
    expect(failuresOf(checkedPlan)).toEqual(["malformed"]);
    expect(checkedPlan.run.events("coordination.escalated")).toHaveLength(1);
    await checkedPlan.run.close();
  });

  it.each(["other_target", "unavailable", "malformed"] as const)(
    "that says itself that it has none (%s) is believed",
    async (because) => {
      const checkedPlan = await runCheckedPlan(() => ({ kind: "none", because, message: "why" }));
      expect(failuresOf(checkedPlan)).toEqual([because]);
      expect(await statusOf(checkedPlan)).toBe("held");
      await checkedPlan.run.close();
    },
  );

  it("that nobody defines is not there", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), { checks: ["nobody"] });
    expect(failuresOf(checkedPlan)).toEqual(["unavailable"]);
    expect(checkedPlan.asked).toEqual([]);
    await checkedPlan.run.close();
  });

  it("that cannot even be loaded has given none", async () => {
    const more = { verifier: () => Promise.reject(new Error("no such module")) };
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), { more });
    expect(failuresOf(checkedPlan)).toEqual(["failed"]);
    await checkedPlan.run.close();
  });

  it("whose text is not kept has nothing to rule on, and lets nothing through", async () => {
    const { checkRequests, verifier } = createScriptedVerifier(() => createRuling("pass"));
    const world = createWorld({}, createScriptedRunner(scriptOf({ a: [endDone({ n: 1 })] })), {
      gates: createGatesWith(["lint"]),
      verifier,
    });
    const createForgetfulStore = (store: MemoryStore): MemoryStore => ({
      ...store,
      get: async (sha256) => {
        const text = await store.get(sha256);
        return text === '{"n":1}' ? undefined : text;
      },
    });
    const coordinator = world.start(createForgetfulStore);
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a")]), ownerAgent: "main" as never });
    await waitUntilQuiet(world);
    expect(checkRequests.filter(({ result }) => result.text === "")).toEqual([]);
    expect(listEvents(world, "step.completed")).toEqual([]);
    await coordinator.stop();
  });
});

describe("a check that a plan asks for", () => {
  const stated = { kind: "pattern", pattern: "n" } as const;

  it("is asked as the plan states it", async () => {
    const fields = { verify: { checks: { own: stated } } };
    const checkedPlan = await runCheckedPlan(({ key }) => createRuling("pass", { agentId: `check:${key}` }), {
      fields,
    });
    expect(checkedPlan.asked.map(({ key, check }) => [key, check])).toEqual([
      ["lint", LINT],
      ["own", stated],
    ]);
    await checkedPlan.run.close();
  });

  it("is the operator's where the plan only names it", async () => {
    const fields = { verify: { checks: { test: true } } };
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), { checks: [], fields });
    expect(checkedPlan.asked.map(({ key, check }) => [key, check])).toEqual([
      ["test", { kind: "pattern", pattern: "test" }],
    ]);
    await checkedPlan.run.close();
  });

  it("does not stand in for one that the operator demands under the same key", async () => {
    const fields = { verify: { checks: { lint: { kind: "pattern", pattern: "." } } } };
    const { checkRequests, verifier } = createScriptedVerifier(() => createRuling("pass"));
    const world = createWorld({}, createScriptedRunner(scriptOf({ a: [endDone({ n: 1 })] })), {
      gates: createGatesWith(["lint"]),
      verifier,
    });
    const coordinator = world.start();
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a", fields)]), ownerAgent: "main" as never });
    await waitUntilQuiet(world);
    // Refusing such a plan would do as well.
    for (const { check } of checkRequests) expect(check).toEqual(LINT);
    await coordinator.stop();
  });
});

describe("a check of a plugin", () => {
  const createPluginGates = (verify: () => CheckAnswer | Promise<CheckAnswer>): GivenGates => ({
    pluginGates: {
      ...createGateDependencies().pluginGates,
      verifiersFor: () => ["plugin:p"],
      verify: async () => verify(),
    },
  });

  it("is asked of the plugin, beside the operator's", async () => {
    const more = createPluginGates(() => createRuling("fail", { agentId: "plugin:p" }));
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), { more });
    expect(checkedPlan.run.events("agent.verified").map(({ payload }) => payload.agentId)).toContain(
      "plugin:p",
    );
    expect(await statusOf(checkedPlan)).toBe("failed");
    await checkedPlan.run.close();
  });

  it("that breaks its word and throws has given none", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("pass"), {
      more: createPluginGates(() => {
        throw new Error("a plugin's bug");
      }),
    });
    expect(failuresOf(checkedPlan)).toEqual(["failed"]);
    expect(await statusOf(checkedPlan)).toBe("held");
    await checkedPlan.run.close();
  });
});

describe("an agent as the critic of its own results", () => {
  it("is seen to be that by us, whatever it says, and has given no verdict", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("pass", { agentId: "agent:main" }));
    expect(failuresOf(checkedPlan)).toEqual(["self_not_allowed"]);
    await checkedPlan.run.close();
  });

  it("is allowed by the operator, and the ledger shows it", async () => {
    const checkedPlan = await runCheckedPlan(() => createRuling("pass", { agentId: "agent:main" }), {
      gates: { allowSelfVerification: true },
    });
    expect(checkedPlan.run.events("result.verified")[0]?.payload).toMatchObject({ self: true });
    expect(await statusOf(checkedPlan)).toBe("completed");
    await checkedPlan.run.close();
  });
});
