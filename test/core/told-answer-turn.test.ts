/**
 * Owns: the turn in which the agent of a planned step goes on with the answer to its question. The host knows that it was told
 * long before it has answered, and the step is not done before that.
 */
import { expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { waitForDuration } from "../../src/agents/coordination/std/wait-for.ts";
import { endDone, endFailing, type ScriptedAttempt } from "../support/scripted-runner.ts";
import { AGENT, plan, PLAN_ID, createRetries, step, submitTo, type Fields } from "./planned-world.ts";
import { createToldWorld, listOutputsOfA } from "./told-turns.ts";

const TURN = "answer:escalation-1";
const TURN_KEY = `${PLAN_ID}:${TURN}:told`;

/** A plan whose step `a` asks people and works on. */
async function runAsking(fields: Fields = {}, turn: ScriptedAttempt = "work", isWaiting = false) {
  const scene = createToldWorld({ a: ["work"], b: ["work"], n: [{ using: { tokens: 7 } }], [TURN]: [turn] });
  const { world, scripted, words } = scene;
  scene.queue.isWaiting = isWaiting;
  const run = await submitTo(world, plan([step("a", fields)]));
  const session = run.ordersOf("a")[0]!.childSessionKey;
  const question = { agentId: "main", kind: "approval", question: "May I delete it?" } as const;
  const outcome = await run.coordinator.ask({ askedBy: session, ...question });
  if (outcome.kind !== "asked") throw new Error("refused");
  const { questionId } = outcome;
  const answer = async (): Promise<void> => {
    const by = { kind: "person", id: "ada" } as const;
    await run.coordinator.answer({ questionId, answer: "approve", by, through: "chat" });
    await run.advance(5_000);
  };
  const endTurn = (newest: string, ending = endDone()): void => {
    words.newest = newest;
    scripted.end(TURN, ending);
  };
  return { ...scene, run, session, questionId, answer, endTurn, listOutputs: () => listOutputsOfA(world) };
}

/** The same, once it has ended its turn and was answered: the host is asked for the turn with the answer. */
async function runAnswering(...settings: Parameters<typeof runAsking>) {
  const scene = await runAsking(...settings);
  scene.scripted.end("a", { ...endDone(), usage: { tokens: 5 } });
  await scene.run.advance(5_000);
  await scene.answer();
  return scene;
}

/** The same, once the turn with the answer has begun. */
async function runAnswered(fields: Fields = {}) {
  const scene = await runAnswering(fields);
  const { run, session } = scene;
  expect(run.ordersOf(TURN).map(({ childSessionKey }) => childSessionKey)).toEqual([session]);
  return scene;
}

const CANCEL_A = { coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" } as const;

it("a step that is told an answer is done with what its agent says then, however long that takes", async () => {
  const { run, endTurn, listOutputs } = await runAnswered({ timeoutMs: 7_200_000 });
  await run.advance(3_600_000);
  expect(listOutputs()).toEqual([]);
  endTurn("It is deleted.");
  await run.advance(5_000);
  expect(listOutputs()).toEqual(['{"text":"It is deleted."}']);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "delivered" } }]);
  await run.close();
});

it("a crash while the agent goes on with the answer tells it no second time, and the step waits for it again", async () => {
  const { run, endTurn, listOutputs, scripted } = await runAnswered();
  await run.restart();
  await run.advance(10_000);
  expect(listOutputs()).toEqual([]);
  expect([...scripted.runs.keys()].filter((key) => key === TURN_KEY)).toHaveLength(1);
  endTurn("It is deleted.");
  await run.advance(5_000);
  expect(listOutputs()).toEqual(['{"text":"It is deleted."}']);
  await run.close();
});

it("an attempt fails as the turn with the answer failed, and is tried again", async () => {
  const { run, endTurn } = await runAnswered(createRetries(1));
  endTurn("Waiting for a person", endFailing("interrupted by a restart"));
  await run.advance(5_000);
  const error = { code: "child_failed", message: "interrupted by a restart" };
  const [failed] = run.events("step.failed");
  expect(failed?.payload).toMatchObject({ stepId: "a", error, usage: { tokens: 5 } });
  expect(run.ordersOf("a").map(({ idempotencyKey }) => idempotencyKey)).toEqual([
    `${PLAN_ID}:a:1`,
    `${PLAN_ID}:a:2`,
  ]);
  await run.close();
});

it("an attempt that fails with the turn counts what the plan of its agent used, also where the process stops meanwhile", async () => {
  const { run, scripted, session, answer, endTurn, reach } = await runAsking();
  const submitted = await run.coordinator.submitPlan({
    plan: plan([step("n")], { coordinationId: "plan-2", ownerSession: session }),
    submittedBy: session,
    ownerAgent: AGENT,
  });
  expect(submitted).toMatchObject({ kind: "accepted" });
  scripted.end("a", { ...endDone(), usage: { tokens: 5 } });
  await run.advance(5_000);
  await answer();
  reach.isSilent = (key) => key === "plan-2:n:1";
  endTurn("Waiting for a person", endFailing("interrupted by a restart"));
  await run.advance(5_000);
  expect(scripted.cancelled).not.toContain("plan-2:n:1");
  await run.restart(() => {
    reach.isSilent = () => false;
  });
  await run.advance(10_000);
  expect(scripted.cancelled).toContain("plan-2:n:1");
  const failed = run.events("step.failed").filter(({ nodeId }) => nodeId === "a");
  expect(failed.map(({ payload }) => payload.usage)).toEqual([{ spawns: 1, tokens: 12, costMicroUsd: 0 }]);
  await run.close();
});

it("an attempt that fails with the turn counts what its agent used, also where the host does not say so at once", async () => {
  const { run, endTurn, scripted, reach } = await runAnswered();
  reach.isUnknown = (key) => key === `${PLAN_ID}:a:1` && scripted.cancelled.some((other) => other === key);
  endTurn("Waiting for a person", endFailing("interrupted by a restart"));
  await run.advance(5_000);
  reach.isUnknown = () => false;
  await run.advance(5_000);
  expect(run.events("step.failed").map(({ payload }) => payload.usage?.tokens)).toEqual([5]);
  await run.close();
});

it.each(["is cancelled", "runs out of time"])(
  "the turn with the answer is stopped where its attempt %s, and holds up nothing",
  async (end) => {
    const { run, scripted } = await runAnswered({ timeoutMs: 60_000 });
    expect(scripted.cancelled).not.toContain(TURN_KEY);
    if (end === "is cancelled") await run.coordinator.cancel(CANCEL_A);
    await run.advance(60_000);
    expect(scripted.cancelled).toContain(TURN_KEY);
    expect(run.events("coordination.terminal")).toHaveLength(1);
    expect(await run.fates()).toMatchObject({ a: end === "is cancelled" ? "cancelled" : "timed_out" });
    await run.close();
  },
);

it("the turn with the answer is stopped before the time-out of its attempt is recorded", async () => {
  const { run, reach } = await runAnswered({ timeoutMs: 60_000 });
  const timeOutsBefore: number[] = [];
  reach.isLost = (key) => {
    if (key === TURN_KEY) timeOutsBefore.push(run.events("step.timed_out").length);
    return false;
  };
  await run.advance(60_000);
  expect(timeOutsBefore[0]).toBe(0);
  await run.close();
});

it("the turn with the answer is told to stop again where it is out of reach when its attempt runs out of time", async () => {
  const { run, reach, scripted } = await runAnswered({ timeoutMs: 60_000 });
  reach.isLost = (key) => key === TURN_KEY && run.events("step.timed_out").length === 0;
  await run.advance(60_000);
  expect(run.appends.find((types) => types.includes("step.timed_out"))).not.toContain("step.child_stopped");
  expect(run.events("step.child_stopped")).toMatchObject([{ payload: { stepId: "a", outcome: "stopped" } }]);
  expect(scripted.cancelled).toContain(TURN_KEY);
  await run.close();
});

it("the turn with the answer is told to stop again where it is out of reach when its step is cancelled", async () => {
  const { run, reach, scripted } = await runAnswered();
  let requests = 0;
  reach.isLost = (key) => key === TURN_KEY && (requests += 1) < 4;
  await run.coordinator.cancel(CANCEL_A);
  await run.advance(20_000);
  expect(scripted.cancelled).toContain(TURN_KEY);
  await run.close();
});

it("a stopped turn with the answer is no cancelled step where the process dies before the time-out is recorded", async () => {
  const { run, scripted, world } = await runAnswered({ timeoutMs: 60_000, ...createRetries(1) });
  await run.restart(() => {
    world.clock.jump(run.ordersOf("a")[0]!.deadlineAtMs);
    void scripted.cancel(run.ordersOf(TURN)[0]!);
  });
  await run.advance(10_000);
  expect(run.events("step.failed")).toEqual([]);
  expect(run.events("step.timed_out")).toMatchObject([{ payload: { stepId: "a", attempt: 1 } }]);
  expect(run.ordersOf("a")).toHaveLength(2);
  await run.close();
});

it("no turn with the answer begins any more at the deadline of its attempt", async () => {
  const { run, world, queue } = await runAnswering({ timeoutMs: 60_000 }, "throw");
  const starts = run.ordersOf(TURN).length;
  queue.isEarlier = true;
  await run.restart(() => world.clock.jump(run.ordersOf("a")[0]!.deadlineAtMs));
  await run.advance(10_000);
  expect(run.ordersOf(TURN)).toHaveLength(starts);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
  await run.close();
});

it("a step whose agent surely has no turn with the answer, and may get one later, is stopped when it is cancelled", async () => {
  const { run, queue } = await runAnswering({}, "throw");
  queue.isEarlier = true;
  await run.coordinator.cancel(CANCEL_A);
  await run.advance(5_000);
  const error = { code: "child_cancelled", message: "cancelled before it was done" };
  expect(run.events("step.failed").map(({ payload }) => payload.error)).toEqual([error]);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
  expect(run.events("coordination.terminal")).toHaveLength(1);
  await run.close();
});

it("no turn with the answer begins any more once its step is being stopped", async () => {
  const scene = await runAnswering({}, "throw");
  const { run, queue, reach } = scene;
  queue.isEarlier = true;
  await run.advance(5_000);
  reach.isSilent = (key) => key === `${PLAN_ID}:a:1`;
  const starts = run.ordersOf(TURN).length;
  await run.coordinator.cancel(CANCEL_A);
  await run.advance(5_000);
  expect(run.ordersOf(TURN)).toHaveLength(starts);
  await run.close();
});

it("the turn with the answer does not begin later where it still waits when its step is cancelled", async () => {
  const { run, scripted } = await runAnswering({}, "work", true);
  await run.coordinator.cancel(CANCEL_A);
  await run.advance(20_000);
  expect(scripted.cancelled).toContain(TURN_KEY);
  await run.close();
});

it("an attempt fails where the host refuses to tell its agent the answer, and is tried again", async () => {
  const { run, listOutputs } = await runAnswering(createRetries(1), { refuse: "no such session" });
  await run.advance(5_000);
  const message = "the agent could not be told the answer to its question: no such session";
  expect(run.events("step.failed").map(({ payload }) => payload.error)).toEqual([
    { code: "child_failed", message },
  ]);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
  expect(listOutputs()).toEqual([]);
  expect(run.ordersOf("a")).toHaveLength(2);
  await run.close();
});

it("an attempt fails where the host surely has no turn with the answer when the time to tell is over", async () => {
  const { run, listOutputs } = await runAnswering({ timeoutMs: 3_600_000 }, "throw");
  await run.advance(590_000);
  expect(run.events("step.failed")).toEqual([]);
  await run.advance(20_000);
  expect(run.events("step.failed")).toMatchObject([{ payload: { error: { code: "child_failed" } } }]);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
  expect(listOutputs()).toEqual([]);
  await run.close();
});

it("an attempt fails where the turn with the answer failed before its agent read it", async () => {
  const { run, endTurn } = await runAnswering({}, "work", true);
  endTurn("Waiting for a person", endFailing("interrupted by a restart"));
  await run.advance(5_000);
  const error = { code: "child_failed", message: "interrupted by a restart" };
  expect(run.events("step.failed")).toMatchObject([{ payload: { error } }]);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
  await run.close();
});

it("an attempt lasts until its deadline where the host does not say whether its agent was told the answer", async () => {
  const { run, queue, scripted, listOutputs } = await runAnswering({ timeoutMs: 3_600_000 }, "work", true);
  queue.isSilent = true;
  await run.advance(3_500_000);
  expect([...listOutputs(), ...run.events("session.told")]).toEqual([]);
  await run.advance(200_000);
  expect(scripted.cancelled).toContain(TURN_KEY);
  expect(await run.fates()).toMatchObject({ a: "timed_out" });
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "unknown" } }]);
  await run.close();
});

it("a step is done with the words after an answer that the host was long silent about", async () => {
  const { run, queue, endTurn, listOutputs } = await runAnswering({ timeoutMs: 3_600_000 }, "work", true);
  queue.isSilent = true;
  await run.advance(1_200_000);
  queue.isSilent = false;
  queue.isWaiting = false;
  endTurn("It is deleted.");
  await run.advance(5_000);
  expect(listOutputs()).toEqual(['{"text":"It is deleted."}']);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "delivered" } }]);
  await run.close();
});

it("a step whose agent asked its parent and people the same is done once it was told the one answer", async () => {
  const { world, scripted, words } = createToldWorld({ a: ["work"], [TURN]: ["work"] });
  const run = await submitTo(world, plan([step("a", { timeoutMs: 60_000 })]));
  const askedBy = run.ordersOf("a")[0]!.childSessionKey;
  const question = { askedBy, agentId: "main", kind: "clarification", question: "Which mill?" } as const;
  await run.coordinator.ask({ ...question, to: "parent" });
  const outcome = await run.coordinator.ask(question);
  if (outcome.kind !== "asked") throw new Error("refused");
  scripted.end("a", endDone());
  await run.advance(5_000);
  await run.coordinator.answer({
    questionId: outcome.questionId,
    answer: "answer",
    text: "The old one.",
    by: { kind: "person", id: "ada" },
    through: "chat",
  });
  await run.advance(5_000);
  words.newest = "It is the old one.";
  scripted.end(TURN, endDone());
  await run.advance(5_000);
  expect(listOutputsOfA(world)).toEqual(['{"text":"It is the old one."}']);
  await run.close();
});

it("an agent at work that cannot be told the answer is not given up before it has ended its turn", async () => {
  const { run, scripted, answer } = await runAsking(createRetries(1), { refuse: "no such session" });
  await answer();
  await run.advance(60_000);
  expect(run.events("step.failed")).toEqual([]);
  scripted.end("a", endDone());
  await run.advance(5_000);
  expect(run.events("step.failed")).toMatchObject([{ payload: { error: { code: "child_failed" } } }]);
  expect(run.ordersOf("a")).toHaveLength(2);
  await run.close();
});

it("an agent at work is not given up where the turn with the answer fails that waits for its own", async () => {
  const { run, scripted, answer, endTurn } = await runAsking({}, "work", true);
  await answer();
  endTurn("Waiting", endFailing("the queue was cleared"));
  await run.advance(60_000);
  expect(run.events("step.failed")).toEqual([]);
  scripted.end("a", endDone());
  await run.advance(5_000);
  expect(run.events("step.failed")).toMatchObject([{ payload: { error: { code: "child_failed" } } }]);
  await run.close();
});

it("an agent at work that cannot be told the answer may ask for it, and its step is done", async () => {
  const scene = await runAsking({}, { refuse: "no such session" });
  const { run, scripted, words, questionId, answer, listOutputs } = scene;
  await answer();
  expect(await run.coordinator.outcome(questionId, 0)).toMatchObject({ resolution: "approved" });
  words.newest = "It is deleted.";
  scripted.end("a", endDone());
  await run.advance(5_000);
  expect(listOutputs()).toEqual(['{"text":"It is deleted."}']);
  await run.close();
});

it("the turn with the answer holds up the end of the plan for two minutes where the host never says that it is stopped", async () => {
  const { run, reach } = await runAnswered();
  reach.isSilent = (key) => key === TURN_KEY;
  await run.coordinator.cancel(CANCEL_A);
  await run.advance(40_000);
  expect(await run.fates()).toMatchObject({ a: "cancelled" });
  await run.advance(120_000);
  expect(run.events("coordination.terminal")).toHaveLength(1);
  await run.close();
});

it("a question that expires at the deadline of its attempt holds up nothing, and no turn with its answer is stopped", async () => {
  const { run, scripted, world, reach } = await runAsking({ timeoutMs: 3_600_000 });
  const cancel = scripted.cancel.bind(scripted);
  reach.isLost = (key) => key === TURN_KEY;
  // The host takes its time, so that the question expires before the time-out is recorded.
  scripted.cancel = async (attempt) => {
    await waitForDuration(world.clock, 2_000, new AbortController().signal);
    return cancel(attempt);
  };
  scripted.end("a", { ...endDone(), usage: { tokens: 5 } });
  await run.advance(3_605_000);
  expect(run.events("step.child_stopped")).toMatchObject([{ payload: { outcome: "already_ended" } }]);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
  expect(run.events("coordination.terminal")).toHaveLength(1);
  expect(scripted.cancelled).not.toContain(TURN_KEY);
  expect(run.ordersOf(TURN)).toEqual([]);
  await run.close();
});

it("a question that expired while no process ran leaves no stray at the deadline of its attempt", async () => {
  const { run, reach, scripted, world } = await runAsking({ timeoutMs: 3_600_000 });
  scripted.end("a", endDone());
  await run.advance(5_000);
  reach.isLost = (key) => key === TURN_KEY;
  await run.restart(() => world.clock.jump(run.ordersOf("a")[0]!.deadlineAtMs));
  await run.advance(20_000);
  expect(run.appends.find((types) => types.includes("step.timed_out"))).toContain("step.child_stopped");
  expect(run.ordersOf(TURN)).toEqual([]);
  await run.close();
});
