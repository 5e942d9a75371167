import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  AnswerRequest,
  AskRequest,
} from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { settled } from "../support/fake-clock.ts";
import { OWNER, world, type World } from "../support/fake-clock-host.ts";
import { done, scriptedRunner } from "../support/scripted-runner.ts";
import { escalationsWith, eventsIn, gatesWith, quiet, spawnChild, type SpawnedChild } from "./gates-world.ts";

const approve = (questionId: string, rest: Partial<AnswerRequest> = {}): AnswerRequest => ({
  questionId,
  answer: "approve",
  by: { kind: "person", id: "ada" },
  through: "chat",
  ...rest,
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
      askedBy: child.session,
      agentId: "main",
      kind: "clarification",
      question: "Which one?",
      ...rest,
    });
  return {
    it,
    coordinator,
    child,
    ask,
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
      askedBy: lonely,
      agentId: "main",
      kind: "approval",
      question: "May I?",
      traceId: "trace-9",
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
      kind: "closed",
      resolution: "answered",
      text: 'A person answered: "the second"',
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
