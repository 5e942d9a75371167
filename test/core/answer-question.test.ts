import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  AnswerRequest,
  AskRequest,
} from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import {
  questionIdOf,
  questionNamed,
} from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { settled } from "../support/fake-clock.ts";
import { OWNER, world, type World } from "../support/fake-clock-host.ts";
import { done, scriptedRunner } from "../support/scripted-runner.ts";
import { escalationsWith, eventsIn, gatesWith, quiet, spawnChild, type SpawnedChild } from "./gates-world.ts";
import { plan, PLAN_ID, scriptOf, step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

const approve = (questionId: string, rest: Partial<AnswerRequest> = {}): AnswerRequest => ({
  questionId,
  ...{ answer: "approve", by: { kind: "person", id: "ada" }, through: "chat" },
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
async function doubted(
  fields: Fields = {},
  it: World = doubtingWorld(),
): Promise<{ it: World; run: PlanRun }> {
  const run = await submitTo(it, plan([step("a", fields)]));
  await quiet(it);
  expect(await run.fates()).toMatchObject({ a: "held" });
  return { it, run };
}

const doubtingWorld = (): World =>
  world({}, scriptedRunner(scriptOf({ a: [{ outcome: "completed", reply: '{"n":1,"confidence":0.2}' }] })), {
    gates: gatesWith([]),
    escalations: escalationsWith({}),
  });

const outputOf = async ({ it }: { it: World }): Promise<unknown> => {
  const [completed] = eventsIn(it, "step.completed").filter(({ payload }) => payload.stepId === "a");
  const sha256 = completed?.payload.output?.sha256;
  const text = sha256 && (await it.ledger.open(it.clock).get(sha256));
  return text === undefined || text === "" ? undefined : (JSON.parse(text) as unknown);
};

describe("naming a question", () => {
  it("is unambiguous though ids of coordinations may hold colons", () => {
    const id = questionIdOf("a:b:c" as never, "escalation-12");
    expect(questionNamed(id)).toEqual({ coordinationId: "a:b:c", escalationId: "escalation-12" });
  });

  it.each(["", ":", "a", ":a", "a:", "a::"])("%j names none", (id) => {
    expect(questionNamed(id)).toBeUndefined();
  });
});

describe("an answer", () => {
  it("that approves lets the result through, and its end is told", async () => {
    const { it, run } = await doubted();
    expect(await run.coordinator.answer(approve(QUESTION))).toEqual({
      ...{ kind: "accepted", questionId: QUESTION, resolution: "approved" },
    });
    await quiet(it);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });

  it.each(["plan-1:escalation-9", "plan-2:escalation-1", "nonsense", "", "plan-1:", ":escalation-1"])(
    "to %j, which is no question, is refused",
    async (questionId) => {
      const { run } = await doubted();
      expect(await run.coordinator.answer(approve(questionId))).toMatchObject({
        kind: "refused",
        code: "NOT_FOUND",
      });
      await run.close();
    },
  );

  it("of two at once counts once, and the other one is told that it came too late", async () => {
    const { it, run } = await doubted();
    const answers = await Promise.all([
      run.coordinator.answer(approve(QUESTION)),
      run.coordinator.answer(approve(QUESTION, { answer: "deny", through: "cli" })),
      run.coordinator.answer(approve(QUESTION, { answer: "answer", text: "{}" })),
    ]);
    expect(answers.filter(({ kind }) => kind === "accepted")).toHaveLength(1);
    const counted = eventsIn(it, "escalation.answered").filter(({ payload }) => !payload.refused);
    expect(counted).toHaveLength(1);
    expect(eventsIn(it, "escalation.answered")).toHaveLength(3);
    expect(eventsIn(it, "escalation.closed")).toHaveLength(1);
    await run.close();
  });

  it("of two processes at once counts once", async () => {
    const { it, run } = await doubted();
    const other = it.start();
    const answers = await Promise.all([
      run.coordinator.answer(approve(QUESTION)),
      other.answer(approve(QUESTION, { answer: "deny", through: "cli" })),
    ]);
    expect(answers.filter(({ kind }) => kind === "accepted")).toHaveLength(1);
    expect(eventsIn(it, "escalation.closed")).toHaveLength(1);
    await other.stop();
    await run.coordinator.stop();
  });

  it("that comes after the end of all is refused with how it ended", async () => {
    const { it, run } = await doubted();
    await run.coordinator.answer(approve(QUESTION, { answer: "deny" }));
    await quiet(it);
    const late = await run.coordinator.answer(approve(QUESTION));
    expect(late).toMatchObject({ kind: "refused", code: "QUESTION_CLOSED" });
    expect(late).toMatchObject({ reason: expect.stringContaining("denied") as unknown });
    await run.close();
  });

  it("that comes after the deadline is refused, though nobody had noticed yet", async () => {
    const { it, run } = await doubted();
    it.clock.jump(it.clock.now() + 10 * 24 * 3_600_000);
    expect(await run.coordinator.answer(approve(QUESTION))).toMatchObject({
      kind: "refused",
      code: "QUESTION_CLOSED",
    });
    expect(eventsIn(it, "escalation.answered")[0]?.payload).toMatchObject({ refused: "expired" });
    expect(eventsIn(it, "step.completed")).toEqual([]);
    await run.coordinator.stop();
  });

  it("with a text replaces the result: JSON as outputs, any other words as text", async () => {
    for (const [text, outputs] of [
      ['{"n": 7}', { n: 7 }],
      ["Seven.", { text: "Seven." }],
      ["[7]", { text: "[7]" }],
      ["7", { text: "7" }],
    ] as const) {
      const given = await doubted();
      const answered = await given.run.coordinator.answer(approve(QUESTION, { answer: "answer", text }));
      expect(answered).toMatchObject({ kind: "accepted", resolution: "answered" });
      await quiet(given.it);
      expect(await outputOf(given)).toEqual(outputs);
      await given.run.close();
    }
  });

  it("that replaces a result meets the contract of its step, or the question stays open", async () => {
    const it = world(
      {},
      scriptedRunner(
        scriptOf({ a: [{ outcome: "completed", reply: '```json\n{"n":1}\n```\n{"confidence":0.2}' }] }),
      ),
      { gates: gatesWith([]) },
    );
    const given = await doubted({ outputSchema: CONTRACT }, it);
    const { coordinator } = given.run;
    for (const text of ["Seven.", '{"n":"7"}', "{}"])
      expect(await coordinator.answer(approve(QUESTION, { answer: "answer", text }))).toMatchObject({
        ...{ kind: "refused", code: "ANSWER_REFUSED" },
        reason: expect.stringContaining("contract of step a") as unknown,
      });
    expect(await given.run.fates()).toMatchObject({ a: "held" });
    await coordinator.answer(approve(QUESTION, { answer: "answer", text: '{"n":7}' }));
    await quiet(it);
    expect(await outputOf(given)).toEqual({ n: 7 });
    await given.run.close();
  });

  it.each(["", "  \n", "x".repeat(200_001)])("with an empty or endless text is refused", async (text) => {
    const { run } = await doubted();
    const answered = await run.coordinator.answer(approve(QUESTION, { answer: "answer", text }));
    expect(answered).toMatchObject({ kind: "refused", code: "TEXT_TOO_LONG" });
    await run.close();
  });

  it("with a text that is no answer, or an answer without one, is refused and leaves the question open", async () => {
    const { it, run } = await doubted();
    expect(await run.coordinator.answer(approve(QUESTION, { text: "yes" }))).toMatchObject({
      code: "ANSWER_REFUSED",
    });
    expect(await run.coordinator.answer(approve(QUESTION, { answer: "answer" }))).toMatchObject({
      code: "ANSWER_REFUSED",
    });
    expect(eventsIn(it, "escalation.answered")).toHaveLength(2);
    expect(await run.fates()).toMatchObject({ a: "held" });
    await run.close();
  });

  it("is there again after a restart, and lets the result through once", async () => {
    const { it, run } = await doubted();
    await run.restart();
    await run.coordinator.answer(approve(QUESTION));
    await run.restart();
    await quiet(it);
    expect(eventsIn(it, "step.completed").filter(({ payload }) => payload.stepId === "a")).toHaveLength(1);
    expect(run.ordersOf("a")).toHaveLength(1);
    expect((await run.view()).status).toBe("success");
    await run.close();
  });
});

interface Asking {
  readonly it: World;
  readonly coordinator: Coordinator;
  readonly child: SpawnedChild;
  readonly ask: (rest?: Partial<AskRequest>) => ReturnType<Coordinator["ask"]>;
  /** The id of a new question. */
  readonly asked: (rest?: Partial<AskRequest>) => Promise<string>;
}

async function asking(escalations: object = {}): Promise<Asking> {
  const it = world(
    {},
    scriptedRunner(() => done()),
    { gates: gatesWith([]), escalations: escalationsWith(escalations) },
  );
  const coordinator = it.start();
  await coordinator.start();
  const child = await spawnChild(it, coordinator);
  const ask: Asking["ask"] = (rest = {}) =>
    coordinator.ask({
      ...{ askedBy: child.session, agentId: "main", kind: "clarification", question: "Which one?" },
      ...rest,
    });
  return {
    ...{ it, coordinator, child, ask },
    asked: async (rest) => {
      const asked = await ask(rest);
      if (asked.kind === "refused") throw new Error(asked.reason);
      return asked.questionId;
    },
  };
}

describe("a question of an agent", () => {
  it("belongs to the step that its session works on, and its words lie beside the log", async () => {
    const { it, asked, coordinator } = await asking();
    const id = await asked({ options: ["a", "b"], otherwise: "a" });
    expect(id).toBe("co-1:escalation-1");
    const [escalated] = eventsIn(it, "coordination.escalated");
    expect(escalated?.payload).toMatchObject({ cause: "agent", stepId: "step-1", onExpiry: "default" });
    expect(JSON.stringify(it.ledger.events())).not.toContain("Which one");
    const text = await it.ledger.open(it.clock).get(escalated?.payload.question?.sha256 ?? "");
    expect(JSON.parse(text ?? "")).toEqual({ question: "Which one?", options: ["a", "b"], otherwise: "a" });
    await coordinator.stop();
  });

  it("asked twice is one question with one id", async () => {
    const { it, asked, coordinator } = await asking();
    const [one, two] = await Promise.all([asked(), asked()]);
    expect(two).toBe(one);
    expect(await asked()).toBe(one);
    expect(eventsIn(it, "coordination.escalated")).toHaveLength(1);
    await coordinator.stop();
  });

  it("of a session that coordinates nothing opens a coordination of its own, which ends with it", async () => {
    const { it, coordinator } = await asking();
    const lonely = "agent:main:other" as SessionKey;
    const asked = await coordinator.ask({
      ...{ askedBy: lonely, agentId: "main", kind: "approval", question: "May I?", traceId: "trace-9" },
    });
    expect(asked).toMatchObject({ kind: "asked", questionId: "co-2:escalation-1" });
    await coordinator.answer(approve("co-2:escalation-1"));
    await it.clock.advance(20_000);
    const ended = eventsIn(it, "coordination.terminal").filter(({ runId }) => runId === "co-2");
    expect(ended).toHaveLength(1);
    expect(it.plans.orders.map(({ childSessionKey }) => childSessionKey)).toContain(lonely);
    await coordinator.stop();
  });

  it("is refused in words where too many are open", async () => {
    const { ask, coordinator } = await asking({ openMax: 1 });
    await ask();
    expect(await ask({ question: "And which other one?" })).toMatchObject({
      kind: "refused",
      code: "TOO_MANY_QUESTIONS",
    });
    await coordinator.stop();
  });

  it("that a tool call waits for is told there, and not once more as a turn", async () => {
    const { it, asked, coordinator } = await asking();
    const id = await asked();
    const outcome = coordinator.outcome(id, 60_000);
    await settled();
    await coordinator.answer(approve(id, { answer: "answer", text: "the second" }));
    await quiet(it);
    expect(await outcome).toEqual({
      ...{ kind: "closed", resolution: "answered", text: 'A person answered: "the second"' },
    });
    await it.clock.advance(60_000);
    expect(it.plans.orders).toEqual([]);
    expect(eventsIn(it, "session.told").map(({ payload }) => payload.delivery)).toEqual(["delivered"]);
    await coordinator.stop();
  });

  it("that is still open when the tool call has to return is told later as a turn, once", async () => {
    const { it, asked, child, coordinator } = await asking();
    const id = await asked();
    const outcome = coordinator.outcome(id, 5_000);
    await it.clock.advance(5_000);
    expect(await outcome).toEqual({ kind: "open" });
    await coordinator.answer(approve(id, { answer: "deny" }));
    await child.ends();
    await it.clock.advance(5_000);
    expect(it.plans.orders.map(({ childSessionKey }) => childSessionKey)).toEqual([child.session]);
    expect(it.plans.orders[0]?.message).toContain("denied");
    expect(eventsIn(it, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });

  it("is not lost with a tool call that was aborted: the answer comes as a turn", async () => {
    const { it, asked, coordinator, child } = await asking();
    const id = await asked();
    const stop = new AbortController();
    const outcome = coordinator.outcome(id, 60_000, stop.signal);
    await settled();
    const answered = coordinator.answer(approve(id, { answer: "deny" }));
    // The caller is gone before it hears of it.
    stop.abort();
    await Promise.all([outcome, answered]);
    await child.ends();
    await it.clock.advance(70_000);
    expect(it.plans.orders).toHaveLength(1);
    await coordinator.stop();
  });

  it("that another process closed is not lost either with a tool call that was aborted", async () => {
    const { it, asked, coordinator, child } = await asking();
    const id = await asked();
    const stop = new AbortController();
    const outcome = coordinator.outcome(id, 60_000, stop.signal);
    await settled();
    const other = it.start();
    await other.answer(approve(id, { answer: "deny" }));
    stop.abort();
    await outcome;
    // A child is told when its own work is over.
    await child.ends();
    await it.clock.advance(130_000);
    // Both processes may tell it: under one key, which is one turn.
    expect(new Set(it.plans.orders.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    await other.stop();
    await coordinator.stop();
  });

  it("of two tool calls that wait is told to both", async () => {
    const { it, asked, coordinator } = await asking();
    const id = await asked();
    const outcomes = [coordinator.outcome(id, 60_000), coordinator.outcome(id, 60_000)];
    await settled();
    await coordinator.answer(approve(id, { answer: "deny" }));
    await quiet(it);
    for (const outcome of await Promise.all(outcomes))
      expect(outcome).toMatchObject({ resolution: "denied" });
    await it.clock.advance(60_000);
    expect(it.plans.orders).toEqual([]);
    await coordinator.stop();
  });

  it("that nobody answers in time counts as what it named, and is told", async () => {
    const { it, asked, coordinator } = await asking();
    const id = await asked({ otherwise: "the first", answerMs: 10_000 });
    const outcome = coordinator.outcome(id, 60_000);
    await it.clock.advance(12_000);
    expect(await outcome).toMatchObject({
      resolution: "expired",
      text: expect.stringContaining('"the first"') as unknown,
    });
    await coordinator.stop();
  });

  it("that is waited for under no such name is open, and nothing comes of it", async () => {
    const { it, coordinator } = await asking();
    const outcome = coordinator.outcome("co-1:escalation-7", 1_000);
    await it.clock.advance(2_000);
    expect(await outcome).toEqual({ kind: "open" });
    expect(await coordinator.outcome("nonsense", 1_000)).toEqual({ kind: "open" });
    await coordinator.stop();
  });

  it("may not be answered by its own session where another approver is demanded", async () => {
    const { asked, child, coordinator } = await asking({ requireDifferentApprover: true });
    const id = await asked({ kind: "approval" });
    const own = approve(id, { by: { kind: "person", id: "ada", session: child.session } });
    expect(await coordinator.answer(own)).toMatchObject({ kind: "refused", code: "ANSWER_REFUSED" });
    const other = approve(id, { by: { kind: "person", id: "ada", session: OWNER } });
    expect(await coordinator.answer(other)).toMatchObject({ kind: "accepted" });
    await coordinator.stop();
  });
});
