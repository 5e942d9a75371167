/** Owns: the form in which what an agent asks is kept beside the log. */
import { questionTextSchema, type QuestionText } from "../../contracts/escalation.ts";
import type { Escalation } from "../../ledger/state.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { parseJsonOrNothing } from "../../std/parse-json.ts";

export function writeQuestion(text: QuestionText): string {
  return JSON.stringify(questionTextSchema.parse(text));
}

/** `undefined` where nothing was written, or it is not kept any more, or not in that form. */
export async function readQuestion(
  { content }: ContentSource,
  { question }: Pick<Escalation, "question">,
): Promise<QuestionText | undefined> {
  const json = question && (await content.get(question.sha256));
  return json === undefined ? undefined : questionTextSchema.safeParse(parseJsonOrNothing(json)).data;
}
