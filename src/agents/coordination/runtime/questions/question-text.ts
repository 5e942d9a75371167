/** Owns: the form in which what an agent asks is kept beside the log. */
import { questionTextSchema, type QuestionText } from "../../contracts/escalation.ts";
import type { Escalation } from "../../ledger/state.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { parseJsonOrNothing } from "../../std/parse-json.ts";

/** Returns the text of a question as JSON; throws where it is not of its schema. */
export function encodeQuestion(text: QuestionText): string {
  return JSON.stringify(questionTextSchema.parse(text));
}

/**
 * Reads the kept text of a question that an agent asked; `undefined` where it wrote none, or the text is not kept, or
 * not in that form.
 */
export async function readQuestionText(
  { content }: ContentSource,
  { question }: Pick<Escalation, "question">,
): Promise<QuestionText | undefined> {
  const json = question && (await content.get(question.sha256));
  return json === undefined ? undefined : questionTextSchema.safeParse(parseJsonOrNothing(json)).data;
}
