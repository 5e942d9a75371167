import { describe, expect, it } from "vitest";
import type { Answerer, AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import {
  listPossibleAnswers,
  findAnswerRefusal,
} from "../../src/agents/coordination/escalation/rule-on-answer.ts";
import { timeAt } from "./scene.ts";

const CHILD = "agent:main:subagent:1" as SessionKey;
const OTHER = "agent:main:main" as SessionKey;
const ASKED = {
  answers: ["approve", "deny", "answer"] as AnswerKind[],
  askedBy: CHILD,
  deadlineAtMs: timeAt(1_000),
};
const GIVEN = {
  answer: "approve",
  by: { kind: "person" } as Answerer,
  hasText: false,
  now: timeAt(0),
} as const;

describe("an answer", () => {
  it("counts until the deadline, and no longer at it", () => {
    expect(findAnswerRefusal(ASKED, { ...GIVEN, now: timeAt(999) })).toBeUndefined();
    expect(findAnswerRefusal(ASKED, { ...GIVEN, now: timeAt(1_000) })).toBe("expired");
  });

  it("to a closed question does not count, whatever else is wrong with it", () => {
    const closed = { ...ASKED, closed: {} };
    expect(findAnswerRefusal(closed, GIVEN)).toBe("closed");
    expect(findAnswerRefusal(closed, { ...GIVEN, now: timeAt(9_000), hasText: true })).toBe("closed");
  });

  it.each([
    ["approve", false, undefined],
    ["deny", false, undefined],
    ["answer", true, undefined],
    ["answer", false, "not_an_answer"],
    ["approve", true, "not_an_answer"],
    ["deny", true, "not_an_answer"],
  ] as const)("%s with a text (%j) is %j", (answer, hasText, refusal) => {
    expect(findAnswerRefusal(ASKED, { ...GIVEN, answer, hasText })).toBe(refusal);
  });

  it("of a kind that the question does not take does not count", () => {
    const clarifying = { ...ASKED, answers: ["answer", "deny"] as AnswerKind[] };
    expect(findAnswerRefusal(clarifying, GIVEN)).toBe("not_an_answer");
    const deciding = { ...ASKED, answers: ["approve", "deny"] as AnswerKind[] };
    expect(findAnswerRefusal(deciding, { ...GIVEN, answer: "answer", hasText: true })).toBe("not_an_answer");
  });

  it("to a question of 0.1.0 is an approval or a refusal", () => {
    expect(listPossibleAnswers({ answers: undefined })).toEqual(["approve", "deny"]);
    const { answers: _, ...before } = ASKED;
    expect(findAnswerRefusal(before, GIVEN)).toBeUndefined();
    expect(findAnswerRefusal(before, { ...GIVEN, answer: "answer", hasText: true })).toBe("not_an_answer");
  });

  it("from the session that asked counts only where nobody else is demanded", () => {
    const ownAuthor: Answerer = { kind: "person", session: CHILD };
    expect(findAnswerRefusal(ASKED, { ...GIVEN, by: ownAuthor })).toBeUndefined();
    const strict = { ...ASKED, requireDifferentApprover: true as const };
    expect(findAnswerRefusal(strict, { ...GIVEN, by: ownAuthor })).toBe("same_session");
    expect(findAnswerRefusal(strict, { ...GIVEN, by: { kind: "person", session: OTHER } })).toBeUndefined();
    expect(findAnswerRefusal(strict, { ...GIVEN, by: { kind: "operator" } })).toBeUndefined();
  });

  it("from the session whose plan it is counts only where nobody else is demanded", () => {
    const planOwners = ["agent:main:inner" as SessionKey, OTHER];
    const by: Answerer = { kind: "person", session: OTHER };
    const { askedBy: _, ...ofPlan } = ASKED;
    for (const question of [ASKED, ofPlan]) {
      const strict = { ...question, requireDifferentApprover: true as const };
      expect(findAnswerRefusal(strict, { ...GIVEN, by, planOwners })).toBe("same_session");
      expect(findAnswerRefusal(strict, { ...GIVEN, by: { kind: "operator" }, planOwners })).toBeUndefined();
      expect(findAnswerRefusal(question, { ...GIVEN, by, planOwners })).toBeUndefined();
    }
  });

  it("of the model of the plan's session counts where that was asked in place of people", () => {
    const strict = { ...ASKED, askedOf: OTHER, requireDifferentApprover: true as const };
    const by: Answerer = { kind: "agent", session: OTHER };
    expect(
      findAnswerRefusal(strict, { ...GIVEN, answer: "answer", hasText: true, by, planOwners: [OTHER] }),
    ).toBeUndefined();
  });

  it("to a question that no session asked is nobody's own", () => {
    const { askedBy: _, ...ownerless } = { ...ASKED, requireDifferentApprover: true as const };
    expect(
      findAnswerRefusal(ownerless, { ...GIVEN, by: { kind: "person", session: CHILD } }),
    ).toBeUndefined();
    expect(findAnswerRefusal(ownerless, { ...GIVEN, by: { kind: "person" } })).toBeUndefined();
  });
});
