import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { answerChatCommand } from "../../src/plugins/openclaw/questions/answer-command.ts";
import { handleQuestions } from "../../src/plugins/openclaw/questions/question-methods.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { openQuestionStage, type QuestionStage } from "./question-stage.ts";

const SESSIONS: readonly SessionKey[] = [
  OWNER,
  ...["a", "b", "c"].map((id) => `agent:${id}:main` as SessionKey),
];
const PER_SESSION = 250;

/** A thousand, the newest last. */
async function ask(stage: QuestionStage): Promise<string[]> {
  const ids: string[] = [];
  for (const session of SESSIONS)
    for (let number = 0; number < PER_SESSION; number += 1)
      ids.push(await stage.ask(`${number} ${"words ".repeat(100)}`, session));
  return ids;
}

interface QuestionsReply {
  readonly payload: { readonly questions: readonly { readonly questionId: string }[] };
}

describe("a thousand open questions", () => {
  it("are listed the newest first and no more than asked for, in bounded time and length", async () => {
    await using stage = await openQuestionStage();
    const oldest = await stage.ask("May I begin?", "agent:first:main" as SessionKey);
    const ids = await ask(stage);
    const begun = performance.now();
    const listQuestions = async (params: object): Promise<string[]> => {
      const { payload } = (await handleQuestions(stage.use, params)) as QuestionsReply;
      return payload.questions.map(({ questionId }) => questionId);
    };
    expect(await listQuestions({ limit: 500 })).toEqual(ids.toReversed().slice(0, 500));
    expect(await listQuestions({})).toEqual(ids.toReversed().slice(0, 50));
    expect(await listQuestions({ coordinationId: "co-2", limit: 500 })).toEqual(
      ids.slice(0, PER_SESSION).toReversed(),
    );
    const say = (args: string): Promise<string> =>
      answerChatCommand(stage, {
        channel: "telegram",
        senderId: "42",
        isAuthorizedSender: true,
        sessionKey: OWNER,
        args,
      });
    const reply = await say("questions all");
    expect([reply.split("\n").length, reply.length < 3_000]).toEqual([6, true]);
    expect((await say("approve")).length).toBeLessThan(1_000);
    // The oldest of all is found by a prefix that is only its own, and many by one that is not.
    expect(await handleQuestions(stage.use, { questionId: "co-1" })).toMatchObject({
      payload: { question: { questionId: oldest } },
    });
    expect(await handleQuestions(stage.use, { questionId: "co-2" })).toMatchObject({
      error: { code: "INPUT_INVALID", details: { questionIds: { length: 10 } } },
    });
    expect(await say(`answer ${oldest} Yes.`)).toMatch(/^Answered: /u);
    // A tenth of a second; what reads every log for every question takes a minute.
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});
