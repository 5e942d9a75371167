/** Owns: whom the answer to an agent's question reaches: the agent that asked, and nobody whose attempt is over. */
import { expect, it } from "vitest";
import type { SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone, type ScriptedAttempt } from "../support/scripted-runner.ts";
import {
  createEscalationsWith,
  createGatesWith,
  createRuling,
  createScriptedVerifier,
  listEvents,
  spawnChild,
} from "./gates-world.ts";
import { createRetries, plan, PLAN_ID, scriptOf, step, submitTo } from "./planned-world.ts";
import { logOver } from "./run-log-scene.ts";

const GATES = { gates: createGatesWith([]), escalations: createEscalationsWith({}) };
const ADA = { kind: "person", id: "ada" } as const;

/** A plan whose step asks people in its first attempt, and has a second one. */
async function askInFirstAttempt(toldTurn: ScriptedAttempt = endDone()) {
  const scripts = { a: ["work", "work"], z: ["work"], "answer:escalation-1": [toldTurn] } as const;
  const runner = createScriptedRunner(scriptOf(scripts));
  const steps = [step("a", { timeoutMs: 5_000, ...createRetries(1) }), step("z")];
  const run = await submitTo(createWorld({}, runner, GATES), plan(steps));
  const ask = async (attempt: number): Promise<string> => {
    const askedBy = run.ordersOf("a")[attempt - 1]!.childSessionKey;
    const question = { agentId: "main", kind: "approval", question: "May I delete it?" } as const;
    const outcome = await run.coordinator.ask({ askedBy, ...question });
    if (outcome.kind !== "asked") throw new Error("refused");
    return outcome.questionId;
  };
  const answer = (questionId: string, text?: string) => {
    const words = text === undefined ? { answer: "approve" as const } : { answer: "answer" as const, text };
    return run.coordinator.answer({ questionId, ...words, by: ADA, through: "chat" });
  };
  const listTellings = () => runner.orders.filter(({ envelope }) => envelope.stepId.startsWith("answer:"));
  return { runner, run, ask, answer, listTellings, questionId: await ask(1) };
}

it.each(["timed out", "cancelled"])(
  "a question is withdrawn with the attempt that asked it, and an answer that comes later says so: %s",
  async (end) => {
    const { run, runner, answer, listTellings, questionId } = await askInFirstAttempt();
    if (end === "cancelled")
      await run.coordinator.cancel({ coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" });
    await run.advance(8_000);
    expect(runner.cancelled).toContain("plan-1:a:1");
    expect(run.events("escalation.closed").map(({ payload }) => payload)).toEqual([
      { escalationId: "escalation-1", resolution: "cancelled" },
    ]);
    expect(await run.coordinator.outcome(questionId, 0)).toEqual({
      kind: "closed",
      resolution: "cancelled",
      text: "It was withdrawn: nobody will answer.",
    });
    expect(await answer(questionId)).toMatchObject({
      kind: "refused",
      code: "QUESTION_CLOSED",
      reason: "the question was withdrawn: nobody needs an answer any more",
    });
    await run.advance(3_000);
    expect(listTellings()).toEqual([]);
    expect(run.events("session.told")).toEqual([]);
  },
);

it("the question of the next attempt is the only open one, and its agent is told the answer", async () => {
  const { run, ask, answer, listTellings } = await askInFirstAttempt();
  await run.advance(6_500);
  const questionId = await ask(2);
  const view = await run.coordinator.view(PLAN_ID);
  const open = view!.escalations.filter(({ closed }) => !closed);
  expect(open.map(({ escalationId }) => `${PLAN_ID}:${escalationId}`)).toEqual([questionId]);
  expect(await answer(questionId)).toMatchObject({ kind: "accepted", resolution: "approved" });
  await run.advance(2_000);
  expect(listTellings().map(({ childSessionKey }) => childSessionKey)).toEqual([
    run.ordersOf("a")[1]!.childSessionKey,
  ]);
});

it("an agent of a step that asks again just before its turn with the answer is told in that turn alone", async () => {
  const { run, ask, answer, listTellings, questionId } = await askInFirstAttempt();
  await answer(questionId);
  expect(await ask(1)).toBe(questionId);
  expect(await run.coordinator.outcome(questionId, 0)).toEqual({ kind: "open" });
  await run.advance(2_000);
  expect(listTellings()).toHaveLength(1);
  expect(run.events("session.told")).toHaveLength(1);
  expect(run.events("coordination.escalated")).toHaveLength(1);
});

it("an agent of a step that asks again while it is being told the answer asks anew: one approval counts once", async () => {
  const { run, ask, answer, listTellings, questionId } = await askInFirstAttempt("work");
  await answer(questionId);
  await run.advance(2_000);
  expect(listTellings()).toHaveLength(1);
  expect(await ask(1)).not.toBe(questionId);
  expect(await run.coordinator.outcome(questionId, 0)).toEqual({ kind: "open" });
  expect(listTellings()).toHaveLength(1);
  expect(run.events("session.told")).toEqual([]);
});

it("a question that an agent asks after its attempt is over is withdrawn, too", async () => {
  const { run, ask } = await askInFirstAttempt();
  await run.advance(6_500);
  const late = run.coordinator.ask({
    askedBy: run.ordersOf("a")[0]!.childSessionKey,
    agentId: "main",
    kind: "approval",
    question: "Am I still needed?",
  });
  expect(await late).toMatchObject({ questionId: "plan-1:escalation-2" });
  await run.advance(1_000);
  expect(run.events("escalation.closed").map(({ payload }) => payload)).toEqual([
    { escalationId: "escalation-1", resolution: "cancelled" },
    { escalationId: "escalation-2", resolution: "cancelled" },
  ]);
  expect(await ask(2)).toBe("plan-1:escalation-3");
});

it("a question of an agent that has ended its work is withdrawn with the attempt that it was spawned for", async () => {
  const { run } = await askInFirstAttempt();
  const spawned = await spawnChild(run.world, run.coordinator, "t", run.ordersOf("a")[0]!.childSessionKey);
  const question = { agentId: "main", kind: "approval", question: "May I merge it?" } as const;
  expect(await run.coordinator.ask({ askedBy: spawned.session, ...question })).toMatchObject({
    kind: "asked",
  });
  await spawned.ends();
  expect(run.events("escalation.closed")).toEqual([]);
  await run.advance(8_000);
  expect(run.events("escalation.closed").map(({ payload }) => payload)).toEqual([
    { escalationId: "escalation-1", resolution: "cancelled" },
    { escalationId: "escalation-2", resolution: "cancelled" },
  ]);
});

it("no answer wakes an agent whose attempt ends between the answer and its telling", async () => {
  const { run, listTellings } = await askInFirstAttempt();
  const about = { stepId: "a" as StepId, attempt: 1, via: "runner" } as const;
  await run.coordinator.stop();
  await logOver(run.world).submit(PLAN_ID, [
    { type: "answerEscalation", escalationId: "escalation-1", answer: "approve", by: ADA, through: "chat" },
    { type: "failStep", ...about, error: { code: "child_lost", message: "gone" }, cancelled: false },
  ]);
  await run.restart();
  await run.advance(3_000);
  expect(listTellings()).toEqual([]);
  expect(run.events("session.told").map(({ payload }) => payload.delivery)).toEqual(["not_delivered"]);
});

it.each(['{"id": 12345678901234567}', '{"text":"x"}', "[1.0]", '{ "a": 1, "a": 2 }', "Use staging."])(
  "an agent is told what people wrote, as they wrote it: %s",
  async (text) => {
    const { run, answer, listTellings, questionId } = await askInFirstAttempt();
    expect(await answer(questionId, text)).toMatchObject({ kind: "accepted", resolution: "answered" });
    await run.advance(1_000);
    const [message] = listTellings().map((order) => order.message);
    expect(message).toMatch(/A person answered: ".*"$/u);
    expect(JSON.parse(message!.slice(message!.lastIndexOf("answered: ") + 10))).toBe(text);
    expect(await run.coordinator.outcome(questionId, 0)).toMatchObject({
      text: "You were told the answer in this session.",
    });
  },
);

it("the result of an agent that asked and ended its turn at once counts once it has been told", async () => {
  const runner = createScriptedRunner(scriptOf({ a: ["work"] }));
  const run = await submitTo(createWorld({}, runner, GATES), plan([step("a")]));
  const session = run.ordersOf("a")[0]!.childSessionKey;
  const question = { agentId: "main", kind: "approval", question: "May I delete it?" } as const;
  const outcome = await run.coordinator.ask({ askedBy: session, ...question });
  if (outcome.kind !== "asked") throw new Error("refused");
  runner.end("a", endDone());
  await run.advance(10_000);
  expect(run.events("step.completed")).toEqual([]);
  const { questionId } = outcome;
  await run.coordinator.answer({ questionId, answer: "approve", by: ADA, through: "chat" });
  await run.advance(10_000);
  expect(run.events("session.told").map(({ payload }) => payload.delivery)).toEqual(["delivered"]);
  expect(run.events("step.completed")[0]?.payload).toMatchObject({ stepId: "a", attempt: 1 });
});

it("an answer reaches the agent that asked, also where another asked the same words", async () => {
  const world = createWorld(
    {},
    createScriptedRunner(() => endDone()),
    GATES,
  );
  const coordinator = world.start();
  await coordinator.start();
  const one = await spawnChild(world, coordinator, "one");
  const two = await spawnChild(world, coordinator, "two");
  const ask = async (askedBy: SessionKey): Promise<string> => {
    const outcome = await coordinator.ask({
      askedBy,
      agentId: "main",
      kind: "approval",
      question: "May I go on?",
    });
    if (outcome.kind !== "asked") throw new Error("refused");
    return outcome.questionId;
  };
  const first = await ask(one.session);
  const second = await ask(two.session);
  expect(await ask(one.session)).toBe(first);
  const waiting = coordinator.outcome(first, 10_000);
  await coordinator.answer({ questionId: second, answer: "approve", by: ADA, through: "chat" });
  await world.clock.advance(20_000);
  expect(await waiting).toEqual({ kind: "open" });
  await coordinator.stop();
});

/** A spawn of a model whose result is revised once: its second attempt works until the test ends it. */
async function startRevisedSpawn(beforeEnd?: (ask: () => Promise<string>) => Promise<void>) {
  const { verifier } = createScriptedVerifier((_, time) => createRuling(time === 1 ? "revise" : "pass"));
  const runner = createScriptedRunner(({ envelope }) => (envelope.stepId === "step-1" ? "work" : endDone()));
  const world = createWorld({}, runner, { ...GATES, gates: createGatesWith(["lint"]), verifier });
  const coordinator = world.start();
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  const ask = async (): Promise<string> => {
    const outcome = await coordinator.ask({
      askedBy: child.session,
      agentId: "main",
      kind: "approval",
      question: "May I delete it?",
    });
    if (outcome.kind !== "asked") throw new Error("refused");
    return outcome.questionId;
  };
  await child.says("first");
  await beforeEnd?.(ask);
  // A question that is asked in the very millisecond in which the next attempt begins could be of either.
  await world.clock.advance(1);
  await child.ends();
  await world.clock.advance(5_000);
  expect(runner.orders.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["co-1:step-1:2"]);
  return { world, coordinator, runner, child, ask };
}

it("an answer reaches a spawned agent that asked while it revised its result, and its work counts", async () => {
  const { world, coordinator, runner, child, ask } = await startRevisedSpawn();
  const questionId = await ask();
  await child.says("I wait for an answer.");
  runner.end("step-1", endDone({ turn: 2 }));
  await world.clock.advance(10_000);
  expect(listEvents(world, "step.completed")).toEqual([]);
  await coordinator.answer({ questionId, answer: "approve", by: ADA, through: "chat" });
  await world.clock.advance(10_000);
  const tellings = runner.orders.filter(({ envelope }) => envelope.stepId.startsWith("answer:"));
  expect(tellings.map(({ childSessionKey }) => childSessionKey)).toEqual([child.session]);
  expect(listEvents(world, "session.told")[0]?.payload.delivery).toBe("delivered");
  expect(listEvents(world, "step.completed")).toMatchObject([{ payload: { attempt: 2 } }]);
  await coordinator.stop();
});

it.each(["while it revises", "never"])(
  "a question of the attempt before holds up no revised result: it is answered %s",
  async (when) => {
    let questionId = "";
    const { world, coordinator, runner } = await startRevisedSpawn(async (ask) => {
      questionId = await ask();
    });
    if (when !== "never")
      await coordinator.answer({ questionId, answer: "approve", by: ADA, through: "chat" });
    await world.clock.advance(5_000);
    runner.end("step-1", endDone({ turn: 2 }));
    await world.clock.advance(10_000);
    expect(listEvents(world, "step.completed")).toMatchObject([{ payload: { attempt: 2 } }]);
    await coordinator.stop();
  },
);
