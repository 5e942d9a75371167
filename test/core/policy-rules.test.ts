/** Owns: which policy pack holds for the work of a session, and that it holds for a coordination from its opening to its end. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import {
  parsePluginConfig,
  parseRuledConfigs,
} from "../../src/agents/coordination/contracts/config/config.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { AgentId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Logger } from "../../src/agents/coordination/ports/logger.ts";
import type { PolicyBook } from "../../src/agents/coordination/runtime/environment/policy-rules.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { createVerifier } from "../../src/infra/verify/create-verifier.ts";
import { createPolicyBook } from "../../src/plugins/policy-book.ts";
import { createScriptedCritic } from "../contract/verifier-scene.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import { createGatesWith, waitUntilQuiet } from "./gates-world.ts";
import { BROKEN, createDiamond, readRefusal } from "./plan-forks-scene.ts";
import { plan, scriptOf, step, submitTo, type PlanRun } from "./planned-world.ts";

const PACKS = {
  careful: {
    version: "1.0.0",
    settings: {
      gates: { confidenceThreshold: 0.9 },
      budget: { spawns: 7 },
      privileges: { default: { tools: { deny: ["exec"] } } },
      escalateMs: 60_000,
      stepTimeoutMs: 5_000,
    },
  },
  fast: { version: "2.0.0", settings: { gates: { confidenceThreshold: 0.1 } } },
};

const createConfig = (rules: readonly object[], more: object = {}, packs: object = PACKS) => ({
  coordination: { phase1: { ...more, policies: { packs, rules } } },
});

function createBook(rules: readonly object[], packs: object = PACKS): PolicyBook {
  const config = createConfig(rules, {}, packs);
  return createPolicyBook(parsePluginConfig(config), parseRuledConfigs(config));
}

const choosePack = (book: PolicyBook, session: string, agent = "main"): string | undefined =>
  book.choose({ agent: agent as AgentId, session: session as SessionKey })?.policy.name;

describe("the pack of a session", () => {
  test.each([
    [{ agent: "main" }, "agent:main:main", "main", true],
    [{ agent: "main" }, "agent:writer:main", "writer", false],
    [{ agent: " Main" }, "agent:main:main", "main", true],
    [{ agent: "main" }, "agent:main:main", "Main", true],
    [{ channel: "telegram" }, "agent:main:telegram:direct:42", "main", true],
    [{ channel: "Telegram" }, "agent:main:telegram:direct:42", "main", true],
    [{ channel: "telegram" }, "agent:main:discord:channel:1", "main", false],
    [{ channel: "main" }, "agent:main:main", "main", false],
    [{ session: "agent:main:main" }, "agent:main:main", "main", true],
    [{ session: "agent:*:release-*" }, "agent:writer:release-7", "writer", true],
    [{ session: "agent:*:release-*" }, "agent:writer:main", "writer", false],
    [{ session: "agent:?:main" }, "agent:a:main", "a", false],
    [{ agent: "main", channel: "telegram" }, "agent:main:telegram:direct:42", "main", true],
    [{ agent: "writer", channel: "telegram" }, "agent:main:telegram:direct:42", "main", false],
  ])("is that of the rule %j for %s: %s, %s", (rule, session, agent, isFitting) => {
    const book = createBook([{ ...rule, pack: "careful" }]);
    expect(choosePack(book, session, agent)).toBe(isFitting ? "careful" : undefined);
  });

  it("is that of the first rule that fits", () => {
    const rule = fc.record({
      session: fc.constantFrom("*", "agent:main:*", "agent:main:a", "agent:*:b", "agent:writer:*"),
      pack: fc.constantFrom("careful", "fast"),
    });
    const session = fc.constantFrom("agent:main:a", "agent:main:b", "agent:writer:a");
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 6 }), session, (rules, key) => {
        const first = rules.find((each) => choosePack(createBook([each]), key) !== undefined);
        expect(choosePack(createBook(rules), key)).toBe(first?.pack);
      }),
    );
  });

  test.each([
    [[{ agent: "main", pack: "unknown" }], "policies.rules[0].pack"],
    [[{ pack: "careful" }], "an agent, a channel or a session"],
    [[{ agent: "main" }], "policies.rules[0].pack"],
  ])("is refused as %j: %s", (rules, problem) => {
    expect(() => parsePluginConfig(createConfig(rules))).toThrow(problem);
  });

  it("is refused where it does not go with the configuration", () => {
    const packs = { broken: { version: "1.0.0", settings: { gates: { confidenceThreshold: 2 } } } };
    const phase1 = { policies: { packs, rules: [{ agent: "main", pack: "broken" }] } };
    expect(() => parsePluginConfig({ coordination: { phase1 } })).toThrow(
      "with the policy pack broken in use",
    );
  });

  it("has what the configuration says in place of what the pack says", () => {
    const config = createConfig([{ agent: "main", pack: "careful" }], {
      gates: { confidenceThreshold: 0.5 },
    });
    const book = createPolicyBook(parsePluginConfig(config), parseRuledConfigs(config));
    const owner = { agent: "main" as AgentId, session: OWNER };
    expect(book.choose(owner)).toMatchObject({ gates: { confidenceThreshold: 0.5 }, budget: { spawns: 7 } });
  });
});

function openWorld(policies: PolicyBook): World {
  const world = createWorld();
  world.policies = policies;
  return world;
}

const RELEASE = "agent:main:release" as SessionKey;
const ONLY_RELEASE = createBook([{ session: RELEASE, pack: "careful" }]);

function findFacts({ ledger }: World, type: string): readonly Record<string, unknown>[] {
  const events = ledger.events().flat();
  return events
    .filter((event) => event.type === type)
    .map(({ payload }) => payload as Record<string, unknown>);
}

describe("a coordination", () => {
  it("goes by the pack of the session that it is of, and others by the gateway's rules", async () => {
    const world = openWorld(ONLY_RELEASE);
    const coordinator = world.start();
    await coordinator.admitSpawn(spawnOf({ task: "a", source: RELEASE, trace: "one" }));
    await coordinator.admitSpawn(spawnOf({ task: "b", source: OWNER, trace: "two" }));
    const [release, other] = findFacts(world, "coordination.created");
    expect(release).toMatchObject({
      policy: { name: "careful", version: "1.0.0" },
      budget: { spawns: 7 },
      questions: { answerMs: 60_000 },
    });
    expect(other).not.toHaveProperty("policy");
    expect(other).not.toHaveProperty("budget");
    const [strict, lax] = findFacts(world, "step.admitted");
    expect(strict).toMatchObject({
      timeoutMs: 5_000,
      gate: { threshold: 9_000 },
      privilege: expect.anything() as unknown,
    });
    expect(lax).toMatchObject({ timeoutMs: world.settings.stepTimeoutMs });
    expect(lax).not.toMatchObject({ gate: { threshold: 9_000 } });
    expect(lax).not.toHaveProperty("privilege");
  });

  it("keeps its pack for what its children spawn, over a restart, and loses it when the pack goes", async () => {
    const world = openWorld(ONLY_RELEASE);
    const first = world.start();
    const words = { task: "a", source: RELEASE, trace: "one" };
    const admission = await first.admitSpawn(spawnOf(words));
    if (admission.kind === "refused") throw new Error(admission.reason);
    const child = world.host.spawn(spawnOf(words));
    const { coordinationId, stepId } = admission.envelope;
    const claim = { coordinationId, stepId, sourceSession: RELEASE, toolCallId: "a" };
    await first.confirmSpawn(claim, child);
    await first.stop();

    const second = world.start();
    await second.admitSpawn(spawnOf({ task: "below", source: child.childSessionKey, trace: "one" }));
    await second.stop();
    world.policies = undefined;
    const third = world.start();
    await third.admitSpawn(spawnOf({ task: "later", source: child.childSessionKey, trace: "one" }));
    const gates = findFacts(world, "step.admitted").map(
      ({ gate }) => (gate as { threshold: number }).threshold,
    );
    expect(gates.slice(0, 2)).toEqual([9_000, 9_000]);
    expect(gates[2]).toBeLessThan(9_000);
    await third.stop();
  });

  it("that a question opens goes by the pack of the session that asks", async () => {
    const book = createBook([{ session: RELEASE, pack: "quiet" }], {
      quiet: { version: "1.0.0", settings: { escalations: { openMax: 1 }, escalateMs: 60_000 } },
    });
    const coordinator = openWorld(book).start();
    const ask = (askedBy: SessionKey, question: string) =>
      coordinator.ask({ askedBy, agentId: "main", kind: "clarification", question });
    expect(await ask(RELEASE, "first?")).toMatchObject({ kind: "asked" });
    expect(await ask(RELEASE, "second?")).toMatchObject({ kind: "refused" });
    expect(await ask(OWNER, "first?")).toMatchObject({ kind: "asked" });
    expect(await ask(OWNER, "second?")).toMatchObject({ kind: "asked" });
    await coordinator.stop();
  });

  it("of a plan goes by the pack of its owner's session, for its steps and its questions", async () => {
    const world = openWorld(ONLY_RELEASE);
    const coordinator = world.start();
    for (const [coordinationId, ownerSession] of [
      ["plan-a", RELEASE],
      ["plan-b", OWNER],
    ] as const) {
      const plan = {
        coordinationId,
        objective: "release",
        ownerSession,
        conflictPolicy: {},
        failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
        steps: [{ stepId: "only" as StepId, agent: "main", task: "do it" }],
      };
      expect(await coordinator.submitPlan({ plan, ownerAgent: "main" as AgentId })).toMatchObject({
        kind: "accepted",
      });
    }
    const [release, other] = findFacts(world, "coordination.created");
    expect(release).toMatchObject({ policy: { name: "careful" }, questions: { answerMs: 60_000 } });
    expect(other).not.toHaveProperty("policy");
    const [strict, lax] = findFacts(world, "step.admitted");
    expect(strict).toMatchObject({ gate: { threshold: 9_000 }, privilege: expect.anything() as unknown });
    expect(lax).not.toMatchObject({ gate: { threshold: 9_000 } });
    await coordinator.stop();
  });
});

const SILENT: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

describe("a critic of a pack", () => {
  const REVIEW = { kind: "model", rubric: "It is well done.", criteria: ["done"] };
  const createReviewed = (more: object, agentId = "main") => ({
    reviewed: {
      version: "1.0.0",
      settings: {
        gates: { verifiers: { review: REVIEW }, agents: { [agentId]: { checks: ["review"] } }, ...more },
      },
    },
  });

  it.each([
    [{ critic: "judge" }, {}, "agent:judge"],
    [{ critic: "judge" }, { critic: "other" }, "agent:judge"],
    [{ critic: "main", allowSelfVerification: true }, {}, "agent:main"],
    [{ critic: "main" }, { allowSelfVerification: true }, "self_not_allowed"],
  ])(
    "with %j rules on its coordinations, whatever the gateway has (%j)",
    async (ofPack, ofGateway, answer) => {
      const model = createScriptedCritic({ verdict: "pass", criteria: ["done"], confidence: 0.9 });
      const world: World = createWorld({}, createScriptedRunner(scriptOf({ a: [endDone({ n: 1 })] })), {
        gates: createGatesWith([], ofGateway),
        verifier: () => {
          const { clock } = world;
          const createContract = () => Promise.resolve(createAjvOutputContract());
          return Promise.resolve(
            createVerifier({
              clock,
              contract: createContract,
              logger: SILENT,
              model,
              workspaceOf: () => "/",
            }),
          );
        },
      });
      world.policies = createBook([{ agent: "main", pack: "reviewed" }], createReviewed(ofPack));
      const planRun = await submitTo(world, plan([step("a")]));
      await waitUntilQuiet(world);
      const verified = planRun.events("result.verified").map(({ payload }) => payload.agentId);
      const failures = planRun.events("verification.failed").map(({ payload }) => payload.because);
      expect([...verified, ...failures]).toEqual([answer]);
      await planRun.close();
    },
  );
});

describe("a fork under a policy", () => {
  const forkUnder = async (planRun: PlanRun, confidenceThreshold: number): Promise<string> => {
    const policy = parseReplayPolicy({ gates: { confidenceThreshold } });
    const { code, message } = await readRefusal(planRun, { policy });
    return `${code} ${message}`;
  };

  it.each([
    ["careful", 0.8, "demands 0.9 of agent main"],
    ["fast", 0.5, "accepted"],
  ])("asks for no less than the pack of its owner's session, %s", async (pack, threshold, answer) => {
    const world = createWorld({}, createScriptedRunner(scriptOf(BROKEN)));
    world.policies = createBook([{ agent: "main", pack }]);
    const planRun = await submitTo(world, createDiamond());
    expect(await forkUnder(planRun, threshold)).toContain(answer);
    await planRun.close();
  });

  it("asks for no less than the configuration where no pack holds for that session", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf(BROKEN)));
    world.policies = createBook([{ agent: "writer", pack: "fast" }]);
    const planRun = await submitTo(world, createDiamond());
    expect(await forkUnder(planRun, 0.5)).toContain("demands 0.7 of agent main");
    await planRun.close();
  });
});
