/** Owns: which answers belong to the questions of a clarification, and what is wrong with others. */
import { describeGivenWord } from "./answer-words.ts";
import type { Values } from "./values.ts";
import { isRecord } from "../../std/is-record.ts";

export interface AskedQuestion {
  readonly id: string;
  readonly question: string;
  /** The schema of an answer; without it, anything but null. */
  readonly schema?: Values;
}

export type ReadAnswers =
  { readonly ok: true; readonly answers: Values } | { readonly ok: false; readonly message: string };

/** The id of a question, and its answer. */
type AnswerPair = readonly [id: string, answer: unknown];

/**
 * Reads the questions of a clarification that can be asked: those with an id and a text; whatever else is in the value
 * is left out.
 */
export function readAskableQuestions(value: unknown): AskedQuestion[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isRecord)
    .flatMap(({ id, question, schema }) =>
      typeof id === "string" && typeof question === "string" && id && question
        ? [{ id, question, ...(isRecord(schema) && { schema }) }]
        : [],
    );
}

/** True when the value is a list of questions that can all be asked, each with an id of its own. */
export function areAskableQuestions(value: unknown): value is readonly (Values & { readonly id: string })[] {
  const questions = readAskableQuestions(value);
  const ids = new Set(questions.map(({ id }) => id));
  return Array.isArray(value) && value.length > 0 && ids.size === value.length;
}

/**
 * Reads the answers to a clarification by the questions' ids, or as a list (interrupt.md), or returns the problem:
 * each question needs one answer, and what was not asked none.
 */
export function readClarificationAnswers(questions: unknown, value: unknown): ReadAnswers {
  const givenAnswers = isRecord(value) ? value["answers"] : undefined;
  const pairs = Array.isArray(givenAnswers)
    ? readAnswerList(givenAnswers)
    : isRecord(givenAnswers)
      ? Object.entries(givenAnswers)
      : undefined;
  if (!pairs)
    return refuseAnswers(
      "a clarification is answered with {answers: {<question id>: <answer>}}, or a list of {id, answer}",
    );
  const questionList = readAskableQuestions(questions);
  if (questionList.length === 0)
    return refuseAnswers("nothing that can be answered is asked; cancel the run");
  const problem = findIdProblem(pairs, questionList);
  if (problem !== undefined) return refuseAnswers(problem);
  const answers = new Map(pairs);
  const missing = questionList
    .filter(({ id, schema }) => isUnanswered(answers.get(id), schema))
    .map(({ id }) => id);
  if (missing.length > 0) return refuseAnswers(`there is no answer to ${missing.join(", ")}`);
  return { ok: true, answers: Object.fromEntries(pairs) };
}

/** Finds a foreign, missing or repeated id in one pass over each list, because strangers write both. */
function findIdProblem(
  pairs: readonly AnswerPair[],
  questionList: readonly AskedQuestion[],
): string | undefined {
  const ids = new Set(questionList.map(({ id }) => id));
  const foreign = pairs.find(([id]) => !ids.has(id));
  if (foreign) {
    const knownIds = questionList.slice(0, SHOWN_IDS_MAX).map(({ id }) => id);
    return `no question has the id ${describeGivenWord(foreign[0])}; asked are ${knownIds.join(", ")}`;
  }
  const seen = new Set<string>();
  for (const [id] of pairs) {
    if (seen.has(id)) return `there are two answers to ${id}; give one`;
    seen.add(id);
  }
  return undefined;
}

const SHOWN_IDS_MAX = 16;

/** Null is an answer only where a schema may say so. */
function isUnanswered(answer: unknown, schema: Values | undefined): boolean {
  return answer === undefined || (answer === null && !schema);
}

/** Reads a list of answers as pairs of id and answer; `undefined` where an item is no answer to a question. */
function readAnswerList(list: readonly unknown[]): readonly AnswerPair[] | undefined {
  const pairs = list.flatMap((item) =>
    isRecord(item) && typeof item["id"] === "string" ? [[item["id"], item["answer"]] as const] : [],
  );
  return pairs.length === list.length ? pairs : undefined;
}

function refuseAnswers(message: string): ReadAnswers {
  return { ok: false, message };
}
