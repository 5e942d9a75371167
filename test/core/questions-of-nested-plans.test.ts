/** Questions of plans that subagents submitted: people are asked in the session that they talk to, and an agent at work is not woken. */
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createWorld, OWNER, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, type ScriptedAttempt } from "../support/scripted-runner.ts";
import {
  createEscalationsWith,
  createGatesWith,
  createScriptedChannel,
  listEvents,
  spawnChild,
  waitUntilQuiet,
} from "./gates-world.ts";
import { AGENT, plan, scriptOf, step, type Fields } from "./planned-world.ts";

const ANSWER_MS = 600_000;

async function openNesting(scripts: Readonly<Record<string, readonly ScriptedAttempt[]>> = {}) {
  const { channel, notices } = createScriptedChannel();
  const world = createWorld({}, createScriptedRunner(scriptOf(scripts)), {
    gates: createGatesWith([]),
    escalations: createEscalationsWith({ notify: [{ channel: "chat" }], parentAnswerMs: ANSWER_MS }),
    channelOf: () => channel,
  });
  const coordinator = world.start();
  await coordinator.start();
  return { world, coordinator, notices };
}

async function submitFrom(coordinator: Coordinator, ownerSession: SessionKey, id: string, steps: Fields[]) {
  const submitted = await coordinator.submitPlan({
    plan: plan(steps, { coordinationId: id, ownerSession }),
    submittedBy: ownerSession,
    ownerAgent: AGENT,
  });
  expect(submitted).toMatchObject({ kind: "accepted" });
}

/** Waits until the agent of a step is at work, and returns its session. */
async function findSessionOfStep(world: World, stepId: string): Promise<SessionKey> {
  await waitUntilQuiet(world);
  return world.plans.orders.find(({ envelope }) => envelope.stepId === stepId)!.childSessionKey;
}

describe("the people who are told of a question", () => {
  it("are those of the session that owns the coordination, where nobody spawned it", async () => {
    const { coordinator, world, notices } = await openNesting();
    await submitFrom(coordinator, OWNER, "alone", [step("a", { confidence: 0.2 })]);
    await waitUntilQuiet(world);
    expect(notices).toMatchObject([{ chatSession: OWNER, question: { ownerSession: OWNER } }]);
    await coordinator.stop();
  });

  it("are those of the outermost session, where the plan is one of a subagent, however deep", async () => {
    const { coordinator, world, notices } = await openNesting({ a: ["work"] });
    const { session: child } = await spawnChild(world, coordinator);
    await submitFrom(coordinator, child, "outer", [step("a"), step("b", { confidence: 0.2 })]);
    const agent = await findSessionOfStep(world, "a");
    await submitFrom(coordinator, agent, "inner", [step("c", { confidence: 0.2 })]);
    await waitUntilQuiet(world);
    expect(notices).toMatchObject([
      { chatSession: OWNER, question: { coordinationId: "outer", ownerSession: child } },
      { chatSession: OWNER, question: { coordinationId: "inner", ownerSession: agent } },
    ]);
    await coordinator.stop();
  });
});

describe("a question to the session that submitted a plan", () => {
  const askParent = async (coordinator: Coordinator, askedBy: SessionKey): Promise<void> => {
    const question = { agentId: "main", kind: "clarification", question: "Which of the two mills?" } as const;
    expect(await coordinator.ask({ askedBy, to: "parent", ...question })).toMatchObject({ kind: "asked" });
  };
  const listTold = ({ plans }: World): readonly SessionKey[] =>
    plans.orders
      .filter(({ envelope }) => envelope.stepId.startsWith("question:"))
      .map(({ childSessionKey }) => childSessionKey);

  it("is not told in the middle of its run, where a model spawned it, and told once that has ended", async () => {
    const { coordinator, world } = await openNesting({ n: ["work"] });
    const { session: child } = await spawnChild(world, coordinator);
    await submitFrom(coordinator, child, "nested", [step("n")]);
    await askParent(coordinator, await findSessionOfStep(world, "n"));
    await world.clock.advance(60_000);
    expect(listTold(world)).toEqual([]);
    const listed = await coordinator.listQuestionsTo(child, "nested" as CoordinationId);
    expect(listed).toMatchObject({ questions: [{ questionId: "nested:escalation-1" }] });
    world.host.end(child, { outcome: "completed" });
    await coordinator.endChild(child, { outcome: "completed" });
    await world.clock.advance(1_000);
    expect(listTold(world)).toEqual([child]);
    await coordinator.stop();
  });

  it("goes to people in its time, where the session worked on until then", async () => {
    const { coordinator, world, notices } = await openNesting({ n: ["work"] });
    const { session: child } = await spawnChild(world, coordinator);
    await submitFrom(coordinator, child, "nested", [step("n", { timeoutMs: 2 * ANSWER_MS })]);
    await askParent(coordinator, await findSessionOfStep(world, "n"));
    await world.clock.advance(ANSWER_MS);
    await waitUntilQuiet(world);
    expect(listTold(world)).toEqual([]);
    expect(listEvents(world, "escalation.forwarded")).toHaveLength(1);
    expect(notices).toMatchObject([{ chatSession: OWNER }]);
    await coordinator.stop();
  });

  it("is told at once, where its run is followed by its key", async () => {
    const { coordinator, world } = await openNesting({ a: ["work"], n: ["work"] });
    await submitFrom(coordinator, OWNER, "outer", [step("a")]);
    const agent = await findSessionOfStep(world, "a");
    await submitFrom(coordinator, agent, "inner", [step("n")]);
    await askParent(coordinator, await findSessionOfStep(world, "n"));
    await world.clock.advance(1_000);
    expect(listTold(world)).toEqual([agent]);
    await coordinator.stop();
  });
});
