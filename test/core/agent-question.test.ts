import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  AnswerRequest,
  AskRequest,
} from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, createWorld, spawnOf, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { endDone, createScriptedRunner, type ScriptedAttempt } from "../support/scripted-runner.ts";
import {
  createEscalationsWith,
  listEvents,
  createGatesWith,
  waitUntilQuiet,
  spawnChild,
  type SpawnedChild,
} from "./gates-world.ts";

const approve = (questionId: string, rest: Partial<AnswerRequest> = {}): AnswerRequest => ({
  questionId,
  answer: "approve",
  by: { kind: "person", id: "ada" },
  through: "chat",
  ...rest,
});

interface AgentQuestionScene {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly child: SpawnedChild;
  readonly ask: (rest?: Partial<AskRequest>) => ReturnType<Coordinator["ask"]>;
  /** The id of a new question. */
  readonly askQuestion: (rest?: Partial<AskRequest>) => Promise<string>;
}

async function openQuestion(
  escalations: object = {},
  toldTurn: ScriptedAttempt = endDone(),
  wrapStore: (store: MemoryStore) => MemoryStore = (store) => store,
): Promise<AgentQuestionScene> {
  const world = createWorld(
    {},
    createScriptedRunner(() => toldTurn),
    { gates: createGatesWith([]), escalations: createEscalationsWith(escalations) },
  );
  const coordinator = world.start(wrapStore);
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  const ask: AgentQuestionScene["ask"] = (rest = {}) =>
    coordinator.ask({
      askedBy: child.session,
      agentId: "main",
      kind: "clarification",
      question: "Which one?",
      ...rest,
    });
  return {
    world: world,
    coordinator,
    child,
    ask,
    askQuestion: async (rest) => {
      const question = await ask(rest);
      if (question.kind === "refused") throw new Error(question.reason);
      return question.questionId;
    },
  };
}

describe("a question of an agent", () => {
  it("belongs to the step that its session works on, and its words lie beside the log", async () => {
    const { world, askQuestion, coordinator } = await openQuestion();
    const id = await askQuestion({ options: ["a", "b"], otherwise: "a" });
    expect(id).toBe("co-1:escalation-1");
    const [escalated] = listEvents(world, "coordination.escalated");
    expect(escalated?.payload).toMatchObject({ cause: "agent", stepId: "step-1", onExpiry: "default" });
    expect(JSON.stringify(world.ledger.events())).not.toContain("Which one");
    const text = await world.ledger.open(world.clock).get(escalated?.payload.question?.sha256 ?? "");
    expect(JSON.parse(text ?? "")).toEqual({ question: "Which one?", options: ["a", "b"], otherwise: "a" });
    await coordinator.stop();
  });

  it("asked twice is one question with one id", async () => {
    const { world, askQuestion, coordinator } = await openQuestion();
    const [one, two] = await Promise.all([askQuestion(), askQuestion()]);
    expect(two).toBe(one);
    expect(await askQuestion()).toBe(one);
    expect(listEvents(world, "coordination.escalated")).toHaveLength(1);
    await coordinator.stop();
  });

  it("of a session that coordinates nothing opens a coordination of its own, which ends with it", async () => {
    const { world, coordinator } = await openQuestion();
    const lonely = "agent:main:other" as SessionKey;
    const question = await coordinator.ask({
      askedBy: lonely,
      agentId: "main",
      kind: "approval",
      question: "May I?",
      traceId: "trace-9",
    });
    expect(question).toMatchObject({ kind: "asked", questionId: "co-2:escalation-1" });
    await coordinator.answer(approve("co-2:escalation-1"));
    await world.clock.advance(20_000);
    const ended = listEvents(world, "coordination.terminal").filter(({ runId }) => runId === "co-2");
    expect(ended).toHaveLength(1);
    expect(world.plans.orders.map(({ childSessionKey }) => childSessionKey)).toContain(lonely);
    await coordinator.stop();
  });

  it("opens a coordination that the operator's budget holds for, so that a spawn after it is bounded", async () => {
    const world = createWorld();
    const { clock, host } = world;
    const coordinator = world.start(undefined, { clock, runner: host, budget: { spawns: 1 } });
    await coordinator.start();
    await coordinator.ask({
      askedBy: OWNER,
      agentId: "main",
      kind: "approval",
      question: "Delete the index?",
      traceId: "trace-1",
    });
    const admissions = [];
    for (const task of ["one", "two"]) admissions.push(await coordinator.admitSpawn(spawnOf({ task })));
    expect(admissions).toMatchObject([{ kind: "admitted" }, { kind: "refused", code: "BUDGET_SPENT" }]);
    expect(listEvents(world, "coordination.created")).toMatchObject([{ payload: { budget: { spawns: 1 } } }]);
    await coordinator.stop();
  });

  it("is refused in words where too many are open", async () => {
    const { ask, coordinator } = await openQuestion({ openMax: 1 });
    await ask();
    expect(await ask({ question: "And which other one?" })).toMatchObject({
      kind: "refused",
      code: "TOO_MANY_QUESTIONS",
    });
    await coordinator.stop();
  });

  it("of a session that coordinates nothing is refused, too, where too many are asked at once", async () => {
    const { world, ask, coordinator } = await openQuestion({ openMax: 2 });
    const askedBy = "agent:main:other" as SessionKey;
    const outcomes = await Promise.all(
      ["1", "2", "3", "4", "2"].map((question) => ask({ askedBy, question, traceId: "trace-9" })),
    );
    expect(outcomes).toMatchObject([
      { kind: "asked", questionId: "co-2:escalation-1" },
      { kind: "asked", questionId: "co-2:escalation-2" },
      { kind: "refused", code: "TOO_MANY_QUESTIONS" },
      { kind: "refused", code: "TOO_MANY_QUESTIONS" },
      { kind: "asked", questionId: "co-2:escalation-2" },
    ]);
    expect(listEvents(world, "coordination.escalated")).toHaveLength(2);
    await coordinator.stop();
  });

  it("that a tool call waits for is told there, and not once more as a turn", async () => {
    const { world, askQuestion, coordinator } = await openQuestion();
    const id = await askQuestion();
    const outcome = coordinator.outcome(id, 60_000);
    await waitUntilSettled();
    await coordinator.answer(approve(id, { answer: "answer", text: "the second" }));
    await waitUntilQuiet(world);
    expect(await outcome).toEqual({
      kind: "closed",
      resolution: "answered",
      text: 'A person answered: "the second"',
    });
    await world.clock.advance(60_000);
    expect(world.plans.orders).toEqual([]);
    expect(listEvents(world, "session.told").map(({ payload }) => payload.delivery)).toEqual(["delivered"]);
    await coordinator.stop();
  });

  it("that is still open when the tool call has to return is told later as a turn, once", async () => {
    const { world, askQuestion, child, coordinator } = await openQuestion();
    const id = await askQuestion();
    const outcome = coordinator.outcome(id, 5_000);
    await world.clock.advance(5_000);
    expect(await outcome).toEqual({ kind: "open" });
    await coordinator.answer(approve(id, { answer: "deny" }));
    await child.ends();
    await world.clock.advance(5_000);
    expect(world.plans.orders.map(({ childSessionKey }) => childSessionKey)).toEqual([child.session]);
    expect(world.plans.orders[0]?.message).toContain("denied");
    expect(listEvents(world, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });

  it("is not lost with a tool call that was aborted: the answer comes as a turn", async () => {
    const { world, askQuestion, coordinator, child } = await openQuestion();
    const id = await askQuestion();
    const stop = new AbortController();
    const outcome = coordinator.outcome(id, 60_000, stop.signal);
    await waitUntilSettled();
    const answered = coordinator.answer(approve(id, { answer: "deny" }));
    // The caller is gone before it hears of it.
    stop.abort();
    await Promise.all([outcome, answered]);
    await child.ends();
    await world.clock.advance(70_000);
    expect(world.plans.orders).toHaveLength(1);
    await coordinator.stop();
  });

  it("that another process closed is not lost either with a tool call that was aborted", async () => {
    const { world, askQuestion, coordinator, child } = await openQuestion();
    const id = await askQuestion();
    const stop = new AbortController();
    const outcome = coordinator.outcome(id, 60_000, stop.signal);
    await waitUntilSettled();
    const other = world.start();
    await other.answer(approve(id, { answer: "deny" }));
    stop.abort();
    await outcome;
    // A child is told when its own work is over.
    await child.ends();
    await world.clock.advance(130_000);
    // Both processes may tell it: under one key, which is one turn.
    expect(new Set(world.plans.orders.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    await other.stop();
    await coordinator.stop();
  });

  it("of two tool calls that wait is told to both", async () => {
    const { world, askQuestion, coordinator } = await openQuestion();
    const id = await askQuestion();
    const outcomes = [coordinator.outcome(id, 60_000), coordinator.outcome(id, 60_000)];
    await waitUntilSettled();
    await coordinator.answer(approve(id, { answer: "deny" }));
    await waitUntilQuiet(world);
    for (const outcome of await Promise.all(outcomes))
      expect(outcome).toMatchObject({ resolution: "denied" });
    await world.clock.advance(60_000);
    expect(world.plans.orders).toEqual([]);
    await coordinator.stop();
  });

  it("that nobody answers in time counts as what it named, and is told", async () => {
    const { world, askQuestion, coordinator } = await openQuestion();
    const id = await askQuestion({ otherwise: "the first", answerMs: 10_000 });
    const outcome = coordinator.outcome(id, 60_000);
    await world.clock.advance(12_000);
    expect(await outcome).toMatchObject({
      resolution: "expired",
      text: expect.stringContaining('"the first"') as unknown,
    });
    await coordinator.stop();
  });

  it("that is waited for under no such name is open, and nothing comes of it", async () => {
    const { world, coordinator } = await openQuestion();
    const outcome = coordinator.outcome("co-1:escalation-7", 1_000);
    await world.clock.advance(2_000);
    expect(await outcome).toEqual({ kind: "open" });
    expect(await coordinator.outcome("nonsense", 1_000)).toEqual({ kind: "open" });
    await coordinator.stop();
  });

  it("may not be answered by its own session where another approver is demanded", async () => {
    const { askQuestion, child, coordinator } = await openQuestion({ requireDifferentApprover: true });
    const id = await askQuestion({ kind: "approval" });
    const ownAnswer = approve(id, { by: { kind: "person", id: "ada", session: child.session } });
    expect(await coordinator.answer(ownAnswer)).toMatchObject({ kind: "refused", code: "ANSWER_REFUSED" });
    const other = approve(id, { by: { kind: "person", id: "ada", session: OWNER } });
    expect(await coordinator.answer(other)).toMatchObject({ kind: "accepted" });
    await coordinator.stop();
  });
});

describe("a question of an agent that is asked again after people answered it", () => {
  /** Asks for an approval, which people give once the tool call has returned without it. */
  async function openApproved() {
    const scene = await openQuestion();
    const { askQuestion, coordinator, world } = scene;
    const askApproval = () => askQuestion({ kind: "approval" });
    const id = await askApproval();
    expect(await coordinator.outcome(id, 0)).toEqual({ kind: "open" });
    await coordinator.answer(approve(id));
    await waitUntilQuiet(world);
    return { ...scene, id, askApproval };
  }

  it("is answered in the call, and neither put to people again nor told as a turn", async () => {
    const { id, askApproval, coordinator, world, child } = await openApproved();
    expect(await askApproval()).toBe(id);
    expect(await coordinator.outcome(id, 0)).toMatchObject({ kind: "closed", resolution: "approved" });
    expect(listEvents(world, "coordination.escalated")).toHaveLength(1);
    await child.ends();
    await world.clock.advance(60_000);
    expect(world.plans.orders).toEqual([]);
    expect(listEvents(world, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });

  it("is not told, and stays to be told, while the words of the answer cannot be read", async () => {
    let isUnreadable = false;
    const { askQuestion, coordinator, world } = await openQuestion({}, endDone(), (store) => ({
      ...store,
      get: (sha256) => (isUnreadable ? Promise.reject(new Error("no disk")) : store.get(sha256)),
    }));
    const id = await askQuestion();
    await coordinator.answer(approve(id, { answer: "answer", text: "Use staging." }));
    await waitUntilQuiet(world);
    isUnreadable = true;
    await expect(coordinator.outcome(id, 0)).rejects.toThrow("no disk");
    expect(listEvents(world, "session.told")).toEqual([]);
    isUnreadable = false;
    expect(await coordinator.outcome(id, 0)).toMatchObject({ text: 'A person answered: "Use staging."' });
    expect(listEvents(world, "session.told")).toMatchObject([{ payload: { delivery: "delivered" } }]);
    await coordinator.stop();
  });

  it("is a new one once the agent was told, or in other words or of another kind", async () => {
    const { id, askApproval, askQuestion, coordinator } = await openApproved();
    expect(await askQuestion()).not.toBe(id);
    expect(await askQuestion({ kind: "approval", question: "And now?" })).not.toBe(id);
    expect(await askQuestion({ kind: "approval", askedBy: OWNER })).not.toBe(id);
    expect(await coordinator.outcome(id, 0)).toMatchObject({ resolution: "approved" });
    expect(await askApproval()).not.toBe(id);
    await coordinator.stop();
  });

  it("is a new one of an owner who is being told the answer in a turn: one approval counts once", async () => {
    const { askQuestion, coordinator, world } = await openQuestion({}, "work");
    const askApproval = () => askQuestion({ kind: "approval", askedBy: OWNER });
    const id = await askApproval();
    await coordinator.answer(approve(id));
    await world.clock.advance(2_000);
    expect(await askApproval()).not.toBe(id);
    expect(await coordinator.outcome(id, 0)).toEqual({ kind: "open" });
    expect(world.plans.orders.map(({ childSessionKey }) => childSessionKey)).toEqual([OWNER]);
    expect(listEvents(world, "session.told")).toEqual([]);
    await coordinator.stop();
  });

  it("is a new one where nobody had answered in time", async () => {
    const { askQuestion, coordinator, world } = await openQuestion();
    const id = await askQuestion({ answerMs: 10_000 });
    await world.clock.advance(12_000);
    expect(await askQuestion()).not.toBe(id);
    await coordinator.stop();
  });

  it("is answered in the call also in a turn in which the agent is told something else", async () => {
    const { id, askApproval, coordinator, child } = await openApproved();
    coordinator.turnBegan(child.session, "co-1:answer:escalation-7:told");
    expect(await askApproval()).toBe(id);
    await coordinator.stop();
  });

  it("goes to people where only its parent answered", async () => {
    const { askQuestion, coordinator } = await openQuestion();
    const id = await askQuestion({ to: "parent" });
    await coordinator.answerChild({ questionId: id, session: OWNER, text: "the first" });
    expect(await askQuestion({ to: "parent" })).toBe(id);
    expect(await askQuestion()).not.toBe(id);
    await coordinator.stop();
  });
});
