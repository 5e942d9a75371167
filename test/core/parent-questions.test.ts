/** Owns: what a child asks its parent in place of people: who is told, who may answer, and what counts when nobody does. */
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { AskRequest } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { OWNER, createWorld } from "../support/fake-clock-host.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import {
  createEscalationsWith,
  createGatesWith,
  createScriptedChannel,
  listEvents,
  spawnChild,
  waitUntilQuiet,
} from "./gates-world.ts";

const RUN_ID = "co-1" as CoordinationId;
const QUESTION_ID = `${RUN_ID}:escalation-1`;
const ANSWER_MS = 600_000;
const STRANGER = "agent:main:stranger" as SessionKey;

async function openStage(
  ask: Partial<AskRequest> = {},
  checks: readonly string[] = [],
  reminders: readonly object[] = [],
) {
  const { channel, notices } = createScriptedChannel();
  const world = createWorld(
    {},
    createScriptedRunner(() => endDone()),
    {
      gates: createGatesWith(checks),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }, ...reminders] }),
      channelOf: () => channel,
    },
  );
  const coordinator = world.start();
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  const answerToAsking = await coordinator.ask({
    askedBy: child.session,
    to: "parent",
    agentId: "main",
    kind: "clarification",
    question: "Which of the two mills?",
    ...ask,
  });
  await waitUntilQuiet(world);
  const listTellings = () =>
    world.plans.orders.map(({ childSessionKey, message }) => ({ childSessionKey, message }));
  return {
    world,
    coordinator,
    child,
    answerToAsking,
    notices,
    listTellings,
    content: world.ledger.open(world.clock),
  };
}

const createAgain = (askedBy: SessionKey) =>
  ({ askedBy, agentId: "main", kind: "clarification", question: "Which of the two mills?" }) as const;

const answerOf = (text: string, session: SessionKey = OWNER) => ({ questionId: QUESTION_ID, session, text });

describe("a question to the parent", () => {
  it("is told to its session, and to no person", async () => {
    const { coordinator, listTellings, notices, world } = await openStage();
    expect(listTellings()).toHaveLength(1);
    const [telling] = listTellings();
    expect(telling?.childSessionKey).toBe(OWNER);
    expect(telling?.message).toContain("Which of the two mills?");
    expect(telling?.message).toContain(`coordination_answer and the questionId "${QUESTION_ID}"`);
    expect(notices).toEqual([]);
    expect(listEvents(world, "interrupt.requested")).toEqual([]);
    await coordinator.stop();
  });

  it("is answered by that session, once, and the child is told who answered", async () => {
    const { coordinator, world, content } = await openStage();
    expect(await coordinator.answerChild(answerOf("The old one."))).toMatchObject({
      kind: "accepted",
      resolution: "answered",
    });
    const outcome = await coordinator.outcome(QUESTION_ID, 0);
    expect(outcome).toMatchObject({ kind: "closed", resolution: "answered" });
    expect(JSON.stringify(outcome)).toContain("Your parent (an agent, not a person) answered");
    expect(await coordinator.answerChild(answerOf("The new one."))).toMatchObject({ kind: "refused" });
    const [answered] = listEvents(world, "escalation.answered");
    expect(answered?.payload).toMatchObject({ by: { kind: "agent", session: OWNER }, through: "session" });
    expect(listEvents(world, "escalation.closed")[0]?.payload).not.toHaveProperty("by");
    expect(await verifyLedger(content)).toMatchObject({ ok: true, problems: [] });
    await coordinator.stop();
  });

  it("goes to people where its session asks them the same, and is over with their answer", async () => {
    const { coordinator, child, notices, world, content } = await openStage();
    const again = createAgain(child.session);
    for (const to of [{ to: "parent" }, {}, { to: "parent" }] as const)
      expect(await coordinator.ask({ ...again, ...to })).toMatchObject({ questionId: QUESTION_ID });
    await waitUntilQuiet(world);
    expect(notices.map(({ question: { kind, text } }) => ({ kind, text }))).toEqual([
      { kind: "clarification", text: again.question },
    ]);
    const by = { kind: "person", id: "ada" } as const;
    const answer = { questionId: QUESTION_ID, answer: "answer", text: "The old one." } as const;
    expect(await coordinator.answer({ ...answer, by, through: "chat" })).toMatchObject({ kind: "accepted" });
    await world.clock.advance(ANSWER_MS);
    expect(listEvents(world, "coordination.escalated")).toHaveLength(1);
    expect(listEvents(world, "escalation.forwarded")).toHaveLength(1);
    expect((await replayCoordination(content, RUN_ID)).difference).toBeUndefined();
    await coordinator.stop();
  });

  it("is over where its session asks people for an approval in the same words", async () => {
    const { coordinator, child, notices, world, content } = await openStage();
    const approval = { ...createAgain(child.session), kind: "approval" } as const;
    expect(await coordinator.ask(approval)).toMatchObject({ questionId: `${RUN_ID}:escalation-2` });
    await world.clock.advance(ANSWER_MS);
    expect(notices.map(({ question: { kind } }) => kind)).toEqual(["approval"]);
    expect(await coordinator.listQuestionsTo(OWNER, RUN_ID)).toEqual({ questions: [], leftOut: 0 });
    expect((await replayCoordination(content, RUN_ID)).difference).toBeUndefined();
    await coordinator.stop();
  });

  it("is refused to every other session in one sentence, as if there were none", async () => {
    const { coordinator, child, world } = await openStage();
    for (const session of [STRANGER, child.session])
      expect(await coordinator.answerChild(answerOf("x", session))).toMatchObject({ code: "NOT_FOUND" });
    expect(
      await coordinator.answerChild({ ...answerOf("x"), questionId: "co-1:escalation-9" }),
    ).toMatchObject({
      code: "NOT_FOUND",
    });
    expect(listEvents(world, "escalation.answered")).toEqual([]);
    await coordinator.stop();
  });

  it("goes to people at its deadline where it names no default, and the parent is too late then", async () => {
    const { coordinator, world, notices, content } = await openStage();
    await world.clock.advance(ANSWER_MS);
    await waitUntilQuiet(world);
    expect(listEvents(world, "escalation.forwarded")).toHaveLength(1);
    expect(notices.map(({ question }) => question.text)).toEqual(["Which of the two mills?"]);
    expect(listEvents(world, "interrupt.requested")).toHaveLength(1);
    expect(await coordinator.answerChild(answerOf("x"))).toMatchObject({ code: "QUESTION_CLOSED" });
    const by = { kind: "person", id: "ada" } as const;
    const text = "The old one.";
    expect(
      await coordinator.answer({ questionId: QUESTION_ID, answer: "answer", text, by, through: "chat" }),
    ).toMatchObject({ kind: "accepted" });
    expect(JSON.stringify(await coordinator.outcome(QUESTION_ID, 0))).toContain("A person answered");
    expect(listEvents(world, "interrupt.resolved")).toHaveLength(1);
    expect(await verifyLedger(content)).toMatchObject({ ok: true, problems: [] });
    await coordinator.stop();
  });

  it("is told to people as soon as it goes to them, also where they are to be reminded later", async () => {
    const reminders = [{ channel: "chat", afterMs: 20_000 }];
    const { coordinator, world, notices } = await openStage({ answerMs: 30_000 }, [], reminders);
    await world.clock.advance(30_000);
    await waitUntilQuiet(world);
    expect(listEvents(world, "escalation.forwarded")).toHaveLength(1);
    expect(notices.map(({ notice }) => notice)).toEqual([0]);
    await coordinator.stop();
  });

  it("ends at its deadline with the default that it names, and no person hears of it", async () => {
    const { coordinator, world, notices } = await openStage({ otherwise: "The old one.", answerMs: 30_000 });
    await world.clock.advance(30_000);
    await waitUntilQuiet(world);
    expect(await coordinator.outcome(QUESTION_ID, 0)).toMatchObject({ resolution: "expired" });
    expect(listEvents(world, "escalation.forwarded")).toEqual([]);
    expect(notices).toEqual([]);
    await coordinator.stop();
  });

  it("may be answered by a person before the deadline", async () => {
    const { coordinator } = await openStage();
    const by = { kind: "operator" } as const;
    expect(
      await coordinator.answer({
        questionId: QUESTION_ID,
        answer: "answer",
        text: "Both.",
        by,
        through: "cli",
      }),
    ).toMatchObject({ kind: "accepted" });
    await coordinator.stop();
  });

  it("is in what the parent is shown of the coordination, and in what nobody else is", async () => {
    const { coordinator } = await openStage({ options: ["old", "new"] });
    const words = { question: "Which of the two mills?", options: ["old", "new"] };
    expect(await coordinator.listQuestionsTo(OWNER, RUN_ID)).toMatchObject({
      questions: [{ questionId: QUESTION_ID, words }],
      leftOut: 0,
    });
    expect(await coordinator.listQuestionsTo(STRANGER, RUN_ID)).toEqual({ questions: [], leftOut: 0 });
    await coordinator.stop();
  });

  it("of a session without a parent is refused, and no coordination is opened for it", async () => {
    const { answerToAsking, world } = await openStage({ askedBy: STRANGER });
    expect(answerToAsking).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("no parent") as string,
    });
    expect(listEvents(world, "coordination.created")).toHaveLength(1);
  });

  it("is asked again after a crash: the parent is told by the next process, under the same key", async () => {
    const { world, coordinator } = await openStage();
    await coordinator.stop();
    const next = world.start();
    await next.start();
    await waitUntilQuiet(world);
    expect(new Set(world.plans.orders.map(({ idempotencyKey }) => idempotencyKey))).toEqual(
      new Set([`co-1:question:escalation-1:told`]),
    );
    expect(await next.answerChild(answerOf("The old one."))).toMatchObject({ kind: "accepted" });
    await next.stop();
  });
});

describe("what the model of a parent writes", () => {
  it("is in the gateway's log where it does not count, without its words", async () => {
    const { coordinator, world } = await openStage();
    const secret = "the secret words of a model";
    const stranger = "agent:main:subagent:stranger" as SessionKey;
    expect(await coordinator.answerChild(answerOf(secret, stranger))).toMatchObject({ code: "NOT_FOUND" });
    expect(await coordinator.answerChild(answerOf("The north one."))).toMatchObject({ kind: "accepted" });
    expect(await coordinator.answerChild(answerOf(secret))).toMatchObject({ code: "QUESTION_CLOSED" });
    const line = { question: QUESTION_ID, answer: "answer", by: "agent", through: "session" };
    expect(world.logged.filter(({ message }) => message === "an answer did not count")).toMatchObject([
      { level: "warn", fields: { ...line, session: stranger, refusal: "NOT_FOUND" } },
      { level: "warn", fields: { ...line, session: OWNER, refusal: "QUESTION_CLOSED" } },
    ]);
    expect(JSON.stringify(world.logged)).not.toContain(secret);
    await coordinator.stop();
  });

  it.each(["the secret words of a model", ":the secret words of a model"])(
    "is in no line of the log where it names a question by %j",
    async (questionId) => {
      const { coordinator, world } = await openStage();
      const answer = { questionId, session: OWNER, text: "The north one." };
      expect(await coordinator.answerChild(answer)).toMatchObject({ code: "NOT_FOUND" });
      const lines = world.logged.filter(({ message }) => message === "an answer did not count");
      expect(lines).toMatchObject([{ fields: { session: OWNER, refusal: "NOT_FOUND" } }]);
      expect(lines[0]?.fields).not.toHaveProperty("question");
      expect(JSON.stringify(world.logged)).not.toContain("secret words");
      await coordinator.stop();
    },
  );

  it("answers no question that people are asked, whichever it names", async () => {
    const { coordinator, child, world } = await openStage({ to: undefined as never });
    expect(await coordinator.answerChild(answerOf("yes"))).toMatchObject({ code: "NOT_FOUND" });
    await child.says('A mumble.\n{"confidence":0.2}');
    await child.ends();
    await waitUntilQuiet(world);
    const doubt = listEvents(world, "coordination.escalated").find(
      ({ payload }) => payload.cause === "confidence",
    );
    const questionId = `co-1:${doubt?.payload.escalationId ?? expect.fail("nothing is held")}`;
    for (const text of ["approve", undefined])
      expect(
        await coordinator.answerChild({ questionId, session: OWNER, ...(text !== undefined && { text }) }),
      ).toMatchObject({ code: "NOT_FOUND" });
    // Also where it came by the way of people.
    const by = { kind: "agent", session: OWNER } as const;
    expect(await coordinator.answer({ questionId, answer: "approve", by, through: "session" })).toMatchObject(
      {
        code: "ANSWER_REFUSED",
      },
    );
    expect(listEvents(world, "step.completed")).toEqual([]);
    await coordinator.stop();
  });
});
