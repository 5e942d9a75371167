import { describe, expect, it } from "vitest";
import {
  type AnswerRequest,
  createQuestionId,
  parseQuestionId,
} from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createEscalationsWith, listEvents, createGatesWith, waitUntilQuiet } from "./gates-world.ts";
import { plan, PLAN_ID, scriptOf, step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

const approve = (questionId: string, rest: Partial<AnswerRequest> = {}): AnswerRequest => ({
  questionId,
  answer: "approve",
  by: { kind: "person", id: "ada" },
  through: "chat",
  ...rest,
});

const QUESTION = `${PLAN_ID}:escalation-1`;

const CONTRACT = {
  type: "object",
  properties: { n: { type: "integer" } },
  required: ["n"],
  additionalProperties: false,
};

/** A plan whose step `a` gave a result of low confidence, and people are asked. */
async function runDoubtedPlan(
  fields: Fields = {},
  world: World = createDoubtingWorld(),
): Promise<{ world: World; run: PlanRun }> {
  const run = await submitTo(world, plan([step("a", fields)]));
  await waitUntilQuiet(world);
  expect(await run.fates()).toMatchObject({ a: "held" });
  return { world: world, run };
}

const createDoubtingWorld = (): World =>
  createWorld(
    {},
    createScriptedRunner(scriptOf({ a: [{ outcome: "completed", reply: '{"n":1,"confidence":0.2}' }] })),
    {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({}),
    },
  );

const outputOf = async ({ world }: { world: World }): Promise<unknown> => {
  const [completed] = listEvents(world, "step.completed").filter(({ payload }) => payload.stepId === "a");
  const sha256 = completed?.payload.output?.sha256;
  const text = sha256 && (await world.ledger.open(world.clock).get(sha256));
  return text === undefined || text === "" ? undefined : (JSON.parse(text) as unknown);
};

describe("naming a question", () => {
  it("is unambiguous though ids of coordinations may hold colons", () => {
    const id = createQuestionId("a:b:c" as never, "escalation-12");
    expect(parseQuestionId(id)).toEqual({ coordinationId: "a:b:c", escalationId: "escalation-12" });
  });

  it.each(["", ":", "a", ":a", "a:", "a::"])("%j names none", (id) => {
    expect(parseQuestionId(id)).toBeUndefined();
  });
});

describe("an answer", () => {
  it("that approves lets the result through, and its end is told", async () => {
    const { world, run } = await runDoubtedPlan();
    expect(await run.coordinator.answer(approve(QUESTION))).toEqual({
      kind: "accepted",
      questionId: QUESTION,
      resolution: "approved",
    });
    await waitUntilQuiet(world);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it.each(["plan-1:escalation-9", "plan-2:escalation-1", "nonsense", "", "plan-1:", ":escalation-1"])(
    "to %j, which is no question, is refused",
    async (questionId) => {
      const { run } = await runDoubtedPlan();
      expect(await run.coordinator.answer(approve(questionId))).toMatchObject({
        kind: "refused",
        code: "NOT_FOUND",
      });
      await run.close();
    },
  );

  it("of two at once counts once, and the other one is told that it came too late", async () => {
    const { world, run } = await runDoubtedPlan();
    const answers = await Promise.all([
      run.coordinator.answer(approve(QUESTION)),
      run.coordinator.answer(approve(QUESTION, { answer: "deny", through: "cli" })),
      run.coordinator.answer(approve(QUESTION, { answer: "answer", text: "{}" })),
    ]);
    expect(answers.filter(({ kind }) => kind === "accepted")).toHaveLength(1);
    const counted = listEvents(world, "escalation.answered").filter(({ payload }) => !payload.refused);
    expect(counted).toHaveLength(1);
    expect(listEvents(world, "escalation.answered")).toHaveLength(3);
    expect(listEvents(world, "escalation.closed")).toHaveLength(1);
    await run.close();
  });

  it("that replaced a result is known again by its text and by who gave it, also by another process", async () => {
    const { world, run } = await runDoubtedPlan();
    const replacement = approve(QUESTION, { answer: "answer", text: '{ "n": 2 }' });
    expect(await run.coordinator.isCountedAnswer(replacement)).toBe(false);
    await run.coordinator.answer(replacement);
    await waitUntilQuiet(world);
    const other = world.start();
    expect(await other.isCountedAnswer(replacement)).toBe(true);
    for (const difference of [
      { text: '{"n":3}' },
      { text: "2" },
      { by: { kind: "person", id: "bob" } },
      { questionId: "plan-1:escalation-9" },
      { questionId: "nonsense" },
    ] as const)
      expect(await other.isCountedAnswer({ ...replacement, ...difference })).toBe(false);
    expect(await other.isCountedAnswer(approve(QUESTION))).toBe(false);
    expect(listEvents(world, "escalation.answered")).toHaveLength(1);
    await other.stop();
    await run.close();
  });

  it("of two processes at once counts once", async () => {
    const { world, run } = await runDoubtedPlan();
    const other = world.start();
    const answers = await Promise.all([
      run.coordinator.answer(approve(QUESTION)),
      other.answer(approve(QUESTION, { answer: "deny", through: "cli" })),
    ]);
    expect(answers.filter(({ kind }) => kind === "accepted")).toHaveLength(1);
    expect(listEvents(world, "escalation.closed")).toHaveLength(1);
    await other.stop();
    await run.coordinator.stop();
  });

  it("that comes after the end of all is refused with how it ended", async () => {
    const { world, run } = await runDoubtedPlan();
    await run.coordinator.answer(approve(QUESTION, { answer: "deny" }));
    await waitUntilQuiet(world);
    const late = await run.coordinator.answer(approve(QUESTION));
    expect(late).toMatchObject({ kind: "refused", code: "QUESTION_CLOSED" });
    expect(late).toMatchObject({ reason: expect.stringContaining("denied") as unknown });
    await run.close();
  });

  it("that comes after the deadline is refused, though nobody had noticed yet", async () => {
    const { world, run } = await runDoubtedPlan();
    world.clock.jump(world.clock.now() + 10 * 24 * 3_600_000);
    expect(await run.coordinator.answer(approve(QUESTION))).toMatchObject({
      kind: "refused",
      code: "QUESTION_CLOSED",
    });
    expect(listEvents(world, "escalation.answered")[0]?.payload).toMatchObject({ refused: "expired" });
    expect(listEvents(world, "step.completed")).toEqual([]);
    await run.coordinator.stop();
  });

  it("with a text replaces the result: JSON as outputs, any other words as text", async () => {
    for (const [text, outputs] of [
      ['{"n": 7}', { n: 7 }],
      ["Seven.", { text: "Seven." }],
      ["[7]", { text: "[7]" }],
      ["7", { text: "7" }],
    ] as const) {
      const doubted = await runDoubtedPlan();
      const answered = await doubted.run.coordinator.answer(approve(QUESTION, { answer: "answer", text }));
      expect(answered).toMatchObject({ kind: "accepted", resolution: "answered" });
      await waitUntilQuiet(doubted.world);
      expect(await outputOf(doubted)).toEqual(outputs);
      await doubted.run.close();
    }
  });

  it("that replaces a result meets the contract of its step, or the question stays open", async () => {
    const world = createWorld(
      {},
      createScriptedRunner(
        scriptOf({ a: [{ outcome: "completed", reply: '```json\n{"n":1}\n```\n{"confidence":0.2}' }] }),
      ),
      { gates: createGatesWith([]) },
    );
    const doubted = await runDoubtedPlan({ outputSchema: CONTRACT }, world);
    const { coordinator } = doubted.run;
    for (const text of ["Seven.", '{"n":"7"}', "{}"])
      expect(await coordinator.answer(approve(QUESTION, { answer: "answer", text }))).toMatchObject({
        kind: "refused",
        code: "ANSWER_REFUSED",
        reason: expect.stringContaining("contract of step a") as unknown,
      });
    expect(await doubted.run.fates()).toMatchObject({ a: "held" });
    await coordinator.answer(approve(QUESTION, { answer: "answer", text: '{"n":7}' }));
    await waitUntilQuiet(world);
    expect(await outputOf(doubted)).toEqual({ n: 7 });
    await doubted.run.close();
  });

  it.each(["", "  \n", "x".repeat(200_001)])("with an empty or endless text is refused", async (text) => {
    const { run } = await runDoubtedPlan();
    const answered = await run.coordinator.answer(approve(QUESTION, { answer: "answer", text }));
    expect(answered).toMatchObject({ kind: "refused", code: "TEXT_TOO_LONG" });
    await run.close();
  });

  it("with a text that is no answer, or an answer without one, is refused and leaves the question open", async () => {
    const { world, run } = await runDoubtedPlan();
    expect(await run.coordinator.answer(approve(QUESTION, { text: "yes" }))).toMatchObject({
      code: "ANSWER_REFUSED",
    });
    expect(await run.coordinator.answer(approve(QUESTION, { answer: "answer" }))).toMatchObject({
      code: "ANSWER_REFUSED",
    });
    expect(listEvents(world, "escalation.answered")).toHaveLength(2);
    expect(await run.fates()).toMatchObject({ a: "held" });
    await run.close();
  });

  it("is there again after a restart, and lets the result through once", async () => {
    const { world, run } = await runDoubtedPlan();
    await run.restart();
    await run.coordinator.answer(approve(QUESTION));
    await run.restart();
    await waitUntilQuiet(world);
    expect(listEvents(world, "step.completed").filter(({ payload }) => payload.stepId === "a")).toHaveLength(
      1,
    );
    expect(run.ordersOf("a")).toHaveLength(1);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });
});
