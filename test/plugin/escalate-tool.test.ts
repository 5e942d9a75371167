import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type {
  AskOutcome,
  QuestionOutcome,
} from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { createPlanTools } from "../../src/plugins/openclaw/plans/plan-tools.ts";
import {
  ESCALATE_WAIT_MS,
  ESCALATE_WAIT_MS_MAX,
} from "../../src/plugins/openclaw/declarations/asking-declarations.ts";
import { createLateError } from "../../src/plugins/openclaw/host/within-budget.ts";
import { waitUntilQuiet, spawnChild } from "../core/gates-world.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { SESSION, START, createStubPlans, type StubPlans } from "./stub-plans.ts";

const QUESTION_ID = "co-1:escalation-1";
const question: AskOutcome = { kind: "asked", questionId: QUESTION_ID, deadlineAtMs: START };

function createPlansThat(
  ask: AskOutcome = question,
  outcomes: readonly QuestionOutcome[] = [{ kind: "open" }],
): StubPlans & { readonly waits: () => unknown[] } {
  let looks = 0;
  const lookAtOutcome = (): Promise<QuestionOutcome> => {
    looks += 1;
    return Promise.resolve(outcomes[Math.min(looks, outcomes.length) - 1] ?? { kind: "open" });
  };
  const stub = createStubPlans({ ask: () => Promise.resolve(ask), outcome: lookAtOutcome });
  const listWaits = (): unknown[] =>
    stub.askedCalls.filter(({ subject }) => subject === "outcome").map(({ args }) => args[1]);
  return { ...stub, waits: listWaits };
}

const escalate = (stub: StubPlans, params: unknown, signal?: AbortSignal) =>
  createPlanTools(stub.use, () => true)("coordination_escalate", { sessionKey: SESSION, signal }, params);

const createLong = (chars: number): string => "x".repeat(chars);

describe("coordination_escalate", () => {
  it.each<[string, unknown, string]>([
    ["nothing", undefined, ""],
    ["a list", [], ""],
    ["no question", {}, "question"],
    ["an empty question", { question: "" }, "question"],
    ["an endless question", { question: createLong(BOUNDS.questionCharsMax + 1) }, "question"],
    ["a question that is no text", { question: 5 }, "question"],
    ["an unknown kind", { question: "q", kind: "order" }, "kind"],
    ["a negative wait", { question: "q", waitMs: -1 }, "waitMs"],
    ["an endless wait", { question: "q", waitMs: ESCALATE_WAIT_MS_MAX + 1 }, "waitMs"],
    ["no time to answer", { question: "q", answerMs: 999 }, "answerMs"],
    ["too many options", { question: "q", options: Array(BOUNDS.optionsMax + 1).fill("o") }, "options"],
    ["options of an approval", { question: "q", kind: "approval", options: ["a"] }, "options"],
    ["an empty option", { question: "q", options: [""] }, "options"],
    ["an empty default", { question: "q", otherwise: "" }, "otherwise"],
    ["another field", { question: "q", more: 1 }, "more"],
    ["another's session", { question: "q", askedBy: "agent:main:main" }, "askedBy"],
  ])("with %s says what is wrong and where, and asks nothing", async (_, params, path) => {
    const stub = createPlansThat();
    const { status, message } = await escalate(stub, params);
    expect(status).toBe("error");
    expect(message).toContain(path);
    expect(String(message).length).toBeLessThan(1_000);
    expect(stub.askedCalls).toEqual([]);
  });

  it("stops the look for an answer when its own time is over, so that the answer is told later", async () => {
    const late = Promise.withResolvers<never>();
    let lookSignal: AbortSignal | undefined;
    const stub = createStubPlans({
      ask: () => Promise.resolve(question),
      outcome: (_, __, signal) => {
        lookSignal = signal;
        late.reject(createLateError());
        return new Promise(() => undefined);
      },
    });
    const use: StubPlans["use"] = (work) => Promise.race([stub.use(work), late.promise]);
    const { status } = await escalate({ ...stub, use }, { question: "Which?" }, new AbortController().signal);
    expect(status).toBe("error");
    expect(lookSignal?.aborted).toBe(true);
  });

  it("asks in the name of the session that calls, which is no parameter", async () => {
    const stub = createPlansThat();
    await escalate(stub, {
      question: "Which?",
      options: ["a", "b"],
      otherwise: "a",
      answerMs: 5_000,
      waitMs: 0,
    });
    expect(stub.askedCalls.filter(({ subject }) => subject === "ask").map(({ args }) => args)).toEqual([
      [
        {
          askedBy: SESSION,
          agentId: "research",
          kind: "clarification",
          question: "Which?",
          options: ["a", "b"],
          otherwise: "a",
          answerMs: 5_000,
        },
      ],
    ]);
  });

  it("that must not ask more says so, and waits for nothing", async () => {
    const reason = "as many questions are open as there may be; wait for an answer";
    const stub = createPlansThat({ kind: "refused", code: "TOO_MANY_QUESTIONS", reason });
    expect(await escalate(stub, { question: "One more?" })).toEqual({ status: "refused", message: reason });
    expect(stub.waits()).toEqual([]);
  });

  it("without a wait tells at once that nobody has answered, which is no approval", async () => {
    const stub = createPlansThat();
    const answer = await escalate(stub, { question: "May I?", kind: "approval", waitMs: 0 });
    expect(answer).toEqual({
      status: "open",
      questionId: QUESTION_ID,
      answerBy: "2026-01-02T03:04:05.000Z",
      note: expect.stringContaining("Do not take this for an approval") as string,
    });
    expect(stub.waits()).toEqual([0]);
  });

  it("without a wait tells the answer that people gave before the agent asked again", async () => {
    const world = createWorld();
    const coordinator = world.start();
    await coordinator.start();
    const { session } = await spawnChild(world, coordinator);
    const tools = createPlanTools(createStubPlans(coordinator).use, () => true);
    const askAtOnce = () =>
      tools("coordination_escalate", { sessionKey: session }, { question: "Which?", waitMs: 0 });
    expect(await askAtOnce()).toMatchObject({ status: "open", questionId: QUESTION_ID });
    await coordinator.answer({
      questionId: QUESTION_ID,
      answer: "answer",
      text: "the second",
      by: { kind: "person", id: "ada" },
      through: "chat",
    });
    await waitUntilQuiet(world);
    expect(await askAtOnce()).toEqual({
      status: "answered",
      questionId: QUESTION_ID,
      note: 'A person answered: "the second"',
    });
    await coordinator.stop();
  });

  it.each([
    [undefined, Array(ESCALATE_WAIT_MS / 20_000).fill(20_000)],
    [45_000, [20_000, 20_000, 5_000]],
    [1, [1]],
  ])("waits for %s ms in looks of bounded length", async (waitMs, waits) => {
    const stub = createPlansThat();
    const answer = await escalate(stub, { question: "May I?", ...(waitMs !== undefined && { waitMs }) });
    expect(answer.status).toBe("open");
    expect(stub.waits()).toEqual(waits);
  });

  it.each<[QuestionOutcome, object]>([
    [
      { kind: "closed", resolution: "approved", text: "Yes." },
      { status: "approved", note: "Yes." },
    ],
    [{ kind: "closed", resolution: "denied" }, { status: "denied" }],
    [
      { kind: "closed", resolution: "expired", text: "As you said: a." },
      { status: "expired", note: "As you said: a." },
    ],
  ])("tells what comes of it as soon as that is known: %j", async (outcome, report) => {
    const stub = createPlansThat(question, [{ kind: "open" }, outcome]);
    expect(await escalate(stub, { question: "May I?" })).toEqual({ questionId: QUESTION_ID, ...report });
    expect(stub.waits()).toEqual([20_000, 20_000]);
  });

  it("hands on that nobody waits for the call any more", async () => {
    const caller = new AbortController();
    const aborted: unknown[] = [];
    const stub = createStubPlans({
      ask: () => Promise.resolve(question),
      outcome: (_, __, signal) => {
        aborted.push(signal?.aborted);
        caller.abort();
        aborted.push(signal?.aborted);
        return Promise.resolve({ kind: "open" });
      },
    });
    await escalate(stub, { question: "May I?", waitMs: 1 }, caller.signal);
    expect(stub.askedCalls.at(-1)?.args.slice(0, 2)).toEqual([QUESTION_ID, 1]);
    expect(aborted).toEqual([false, true]);
  });
});

describe("coordination_answer", () => {
  const answerAs = async (params: object) => {
    const stub = createStubPlans({
      answerChild: () => Promise.resolve({ kind: "answered", resolution: "answered" } as never),
    });
    const { status } = await createPlanTools(stub.use, () => true)(
      "coordination_answer",
      { sessionKey: SESSION },
      { questionId: QUESTION_ID, ...params },
    );
    return { status, calls: stub.askedCalls.map(({ args }) => args[0]) };
  };
  const request = { questionId: QUESTION_ID, session: SESSION };

  it("takes a no that is false for no word about it, as its schema allows", async () => {
    expect(await answerAs({ answer: "yes", deny: false })).toEqual({
      status: "answered",
      calls: [{ ...request, text: "yes" }],
    });
    expect(await answerAs({ deny: true })).toMatchObject({ calls: [request] });
  });

  it("takes neither both nor none of an answer and a no", async () => {
    for (const params of [{}, { deny: false }, { answer: "yes", deny: true }])
      expect(await answerAs(params)).toEqual({ status: "error", calls: [] });
  });
});
