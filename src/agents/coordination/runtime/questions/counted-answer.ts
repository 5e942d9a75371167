/** Owns: whether an answer that is given again is the one that counted. */
import type { Escalation } from "../../ledger/state.ts";
import { isQuestionAboutResult } from "../../ledger/evolve-questions.ts";
import { isWithinOutputBounds } from "../../plan/read-outputs.ts";
import { isJsonObject, type Json, type JsonObject } from "../../plan/step-graph.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { formatCanonicalJson } from "../../std/canonical-json.ts";
import { createOutputsContent } from "../attempts/attempt-outcome.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findQuestion } from "./await-answer.ts";
import { parseQuestionId, type AnswerRequest } from "./question-requests.ts";
import { readAnswerText } from "./text-problem.ts";

/** True where the question was settled by this answer of this answerer: of the same kind and with the same text. */
export async function isCountedAnswer(
  dependencies: RuntimeDependencies,
  { questionId, answer, text, by }: AnswerRequest,
): Promise<boolean> {
  const named = parseQuestionId(questionId);
  const state = named && (await dependencies.runs.latest(named.coordinationId));
  const question = state && findQuestion(state, named.escalationId);
  if (!question?.answered) return false;
  const { answered: counted } = question;
  if (counted.answer !== answer || formatCanonicalJson(counted.by) !== formatCanonicalJson(by)) return false;
  const outputs = text === undefined ? undefined : await readOutputsOfAnswer(dependencies, question, text);
  return counted.text?.sha256 === (outputs && createOutputsContent(dependencies, outputs).ref.sha256);
}

/**
 * Reads the text of an answer as outputs, as it was read while the question was open, unless it came by a chat, whose
 * numbers and cut options are not read here; `undefined` where it is no answer.
 */
async function readOutputsOfAnswer(
  dependencies: ContentSource,
  { closed: _, ...question }: Escalation,
  text: string,
): Promise<JsonObject | undefined> {
  if (isQuestionAboutResult(question)) return parseOutputsOrWrap(text);
  const read = await readAnswerText(dependencies, { question, text, isWithheld: false, isByChat: false });
  return "problem" in read ? undefined : { text: read.text };
}

/**
 * Returns the outputs that the text of an answer replaces a result with: a JSON object within the bounds of outputs as
 * it is, and any other text under `text`.
 */
export function parseOutputsOrWrap(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    if (isJsonObject(value) && isWithinOutputBounds(value)) return value;
  } catch {
    // Any other text is an answer in words.
  }
  return { text };
}
