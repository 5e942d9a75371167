import { describe, expect, it } from "vitest";
import { checked, type Checked } from "./checked-plan.ts";
import { type GivenGates, gateParts } from "../support/gate-parts.ts";
import { world } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { done, scriptedRunner } from "../support/scripted-runner.ts";
import type { CheckAnswer } from "../../src/agents/coordination/ports/verifier.ts";
import {
  eventsIn,
  gatesWith,
  LINT,
  never,
  quiet,
  ruling,
  scriptedVerifier,
  type Answers,
} from "./gates-world.ts";
import { plan, PLAN_ID, scriptOf, step } from "./planned-world.ts";

const failuresOf = ({ run }: Checked): string[] =>
  run.events("verification.failed").map(({ payload }) => payload.because);
const statusOf = async ({ run }: Checked): Promise<string> => (await run.fates())["a"] ?? "";

describe("a check of a held result", () => {
  it("is asked with the result, what it is about and until when, and lets it through", async () => {
    const it = await checked(() => ruling("pass", { criteria: ["style"], confidence: 0.7 }));
    expect(it.asked).toHaveLength(1);
    const [request] = it.asked;
    const [decided] = it.run.events("agent.decided");
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
    expect(request?.deadlineAtMs).toBe(it.run.events("result.held")[0]?.payload.verifyByMs);
    expect(it.run.events("result.verified")[0]?.payload).toEqual({
      stepId: "a",
      attempt: 1,
      check: "lint",
      agentId: "check:lint",
      verdict: "pass",
      criteria: ["style"],
      confidence: 7_000,
    });
    expect((await it.run.view()).status).toBe("success");
    await it.run.close();
  });

  it("knows what the agent was asked to do", async () => {
    const it = await checked(() => ruling("pass"));
    expect(it.asked[0]?.result.task).toContain("do a");
    await it.run.close();
  });

  it("of an agent's words is given the words", async () => {
    const it = await checked(() => ruling("pass"), {
      scripts: [{ outcome: "completed", reply: "All is well." }],
    });
    expect(it.asked[0]?.result.text).toBe("All is well.");
    await it.run.close();
  });

  it("that hangs has given none at the time until which it may take, and is told to stop", async () => {
    const it = await checked(never);
    expect(failuresOf(it)).toEqual([]);
    await it.run.advance(9_000);
    expect([await statusOf(it), failuresOf(it)]).toEqual(["held", []]);
    expect(it.asked[0]?.signal.aborted).toBe(false);
    await it.run.advance(1_000);
    expect(failuresOf(it)).toEqual(["timed_out"]);
    expect(it.asked[0]?.signal.aborted).toBe(true);
    expect(await statusOf(it)).toBe("held");
    expect(it.run.events("coordination.escalated")[0]?.payload).toMatchObject({
      cause: "verifier",
      stepId: "a",
    });
    await it.run.advance(600_000);
    expect(it.asked).toHaveLength(1);
    await it.run.close();
  });

  it("that answers after that has no say any more", async () => {
    const late = Promise.withResolvers<CheckAnswer>();
    const it = await checked(() => late.promise);
    await it.run.advance(10_000);
    late.resolve(ruling("pass"));
    await quiet(it.run.it);
    expect(it.run.events("result.verified")).toEqual([]);
    expect(await statusOf(it)).toBe("held");
    await it.run.close();
  });

  it.each([
    ["released", "approve", "completed"],
    ["withheld", "deny", "failed"],
  ] as const)("that answers after people %s the result changes nothing of it", async (_, answer, status) => {
    const late = Promise.withResolvers<CheckAnswer>();
    const it = await checked(() => late.promise);
    await it.run.advance(10_000);
    const by = { kind: "operator" } as const;
    const questionId = `${PLAN_ID}:escalation-1`;
    expect(await it.run.coordinator.answer({ questionId, answer, by, through: "cli" })).toMatchObject({
      kind: "accepted",
    });
    expect(await statusOf(it)).toBe(status);
    late.resolve(ruling(answer === "approve" ? "fail" : "pass"));
    await quiet(it.run.it);
    expect(await statusOf(it)).toBe(status);
    expect(it.run.events("result.verified")).toEqual([]);
    await it.run.close();
  });

  it("that answers after another check failed lets nothing through", async () => {
    const late = Promise.withResolvers<CheckAnswer>();
    const it = await checked(({ key }) => (key === "test" ? late.promise : ruling("fail")), {
      checks: ["lint", "test"],
    });
    expect(await statusOf(it)).toBe("failed");
    late.resolve(ruling("pass"));
    await quiet(it.run.it);
    expect(await statusOf(it)).toBe("failed");
    expect(it.asked.find(({ key }) => key === "test")?.signal.aborted).toBe(true);
    await it.run.close();
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
    const it = await checked(answers);
    expect(failuresOf(it)).toEqual(["failed"]);
    expect(await statusOf(it)).toBe("held");
    await it.run.close();
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
    const it = await checked(() => ({ ...ruling("pass"), ...rest }));
    expect(await statusOf(it)).toBe("held");
    expect(failuresOf(it)).toEqual(["malformed"]);
    expect(it.run.events("coordination.escalated")).toHaveLength(1);
    await it.run.close();
  });

  it.each(["other_target", "unavailable", "malformed"] as const)(
    "that says itself that it has none (%s) is believed",
    async (because) => {
      const it = await checked(() => ({ kind: "none", because, message: "why" }));
      expect(failuresOf(it)).toEqual([because]);
      expect(await statusOf(it)).toBe("held");
      await it.run.close();
    },
  );

  it("that nobody defines is not there", async () => {
    const it = await checked(() => ruling("pass"), { checks: ["nobody"] });
    expect(failuresOf(it)).toEqual(["unavailable"]);
    expect(it.asked).toEqual([]);
    await it.run.close();
  });

  it("that cannot even be loaded has given none", async () => {
    const more = { verifier: () => Promise.reject(new Error("no such module")) };
    const it = await checked(() => ruling("pass"), { more });
    expect(failuresOf(it)).toEqual(["failed"]);
    await it.run.close();
  });

  it("whose text is not kept has nothing to rule on, and lets nothing through", async () => {
    const { asked, verifier } = scriptedVerifier(() => ruling("pass"));
    const it = world({}, scriptedRunner(scriptOf({ a: [done({ n: 1 })] })), {
      gates: gatesWith(["lint"]),
      verifier,
    });
    const forgetful = (store: MemoryStore): MemoryStore => ({
      ...store,
      get: async (sha256) => {
        const text = await store.get(sha256);
        return text === '{"n":1}' ? undefined : text;
      },
    });
    const coordinator = it.start(forgetful);
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a")]), ownerAgent: "main" as never });
    await quiet(it);
    expect(asked.filter(({ result }) => result.text === "")).toEqual([]);
    expect(eventsIn(it, "step.completed")).toEqual([]);
    await coordinator.stop();
  });
});

describe("a check that a plan asks for", () => {
  const stated = { kind: "pattern", pattern: "n" } as const;

  it("is asked as the plan states it", async () => {
    const fields = { verify: { checks: { own: stated } } };
    const it = await checked(({ key }) => ruling("pass", { agentId: `check:${key}` }), { fields });
    expect(it.asked.map(({ key, check }) => [key, check])).toEqual([
      ["lint", LINT],
      ["own", stated],
    ]);
    await it.run.close();
  });

  it("is the operator's where the plan only names it", async () => {
    const fields = { verify: { checks: { test: true } } };
    const it = await checked(() => ruling("pass"), { checks: [], fields });
    expect(it.asked.map(({ key, check }) => [key, check])).toEqual([
      ["test", { kind: "pattern", pattern: "test" }],
    ]);
    await it.run.close();
  });

  it("does not stand in for one that the operator demands under the same key", async () => {
    const fields = { verify: { checks: { lint: { kind: "pattern", pattern: "." } } } };
    const { asked, verifier } = scriptedVerifier(() => ruling("pass"));
    const it = world({}, scriptedRunner(scriptOf({ a: [done({ n: 1 })] })), {
      gates: gatesWith(["lint"]),
      verifier,
    });
    const coordinator = it.start();
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a", fields)]), ownerAgent: "main" as never });
    await quiet(it);
    // Refusing such a plan would do as well.
    for (const { check } of asked) expect(check).toEqual(LINT);
    await coordinator.stop();
  });
});

describe("a check of a plugin", () => {
  const pluginGates = (verify: () => CheckAnswer | Promise<CheckAnswer>): GivenGates => ({
    pluginGates: {
      ...gateParts().pluginGates,
      verifiersFor: () => ["plugin:p"],
      verify: async () => verify(),
    },
  });

  it("is asked of the plugin, beside the operator's", async () => {
    const more = pluginGates(() => ruling("fail", { agentId: "plugin:p" }));
    const it = await checked(() => ruling("pass"), { more });
    expect(it.run.events("agent.verified").map(({ payload }) => payload.agentId)).toContain("plugin:p");
    expect(await statusOf(it)).toBe("failed");
    await it.run.close();
  });

  it("that breaks its word and throws has given none", async () => {
    const it = await checked(() => ruling("pass"), {
      more: pluginGates(() => {
        throw new Error("a plugin's bug");
      }),
    });
    expect(failuresOf(it)).toEqual(["failed"]);
    expect(await statusOf(it)).toBe("held");
    await it.run.close();
  });
});

describe("an agent as the critic of its own results", () => {
  it("is seen to be that by us, whatever it says, and has given no verdict", async () => {
    const it = await checked(() => ruling("pass", { agentId: "agent:main" }));
    expect(failuresOf(it)).toEqual(["self_not_allowed"]);
    await it.run.close();
  });

  it("is allowed by the operator, and the ledger shows it", async () => {
    const it = await checked(() => ruling("pass", { agentId: "agent:main" }), {
      gates: { allowSelfVerification: true },
    });
    expect(it.run.events("result.verified")[0]?.payload).toMatchObject({ self: true });
    expect(await statusOf(it)).toBe("completed");
    await it.run.close();
  });
});
