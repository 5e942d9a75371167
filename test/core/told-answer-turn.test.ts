/**
 * Owns: the turn in which the agent of a planned step goes on with the answer to its question. The host knows that it was told
 * long before it has answered, and the step is not done before that.
 */
import { expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import { plan, PLAN_ID, createRetries, step, submitTo, type Fields } from "./planned-world.ts";
import { createToldWorld, listOutputsOfA } from "./told-turns.ts";

const TURN = "answer:escalation-1";
const TURN_KEY = `${PLAN_ID}:${TURN}:told`;

/** A plan whose step `a` asked people, ended its turn, and was answered: the turn with the answer has begun. */
async function runAnswered(fields: Fields = {}) {
  const { world, scripted, words } = createToldWorld({ a: ["work"], b: ["work"], [TURN]: ["work"] });
  const run = await submitTo(world, plan([step("a", fields)]));
  const session = run.ordersOf("a")[0]!.childSessionKey;
  const question = { agentId: "main", kind: "approval", question: "May I delete it?" } as const;
  const outcome = await run.coordinator.ask({ askedBy: session, ...question });
  if (outcome.kind !== "asked") throw new Error("refused");
  scripted.end("a", { ...endDone(), usage: { tokens: 5 } });
  await run.advance(5_000);
  await run.coordinator.answer({
    questionId: outcome.questionId,
    answer: "approve",
    by: { kind: "person", id: "ada" },
    through: "chat",
  });
  await run.advance(5_000);
  expect(run.ordersOf(TURN).map(({ childSessionKey }) => childSessionKey)).toEqual([session]);
  const endTurn = (newest: string, ending = endDone()): void => {
    words.newest = newest;
    scripted.end(TURN, ending);
  };
  const listOutputs = () => listOutputsOfA(world);
  return { run, scripted, endTurn, listOutputs };
}

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

it.each(["is cancelled", "runs out of time"])(
  "the turn with the answer is stopped where its attempt %s, and holds up nothing",
  async (end) => {
    const { run, scripted } = await runAnswered({ timeoutMs: 60_000 });
    expect(scripted.cancelled).not.toContain(TURN_KEY);
    if (end === "is cancelled")
      await run.coordinator.cancel({ coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" });
    await run.advance(60_000);
    expect(scripted.cancelled).toContain(TURN_KEY);
    expect(run.events("coordination.terminal")).toHaveLength(1);
    await run.close();
  },
);

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
