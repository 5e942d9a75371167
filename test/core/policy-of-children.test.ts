/** Owns: that the policy pack of a coordination holds for whatever its children begin, whichever rule would fit them alone. */
import { describe, expect, it } from "vitest";
import {
  parsePluginConfig,
  parseRuledConfigs,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { PolicyBook } from "../../src/agents/coordination/runtime/environment/policy-rules.ts";
import { createPolicyBook } from "../../src/plugins/policy-book.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { listEvents, spawnChild, type SpawnedChild } from "./gates-world.ts";
import { AGENT, plan, scriptOf, step } from "./planned-world.ts";

const RELEASE = "agent:main:release" as SessionKey;
const PACKS = {
  careful: { version: "1.0.0", settings: { gates: { confidenceThreshold: 0.9 } } },
  fast: { version: "1.0.0", settings: { gates: { confidenceThreshold: 0.1 } } },
};
/** The rule that fits sessions of subagents is laxer than that of the release. */
const RULES = [
  { session: RELEASE, pack: "careful" },
  { session: "agent:*:subagent:*", pack: "fast" },
];

function createBook(): PolicyBook {
  const config = { coordination: { phase1: { policies: { packs: PACKS, rules: RULES } } } };
  return createPolicyBook(parsePluginConfig(config), parseRuledConfigs(config));
}

interface Work {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly child: SpawnedChild;
}

async function startWork(owner: SessionKey): Promise<Work> {
  const world = createWorld({}, createScriptedRunner(scriptOf({ n: ["work"] })));
  world.policies = createBook();
  const coordinator = world.start();
  await coordinator.start();
  return { world, coordinator, child: await spawnChild(world, coordinator, "t", owner) };
}

async function submitNested({ coordinator, child }: Work): Promise<void> {
  const nested = plan([step("n")], { coordinationId: "nested", ownerSession: child.session });
  const submission = { plan: nested, submittedBy: child.session, ownerAgent: AGENT };
  expect(await coordinator.submitPlan(submission)).toMatchObject({ kind: "accepted" });
}

const listPacks = (world: World): (string | undefined)[] =>
  listEvents(world, "coordination.created").map(({ payload }) => payload.policy?.name);

describe("the pack of a coordination", () => {
  it("holds for a plan that a child submits", async () => {
    const work = await startWork(RELEASE);
    await submitNested(work);
    expect(listPacks(work.world)).toEqual(["careful", "careful"]);
    const gates = listEvents(work.world, "step.admitted").map(({ payload }) => payload.gate);
    expect(gates).toMatchObject([{ threshold: 9_000 }, { threshold: 9_000 }]);
    await work.coordinator.stop();
  });

  it("is none for a plan of a child where the coordination has none", async () => {
    const work = await startWork(OWNER);
    await submitNested(work);
    expect(listPacks(work.world)).toEqual([undefined, undefined]);
    await work.coordinator.stop();
  });

  it.each(["spawns", "asks"])("holds also where a child %s when the coordination is over", async (act) => {
    const { world, coordinator, child } = await startWork(RELEASE);
    await child.ends();
    await world.clock.advance(120_000);
    expect(listEvents(world, "coordination.terminal")).toHaveLength(1);
    if (act === "spawns")
      await coordinator.admitSpawn(spawnOf({ task: "late", source: child.session, trace: "late" }));
    else
      await coordinator.ask({
        askedBy: child.session,
        agentId: "main",
        kind: "clarification",
        question: "now?",
      });
    expect(listPacks(world)).toEqual(["careful", "careful"]);
    await coordinator.stop();
  });

  it("is that of the rule for a session that is nobody's child", async () => {
    const { world, coordinator } = await startWork("agent:main:subagent:unknown" as SessionKey);
    expect(listPacks(world)).toEqual(["fast"]);
    await coordinator.stop();
  });
});
