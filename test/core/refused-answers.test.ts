import { describe, expect, it } from "vitest";
import type { AnswerRequest } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createEscalationsWith, listEvents, createGatesWith, waitUntilQuiet } from "./gates-world.ts";
import { plan, PLAN_ID, scriptOf, step, submitTo, type PlanRun } from "./planned-world.ts";

const QUESTION = `${PLAN_ID}:escalation-1`;
const SECRET = "the secret words of eve";
const EVE = { by: { kind: "person", id: "telegram:eve" }, through: "chat" } as const;
const CONTRACT = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

/** A plan whose step `a` gave a result of low confidence, and people are asked. */
async function runDoubtedPlan(): Promise<{ readonly world: World; readonly run: PlanRun }> {
  const doubting = scriptOf({ a: [{ outcome: "completed", reply: '{"n":1,"confidence":0.2}' }] });
  const gateSettings = { gates: createGatesWith([]), escalations: createEscalationsWith({}) };
  const world = createWorld({}, createScriptedRunner(doubting), gateSettings);
  const run = await submitTo(world, plan([step("a", { outputSchema: CONTRACT })]));
  await waitUntilQuiet(world);
  return { world: world, run };
}

const createAnswerOfEve = (rest: Partial<AnswerRequest> = {}): AnswerRequest => ({
  questionId: QUESTION,
  answer: "approve",
  ...EVE,
  ...rest,
});

/** The lines about answers, of which none has the words of one. */
function listRefusals({ logged }: World): unknown[] {
  const about = logged.filter(({ message }) => message.includes("an answer did not count"));
  expect(JSON.stringify(logged)).not.toContain(SECRET);
  return about.map(({ level, fields }) => ({ level, ...fields }));
}

const LINE = {
  level: "warn",
  question: QUESTION,
  by: "person",
  id: "telegram:eve",
  through: "chat",
};

describe("an answer that does not count is in the gateway's log", () => {
  it("after the end of its coordination, where nothing more can be recorded, and says so to whoever gave it", async () => {
    const { world, run } = await runDoubtedPlan();
    await run.coordinator.answer(
      createAnswerOfEve({ answer: "deny", by: { kind: "operator" }, through: "cli" }),
    );
    await waitUntilQuiet(world);
    await waitUntilQuiet(world);
    expect((await run.view()).status).not.toBe("running");
    const recorded = listEvents(world, "escalation.answered").length;
    const late = await run.coordinator.answer(createAnswerOfEve({ answer: "answer", text: SECRET }));
    expect(late).toEqual({
      kind: "refused",
      code: "QUESTION_CLOSED",
      reason:
        "the question is closed already: denied; its coordination has ended as failed, so that this answer changes nothing",
      resolution: "denied",
    });
    expect(listEvents(world, "escalation.answered")).toHaveLength(recorded);
    expect(listRefusals(world)).toEqual([{ ...LINE, answer: "answer", refusal: "QUESTION_CLOSED" }]);
    await run.close();
  });

  it("after the end where nobody had answered in time", async () => {
    const { world, run } = await runDoubtedPlan();
    world.clock.jump(world.clock.now() + 10 * 24 * 3_600_000);
    await waitUntilQuiet(world);
    await waitUntilQuiet(world);
    expect((await run.view()).status).not.toBe("running");
    const late = await run.coordinator.answer(createAnswerOfEve());
    expect(late).toMatchObject({
      reason: expect.stringContaining("closed already: expired") as string,
      resolution: "expired",
    });
    expect(listRefusals(world)).toEqual([{ ...LINE, answer: "approve", refusal: "QUESTION_CLOSED" }]);
    await run.close();
  });

  it("while its coordination goes on, and whoever gave it is told how the question was closed", async () => {
    const { world, run } = await runDoubtedPlan();
    const answers = ["approve", "deny"].map((answer) =>
      run.coordinator.answer(createAnswerOfEve({ answer } as Partial<AnswerRequest>)),
    );
    expect(await Promise.all(answers)).toMatchObject([
      { kind: "accepted", resolution: "approved" },
      { kind: "refused", code: "QUESTION_CLOSED", resolution: "approved" },
    ]);
    expect(listRefusals(world)).toEqual([{ ...LINE, answer: "deny", refusal: "QUESTION_CLOSED" }]);
    await run.close();
  });

  it.each([
    [
      "breaks the contract of its step",
      { answer: "answer", text: JSON.stringify({ n: SECRET }) },
      "ANSWER_REFUSED",
    ],
    ["is too long", { answer: "answer", text: SECRET.repeat(20_000) }, "TEXT_TOO_LONG"],
    ["is no answer to this question", { answer: "approve", text: SECRET }, "ANSWER_REFUSED"],
    ["names no question", { questionId: "plan-9:escalation-1" }, "NOT_FOUND"],
  ] as const)("where it %s, without its contents", async (_, rest, refusal) => {
    const { world, run } = await runDoubtedPlan();
    expect(await run.coordinator.answer(createAnswerOfEve(rest))).toMatchObject({
      kind: "refused",
      code: refusal,
    });
    const { questionId: question = QUESTION, answer = "approve" } = rest as Partial<AnswerRequest>;
    expect(listRefusals(world)).toEqual([{ ...LINE, question, answer, refusal }]);
    expect((await run.fates())["a"]).toBe("held");
    await run.coordinator.stop();
  });

  it("however long what it names is, in a short line", async () => {
    const { world, run } = await runDoubtedPlan();
    const long = "x".repeat(100_000);
    await run.coordinator.answer(
      createAnswerOfEve({ questionId: `${long}:1`, by: { kind: "person", id: long } }),
    );
    expect(JSON.stringify(listRefusals(world)).length).toBeLessThan(2_000);
    await run.coordinator.stop();
  });

  it("and one that counts is not", async () => {
    const { world, run } = await runDoubtedPlan();
    await run.coordinator.answer(createAnswerOfEve());
    expect(listRefusals(world)).toEqual([]);
    await run.close();
  });
});
