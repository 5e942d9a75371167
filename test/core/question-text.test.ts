import { describe, expect, it } from "vitest";
import {
  readQuestionText,
  encodeQuestion,
} from "../../src/agents/coordination/runtime/questions/question-text.ts";
import { createContentRef } from "./scene.ts";

const QUESTION = { question: createContentRef("question") };

const readFrom = (kept: string | undefined) =>
  readQuestionText({ content: { get: () => Promise.resolve(kept) } }, QUESTION);

describe("the text of a question", () => {
  it("is read as it was written", async () => {
    expect(await readFrom(encodeQuestion({ question: "Which one?" }))).toEqual({ question: "Which one?" });
  });

  it.each([undefined, "", '{"question":"cut of', "null", "[]", '{"question":7}'])(
    "is none where what is kept is %j",
    async (kept) => {
      expect(await readFrom(kept)).toBeUndefined();
    },
  );
});
