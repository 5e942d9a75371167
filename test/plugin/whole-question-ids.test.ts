/** Whoever names a question, or a coordination, by its whole id means no other coordination whose id begins with it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { answerByOperator, handleQuestions } from "../../src/plugins/openclaw/questions/question-methods.ts";
import { addCoordination, prune } from "../contract/prunable-ledger.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { openQuestionStage, say, type QuestionStage } from "./question-stage.ts";

const APPROVAL = { kind: "approval" } as const;

let stage: QuestionStage;

beforeEach(async () => {
  stage = await openQuestionStage();
});

afterEach(() => stage[Symbol.asyncDispose]());

describe("a question of a coordination that was pruned", () => {
  const PRUNED =
    /here is no such question any more: co-notes was pruned from the ledger at 2026-.*; it had \d+ events/u;

  beforeEach(async () => {
    const store = await openTestLedger(stage.ledgerPath);
    await addCoordination(store, "notes");
    await stage.submitDoubted(OWNER, "co-notes-2");
    expect((await prune(store)).runs).toBe(1);
    await store.close();
  });

  it.each([
    "approve co-notes:escalation-1",
    "deny co-notes:escalation-1",
    "approve co-notes",
    "answer co-notes:escalation-1 yes",
  ])("is answered by no `/coordination %s`", async (args) => {
    expect(await say(stage, args)).toMatch(PRUNED);
    expect(await stage.answers("co-notes-2")).toEqual([]);
  });

  it.each(["co-notes:escalation-1", "co-notes"])(
    "is neither answered nor shown by the gateway's methods: %s",
    async (id) => {
      const error = {
        code: "REQUEST_REFUSED",
        message: expect.stringMatching(PRUNED) as string,
        details: { refusal: "UNKNOWN_QUESTION" },
      };
      const params = { questionId: id, answer: "approve" };
      expect(await answerByOperator(stage.use, params, {})).toEqual({ ok: false, error });
      expect(await handleQuestions(stage.use, { questionId: id })).toEqual({ ok: false, error });
      expect(await stage.answers("co-notes-2")).toEqual([]);
    },
  );

  it("does not keep a shorter prefix from naming the question that is there", async () => {
    expect(await say(stage, "deny co-note:escalation-1")).toContain("(co-notes-2:escalation-1)");
  });
});

describe("a question that a coordination does not have", () => {
  beforeEach(async () => {
    for (let count = 1; count <= 10; count += 1)
      await stage.ask("May I?", `agent:${count}:main` as SessionKey, APPROVAL);
    await stage.ask("And this?", "agent:10:main" as SessionKey, APPROVAL);
  });

  it("is answered in no coordination whose id begins with that of the first", async () => {
    expect(await say(stage, "approve co-1:escalation-2")).toBe('No question has the id "co-1:escalation-2".');
    expect(await stage.answers("co-10")).toEqual([]);
  });

  it("leaves the whole id of a coordination to its only open question", async () => {
    expect(await say(stage, "approve co-1")).toContain("(co-1:escalation-1)");
    expect(await say(stage, "approve co-1")).toBe('No question has the id "co-1".');
    expect(await stage.answers("co-10")).toEqual([]);
  });
});
