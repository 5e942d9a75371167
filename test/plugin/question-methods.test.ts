import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { METHODS } from "../../src/plugins/openclaw/declarations/method-declarations.ts";
import type { UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { createPlanMethods } from "../../src/plugins/openclaw/plans/plan-methods.ts";
import { registerCoordinationMethods } from "../../src/plugins/openclaw/register-gateway-methods.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { recordContests } from "../cli/recorded-contests.ts";
import { SPAWNS } from "../cli/recorded-questions.ts";
import { openQuestionStage, type QuestionStage } from "./question-stage.ts";

const OTHER = "agent:other:main" as SessionKey;
const UNASKED: UsePlans = () => Promise.reject(new Error("it must not be asked"));

const ask = ({ use }: Pick<QuestionStage, "use">, params: unknown) =>
  createPlanMethods(use)("coordination.questions", params);
const give = ({ use }: Pick<QuestionStage, "use">, params: unknown, clientId = "cli") =>
  createPlanMethods(use)("coordination.answer", params, { clientId });

async function listQuestions(stage: QuestionStage, params: object = {}): Promise<string[]> {
  const answer = await ask(stage, params);
  if (!answer.ok) throw new Error(answer.error.message);
  return (answer.payload as { questions: { questionId: string }[] }).questions.map(
    ({ questionId }) => questionId,
  );
}

describe("coordination.questions", () => {
  it("needs no more than reading, and answering needs the scope of approvals", () => {
    expect(METHODS["coordination.questions"]).toBe("operator.read");
    expect(METHODS["coordination.answer"]).toBe("operator.approvals");
  });

  it("lists what is open in all coordinations, newest first", async () => {
    await using stage = await openQuestionStage();
    const [first, far, second] = [await stage.ask("a?"), await stage.ask("b?", OTHER), await stage.ask("c?")];
    expect(await listQuestions(stage)).toEqual([second, far, first]);
    expect(await listQuestions(stage, { limit: 2 })).toEqual([second, far]);
    expect(await listQuestions(stage, { coordinationId: "co-1" })).toEqual([second, first]);
    expect(await listQuestions(stage, { coordinationId: "co-9" })).toEqual([]);
  });

  it("lists the newest open ones also where a closed one is newer than they are", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?");
    const far = await stage.ask("b?", OTHER);
    await give(stage, { questionId: await stage.ask("c?"), answer: "deny" });
    expect(await listQuestions(stage, { limit: 1 })).toEqual([far]);
  });

  it("lists what is closed where all are asked for", async () => {
    await using stage = await openQuestionStage();
    const first = await stage.ask("a?");
    const second = await stage.ask("b?");
    await give(stage, { questionId: first, answer: "deny" });
    expect(await listQuestions(stage)).toEqual([second]);
    expect(await listQuestions(stage, { which: "all" })).toEqual([second, first]);
    expect(await listQuestions(stage, { which: "undelivered" })).toEqual([]);
  });

  it("tells one, with what its agent wrote, how it may be answered and until when", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("Which database?");
    expect(await ask(stage, { questionId })).toMatchObject({
      ok: true,
      payload: {
        question: {
          questionId,
          status: "open",
          cause: "agent",
          kind: "clarification",
          onExpiry: "deny",
          coordinationId: "co-1",
          answers: ["answer", "deny"],
          asked: { question: "Which database?" },
        },
      },
    });
  });

  it("does not name the resource of a write, nor who stands against it", async () => {
    await using stage = await openQuestionStage();
    await recordContests(stage.ledgerPath, "file:/repo/notes.md");
    const questionId = `${SPAWNS}:escalation-1`;
    for (const params of [{}, { questionId }]) {
      const answer = JSON.stringify(await ask(stage, params));
      expect(answer).toContain(`"questionId":"${questionId}"`);
      expect(answer).toContain('"cause":"conflict"');
      expect(answer).not.toMatch(/"contested"|draft|notes\.md/u);
    }
  });

  it("of one that is not there says so", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?");
    expect(await ask(stage, { questionId: "co-1:escalation-7" })).toMatchObject({
      ok: false,
      error: { code: "REQUEST_REFUSED", details: { refusal: "UNKNOWN_QUESTION" } },
    });
  });

  it.each([
    [{ which: "closed" }],
    [{ limit: 0 }],
    [{ limit: 501 }],
    [{ questionId: "" }],
    [{ questionId: "x".repeat(1_000) }],
    [{ questionId: "co-1:escalation-1", which: "all" }],
    [{ more: 1 }],
    [[]],
    [5],
  ])("refuses %j", async (params) => {
    expect(await ask({ use: UNASKED }, params)).toMatchObject({
      ok: false,
      error: { code: "INPUT_INVALID" },
    });
  });
});

describe("coordination.answer", () => {
  it("answers in the name of the client that the gateway knows, and says what that brought about", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("May I?", undefined, { kind: "approval" });
    expect(await give(stage, { questionId, answer: "approve" })).toEqual({
      ok: true,
      payload: {
        questionId,
        coordinationId: "co-1",
        resolution: "approved",
        happened: "the agent is told yes",
      },
    });
    expect(await stage.answers("co-1")).toEqual([
      {
        escalationId: "escalation-1",
        answer: "approve",
        by: { kind: "operator", id: "cli" },
        through: "gateway",
      },
    ]);
  });

  it("records that it came by the command line", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("Which?");
    await give(stage, { questionId, answer: "answer", text: "this one", through: "cli" });
    expect(await stage.answers("co-1")).toMatchObject([{ answer: "answer", through: "cli" }]);
  });

  it("takes a unique prefix of an open question, and the only one that is open", async () => {
    await using stage = await openQuestionStage();
    const first = await stage.ask("a?");
    const second = await stage.ask("b?", OTHER);
    expect(await give(stage, { questionId: "co-1", answer: "deny" })).toMatchObject({
      payload: { questionId: first },
    });
    expect(await give(stage, { only: true, answer: "deny" })).toMatchObject({
      payload: { questionId: second },
    });
    expect(await give(stage, { only: true, answer: "deny" })).toMatchObject({
      ok: false,
      error: { code: "REQUEST_REFUSED", message: "no question is open" },
    });
  });

  it("never guesses: a prefix of several and the only one of several are refused with their ids", async () => {
    await using stage = await openQuestionStage();
    const ids = [await stage.ask("a?"), await stage.ask("b?")];
    for (const params of [{ questionId: "co-" }, { only: true }]) {
      const answer = await give(stage, { ...params, answer: "deny" });
      expect(answer).toMatchObject({ ok: false, error: { code: "INPUT_INVALID" } });
      expect(JSON.stringify(answer)).toContain(ids.toReversed().join(", "));
    }
    expect(await stage.answers("co-1")).toEqual([]);
  });

  it("takes an id for what it is, also where it begins another one", async () => {
    await using stage = await openQuestionStage();
    for (let requestCount = 0; requestCount < 10; requestCount += 1)
      await stage.ask(`question ${requestCount}?`);
    expect(await give(stage, { questionId: "co-1:escalation-1", answer: "deny" })).toMatchObject({
      ok: true,
      payload: { questionId: "co-1:escalation-1" },
    });
    // Closed by now; the tenth is open and not meant.
    expect(await give(stage, { questionId: "co-1:escalation-1", answer: "deny" })).toMatchObject({
      ok: false,
    });
  });

  it("tells whoever is late who came first, how and when, and records the answer as refused", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("a?");
    await give(stage, { questionId, answer: "deny" }, "first-client");
    const late = await give(stage, { questionId, answer: "answer", text: "too late" }, "second-client");
    expect(late).toMatchObject({
      ok: false,
      error: {
        code: "REQUEST_REFUSED",
        message: expect.stringMatching(
          /^the question is closed already: denied by operator first-client through gateway at 2026-/u,
        ) as string,
        details: { refusal: "QUESTION_CLOSED", answered: { by: { id: "first-client" } } },
      },
    });
    expect(await stage.answers("co-1")).toMatchObject([{ answer: "deny" }, { refused: "closed" }]);
  });

  it("after the time to answer is refused, also before the question was closed for it", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("a?", undefined, { answerMs: 1_000 });
    await stage.pass(2_000);
    expect(await give(stage, { questionId, answer: "deny" })).toMatchObject({
      ok: false,
      error: { details: { refusal: "QUESTION_CLOSED" } },
    });
  });

  it("refuses an answer that the question does not take", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("a?");
    expect(await give(stage, { questionId, answer: "approve" })).toMatchObject({
      ok: false,
      error: { code: "REQUEST_REFUSED", details: { refusal: "ANSWER_REFUSED" } },
    });
  });

  it.each([
    [{ answer: "approve" }],
    [{ questionId: "co-1:escalation-1" }],
    [{ questionId: "co-1:escalation-1", only: true, answer: "deny" }],
    [{ only: false, answer: "deny" }],
    [{ only: true, answer: "maybe" }],
    [{ only: true, answer: "answer" }],
    [{ only: true, answer: "deny", text: "because" }],
    [{ only: true, answer: "answer", text: "" }],
    [{ only: true, answer: "answer", text: "x".repeat(200_001) }],
    [{ only: true, answer: "deny", through: "chat" }],
    [{ only: true, answer: "deny", by: { kind: "person", id: "somebody" } }],
    [null],
  ])("refuses %.80j", async (params) => {
    expect(await give({ use: UNASKED }, params)).toMatchObject({
      ok: false,
      error: { code: "INPUT_INVALID" },
    });
  });

  it("takes a text up to its bound", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?");
    const text = "x".repeat(200_000);
    expect(await give(stage, { only: true, answer: "answer", text })).toMatchObject({ ok: true });
  });

  it("says why it could not be recorded", async () => {
    const use: UsePlans = () => Promise.reject(new CoordinationError("LEDGER_FULL", "no space"));
    expect(await give({ use }, { only: true, answer: "deny" })).toEqual({
      ok: false,
      error: { code: "LEDGER_FULL", message: "no space" },
    });
  });

  it.each([
    [null],
    [{}],
    [{ connect: {} }],
    [{ connect: { client: { id: "" } } }],
    [{ connect: { client: { id: 5 } } }],
  ])("is reached by a call from within the process, whose client is %j", async (client) => {
    const handlers = new Map<string, (settings: object) => Promise<void>>();
    const api = {
      registerGatewayMethod: (name: string, handler: (settings: object) => Promise<void>) =>
        handlers.set(name, handler),
    };
    registerCoordinationMethods(api as unknown as OpenClawPluginApi);
    const reports: unknown[][] = [];
    await handlers.get("coordination.answer")?.({
      params: { answer: "maybe" },
      client,
      respond: (...args: unknown[]) => reports.push(args),
    });
    expect(reports).toMatchObject([[false, undefined, { code: "INPUT_INVALID" }]]);
  });
});
