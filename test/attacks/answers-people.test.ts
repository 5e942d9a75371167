/** Owns: what questions to people, chats and the gateway refuse: answers that are none, and words that would count as a text. */
import { describe, expect, it } from "vitest";
import { readQuestionAnswer } from "../../src/agents/coordination/runtime/workflow-host/question-answer.ts";
import { createChatAgents } from "../../src/plugins/chat-agents.ts";
import { answerChatCommand } from "../../src/plugins/openclaw/questions/answer-command.ts";
import { answerByOperator } from "../../src/plugins/openclaw/questions/question-methods.ts";
import { NO_CHATS, openQuestionStage, type QuestionStage } from "../plugin/question-stage.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { NEITHER, type Attack } from "./no-answers.ts";

describe("a question of a coordination that is answered as an interrupt", () => {
  const ID = "escalation-1";
  const approval = { kind: "approval", escalationId: ID } as const;
  const clarification = { kind: "clarification", escalationId: ID } as const;

  it.each<Attack>([
    ...NEITHER,
    ["a no with a text", { action: "reject", answers: { [ID]: "yes" } }],
    ["an edit to nothing", { action: "edit-accept", editedArtifactData: null }],
  ])("is not approved by %s", (_, value) => {
    expect(readQuestionAnswer(approval, value)).toHaveProperty("refused");
  });

  it.each([
    ["a yes", { action: "accept" }],
    ["an edit", { action: "edit-accept", editedArtifactData: "x" }],
    ["null", { answers: { [ID]: null } }],
    ["an item without an answer", { answers: [{ id: ID }] }],
    [
      "two answers",
      {
        answers: [
          { id: ID, answer: "a" },
          { id: ID, answer: "b" },
        ],
      },
    ],
    ["a no with a text", { action: "reject", answers: { [ID]: "yes" } }],
    ["another question's answer", { answers: { other: "x" } }],
  ])("that asks for words is not answered by %s", (_, value) => {
    expect(readQuestionAnswer(clarification, value)).toHaveProperty("refused");
  });
});

describe("a question to people", () => {
  const say = ({ use, logger }: QuestionStage, args: string): Promise<string> =>
    answerChatCommand(
      { use, useChats: NO_CHATS, logger },
      { channel: "telegram", senderId: "42", isAuthorizedSender: true, sessionKey: OWNER, args },
    );

  it.each([
    "no",
    "No.",
    " NO ",
    "yes",
    "deny",
    "denied",
    "approve",
    "reject",
    "accept",
    "ok",
    "false",
    "true",
    "null",
  ])("that takes approve or deny does not take %j for words: it says what to write", async (text) => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("May I?", OWNER, { kind: "approval" });
    const reply = await say(stage, `answer ${questionId} ${text}`);
    expect(reply).toMatch(/approve or deny/u);
    const operator = await answerByOperator(stage.use, { questionId, answer: "answer", text }, {});
    expect(operator).toMatchObject({ ok: false, error: { code: "REQUEST_REFUSED" } });
    expect(await say(stage, "questions")).toContain(questionId);
  });

  it.each(["yes", "aprove", "Approved", "ok"])(
    "is not answered by the command %j, and says so",
    async (verb) => {
      await using stage = await openQuestionStage();
      const questionId = await stage.ask("May I?", OWNER, { kind: "approval" });
      const reply = await say(stage, `${verb} ${questionId}`);
      expect(reply).toContain(`There is no command "${verb.toLowerCase()}"`);
      expect(reply).toContain("/coordination approve ID");
      expect(await stage.answers("co-1")).toEqual([]);
    },
  );

  it.each(["Approve", "DENY", "yes", "", null, true, ["approve"], "constructor"])(
    "is not answered by %j through the gateway, which says what is",
    async (answer) => {
      await using stage = await openQuestionStage();
      const questionId = await stage.ask("May I?", OWNER, { kind: "approval" });
      const methodAnswer = await answerByOperator(stage.use, { questionId, answer }, {});
      expect(methodAnswer).toMatchObject({ ok: false, error: { code: "INPUT_INVALID" } });
      expect(JSON.stringify(methodAnswer)).toMatch(/approve.*deny.*answer/u);
      expect(await stage.answers("co-1")).toEqual([]);
    },
  );

  it("that offers answers takes exactly one of them, and says which there are", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("Which?", OWNER, { options: ["blue", "dark red"] });
    for (const text of ["Blue", "green", "blue, please", "no"]) {
      const reply = await say(stage, `answer ${questionId} ${text}`);
      expect(reply).toContain('"blue", "dark red"');
    }
    expect(await say(stage, `answer ${questionId} dark red`)).toMatch(/^Answered/u);
  });
});

describe("a run that a chat began", () => {
  const SENDER = { principal: "telegram:42", scopes: [] };

  it.each(["custom", "external-event", "clarification"])(
    "and that waits for a %s is not answered by approve: that was no question of yes or no",
    async (kind) => {
      const resolved: unknown[] = [];
      const snapshot = {
        runId: "run-1",
        status: "waiting-input",
        owner: { principal: SENDER.principal },
        interrupt: { nodeId: "n", kind, data: {} },
      };
      const started = { type: "run.started", payload: { agent: { agentId: "a", source: "chat-mention" } } };
      const chats = createChatAgents({
        tenant: "t",
        host: {
          snapshot: () => Promise.resolve({ kind: "done", value: snapshot }),
          events: () => Promise.resolve({ kind: "done", value: { events: [started], isComplete: false } }),
          resolve: (...args: unknown[]) => {
            resolved.push(args);
            return Promise.resolve({ kind: "refused", code: "validation_error", message: "no" });
          },
          agents: () => [],
          watch: () => () => undefined,
        },
      } as never);
      const outcome = await chats.answer({
        sender: SENDER,
        runId: "run-1",
        answer: "approve",
        isOtherSessionNeeded: false,
        wait: { ms: 1 },
      } as never);
      expect(outcome).toMatchObject({ kind: "refused" });
      expect(resolved).toEqual([]);
    },
  );
});
