/** Owns: which words rule on a question, which answers belong to a clarification, and what is said to whoever wrote others. */
import { describe, expect, it } from "vitest";
import {
  describeGivenWord,
  isGiven,
  readAction,
  type AnswerAction,
} from "../../src/agents/coordination/workflow/state/answer-words.ts";
import {
  areAskableQuestions,
  readClarificationAnswers,
  readAskableQuestions,
} from "../../src/agents/coordination/workflow/state/clarification-answers.ts";

const ALL: readonly AnswerAction[] = ["accept", "reject", "refine", "edit-accept"];
const USAGE =
  'answer with {"action": ...} and exactly one of accept, reject, refine, edit-accept, spelt so, in lower case';

/** Returns the action that was read, or why none was. */
function readWord(value: unknown, offered: readonly AnswerAction[] = ALL): string {
  const read = readAction(value, offered);
  return read.ok ? read.action : read.message;
}

describe("an answer by an action", () => {
  it.each(ALL)("is taken as it is written: %s", (action) => {
    expect(readAction({ action }, ALL)).toStrictEqual({ ok: true, action });
  });

  it("may say more than the action", () => {
    expect(readWord({ action: "reject", comment: "not yet" })).toBe("reject");
  });

  it.each<[action: unknown, described: string]>([
    ["Accept", '"Accept"'],
    ["accept ", '"accept "'],
    ["acept", '"acept"'],
    ["approved", '"approved"'],
    ["", '""'],
    [true, "true"],
    [1, "1"],
    [null, "null"],
    [["accept"], "a list"],
    [{ action: "accept" }, "an object"],
  ])("is refused where it is another word or no word: %j", (action, described) => {
    expect(readAction({ action }, ALL)).toStrictEqual({
      ok: false,
      message: `${described} is no answer to this question; ${USAGE}`,
    });
  });

  it("is refused where the question does not offer it", () => {
    expect(readWord({ action: "refine" }, ["accept", "reject"])).toBe(
      '"refine" is no answer to this question; answer with {"action": ...} and exactly one of accept, reject, spelt so, in lower case',
    );
  });

  it.each<[value: unknown, described: string]>([
    ["accept", '"accept"'],
    [true, "true"],
    [null, "null"],
    [undefined, "an answer without an action"],
    [["accept"], "a list"],
    [{}, "an answer without an action"],
    [{ comment: "yes" }, "an answer without an action"],
    [{ action: undefined }, "an answer without an action"],
    [{ action: undefined, decision: undefined }, "an answer without an action"],
  ])("is refused where it stands in no object, or the object has none: %j", (value, described) => {
    expect(readWord(value)).toBe(`${described} is no answer to this question; ${USAGE}`);
  });

  it("is not one that an answer only inherits", () => {
    expect(readWord(Object.create({ action: "accept" }))).toContain("an answer without an action");
    expect(readWord(Object.create({ decision: "approved" }))).toContain("an answer without an action");
  });
});

describe("an answer by a decision", () => {
  it.each([
    [{ decision: "approved" }, "accept"],
    [{ decision: "rejected" }, "reject"],
    [{ decision: "approved", action: undefined }, "accept"],
    [{ decision: "approved", action: "accept" }, "accept"],
    [{ decision: "approved", action: "edit-accept" }, "edit-accept"],
    [{ decision: "rejected", action: "reject" }, "reject"],
    [{ decision: "rejected", action: "refine" }, "refine"],
  ])("agrees with the action that it means, and with the one that says more: %j", (value, action) => {
    expect(readAction(value, ALL)).toStrictEqual({ ok: true, action });
  });

  it.each([
    ["reject", "approved"],
    ["refine", "approved"],
    ["accept", "rejected"],
    ["edit-accept", "rejected"],
  ])("is refused beside an action that it contradicts: %s and %s", (action, decision) => {
    expect(readAction({ action, decision }, ALL)).toStrictEqual({
      ok: false,
      message: `the action "${action}" and the decision "${decision}" contradict each other; ${USAGE}`,
    });
  });

  it.each<[decision: unknown, described: string]>([
    ["Approved", '"Approved"'],
    ["accept", '"accept"'],
    [true, "true"],
    [null, "null"],
    [["approved"], "a list"],
  ])("is refused where it is another word or no word: %j", (decision, described) => {
    const refused = {
      ok: false,
      message: `${described} is no decision, which is exactly approved or rejected; ${USAGE}`,
    };
    expect(readAction({ decision }, ALL)).toStrictEqual(refused);
    expect(readAction({ action: "accept", decision }, ALL)).toStrictEqual(refused);
  });

  it("is refused beside an action that is no word, whatever the decision says", () => {
    expect(readWord({ action: "yes", decision: "approved" })).toBe(
      `"yes" is no answer to this question; ${USAGE}`,
    );
  });

  it("is refused where the question does not offer the action that it means", () => {
    expect(readWord({ decision: "approved" }, ["reject"])).toContain(
      '"accept" is no answer to this question; ',
    );
  });
});

describe("a member of an answer", () => {
  it.each<[title: string, value: Readonly<Record<string, unknown>>, isThere: boolean]>([
    ["is given with a value", { action: "accept" }, true],
    ["is given with null", { action: null }, true],
    ["is not given as undefined", { action: undefined }, false],
    ["is not given where it is missing", { decision: "approved" }, false],
    ["is not given by inheritance", Object.create({ action: "accept" }), false],
  ])("%s", (_title, value, isThere) => {
    expect(isGiven(value, "action")).toBe(isThere);
  });
});

describe("an answer that is named in a message", () => {
  it.each<[value: unknown, described: string]>([
    ["yes", '"yes"'],
    [' ~"', '" ~\\""'],
    ["a".repeat(32), `"${"a".repeat(32)}"`],
    ["a".repeat(33), "that text"],
    ["\u0007", "that text"],
    ["ja\u007f", "that text"],
    ["\nyes", "that text"],
    ["yes\n", "that text"],
    ["größe", "that text"],
    [undefined, "an answer without an action"],
    [null, "null"],
    [false, "false"],
    [0.5, "0.5"],
    [[], "a list"],
    [{}, "an object"],
  ])("is repeated only where it is short and printable: %j", (value, described) => {
    expect(describeGivenWord(value)).toBe(described);
  });
});

const COLOR = { id: "color", question: "Which color?" };
const SIZE = { id: "size", question: "Which size?", schema: { type: ["string", "null"] } };

describe("the questions of a clarification", () => {
  it("are read with their schemas, and with nothing else", () => {
    expect(readAskableQuestions([COLOR, { ...SIZE, hint: "small" }])).toStrictEqual([COLOR, SIZE]);
  });

  it.each<[title: string, question: unknown]>([
    ["is no object", "Which color?"],
    ["is null", null],
    ["has no id", { question: "?" }],
    ["has an empty id", { id: "", question: "?" }],
    ["has an id that is no text", { id: 7, question: "?" }],
    ["has no text", { id: "q" }],
    ["has an empty text", { id: "q", question: "" }],
    ["has a text that is none", { id: "q", question: ["?"] }],
  ])("leave out one that %s, and cannot be asked with it", (_title, question) => {
    expect(readAskableQuestions([COLOR, question])).toStrictEqual([COLOR]);
    expect(areAskableQuestions([COLOR, question])).toBe(false);
  });

  it.each([[undefined], ["string"], [["string"]]])(
    "leave out a schema that is no object, though not its question: %j",
    (schema) => {
      expect(readAskableQuestions([{ ...COLOR, schema }])).toStrictEqual([COLOR]);
    },
  );

  it.each([[undefined], [COLOR], ["text"]])("are none where there is no list: %j", (value) => {
    expect(readAskableQuestions(value)).toStrictEqual([]);
    expect(areAskableQuestions(value)).toBe(false);
  });

  it.each<[title: string, value: unknown, isAskable: boolean]>([
    ["can be asked where each has its own id", [COLOR, SIZE], true],
    ["can be asked one at a time", [COLOR], true],
    ["cannot be asked where there are none", [], false],
    ["cannot be asked where two have one id", [COLOR, { ...SIZE, id: "color" }], false],
  ])("%s", (_title, value, isAskable) => {
    expect(areAskableQuestions(value)).toBe(isAskable);
  });
});

describe("the answers to a clarification", () => {
  const questions = [COLOR, SIZE];
  const messageOf = (value: unknown, asking: unknown = questions): string => {
    const read = readClarificationAnswers(asking, value);
    return read.ok ? "" : read.message;
  };

  it("are read by the ids of the questions", () => {
    expect(readClarificationAnswers(questions, { answers: { color: "blue", size: "large" } })).toStrictEqual({
      ok: true,
      answers: { color: "blue", size: "large" },
    });
  });

  it("are read from a list, and whatever else an item says is left out", () => {
    const list = [
      { id: "size", answer: "large" },
      { id: "color", answer: "blue", comment: "sky" },
    ];
    expect(readClarificationAnswers(questions, { answers: list })).toStrictEqual({
      ok: true,
      answers: { size: "large", color: "blue" },
    });
  });

  it.each<[title: string, value: unknown]>([
    ["no object at all", "blue"],
    ["null", null],
    ["a list by itself", [{ id: "color", answer: "blue" }]],
    ["an object without answers", { color: "blue", size: "large" }],
    ["a text", { answers: "blue" }],
    ["a list with a text", { answers: [{ id: "color", answer: "blue" }, "large"] }],
    ["a list with an item without an id", { answers: [{ answer: "blue" }] }],
    ["a list with an id that is no text", { answers: [{ id: 7, answer: "blue" }] }],
    ["a list with null", { answers: [null] }],
  ])("are refused with the form they need where they are %s", (_title, value) => {
    expect(readClarificationAnswers(questions, value)).toStrictEqual({
      ok: false,
      message:
        "a clarification is answered with {answers: {<question id>: <answer>}}, or a list of {id, answer}",
    });
  });

  it.each([[null], [[]], [[{ id: "q" }]]])("are refused where nothing is asked: %j", (asking) => {
    const value = { answers: { color: "blue" } };
    expect(messageOf(value, asking)).toBe("nothing that can be answered is asked; cancel the run");
    expect(messageOf({ answers: {} }, asking)).toContain("cancel the run");
  });

  it("are refused where one is to no question, before anything is missed", () => {
    expect(messageOf({ answers: { shape: "round" } })).toBe(
      'no question has the id "shape"; asked are color, size',
    );
    expect(messageOf({ answers: { ["x".repeat(33)]: 1 } })).toContain("no question has the id that text;");
  });

  it("are told the first sixteen ids of many questions", () => {
    const many = Array.from({ length: 20 }, (_, index) => ({ id: `q${index}`, question: "?" }));
    const shown = many.slice(0, 16).map(({ id }) => id);
    expect(messageOf({ answers: { color: "blue" } }, many)).toBe(
      `no question has the id "color"; asked are ${shown.join(", ")}`,
    );
  });

  it("are refused where one question has two", () => {
    const list = ["blue", "red"].map((answer) => ({ id: "color", answer }));
    expect(messageOf({ answers: [{ id: "size", answer: "large" }, ...list] })).toBe(
      "there are two answers to color; give one",
    );
  });

  it.each<[title: string, answers: unknown, missing: string]>([
    ["both", {}, "color, size"],
    ["both, in an empty list", [], "color, size"],
    ["one", { color: "blue" }, "size"],
    ["one that is undefined", { color: undefined, size: "large" }, "color"],
    ["one whose item has no answer", [{ id: "color" }, { id: "size", answer: "large" }], "color"],
    ["one that is null without a schema", { color: null, size: "large" }, "color"],
    ["one with a schema that is undefined", { color: "blue", size: undefined }, "size"],
  ])("are refused where there is none to %s", (_title, answers, missing) => {
    expect(messageOf({ answers })).toBe(`there is no answer to ${missing}`);
  });

  it.each([[null], [""], [0], [false]])("may be %j where a schema may say so", (answer) => {
    const answers = { color: "blue", size: answer };
    expect(readClarificationAnswers(questions, { answers })).toStrictEqual({ ok: true, answers });
  });

  it.each([[""], [0], [false], [[]]])("may be %j also without a schema", (answer) => {
    const answers = { color: answer, size: "large" };
    expect(readClarificationAnswers(questions, { answers })).toStrictEqual({ ok: true, answers });
  });
});
