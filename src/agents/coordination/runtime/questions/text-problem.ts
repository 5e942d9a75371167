/**
 * Owns: texts that a question does not take for an answer in words: a bare yes or no where people approve or deny, and anything
 * but the offered answers where there are some. Whoever wrote "no" must not have approved.
 */
import type { Escalation } from "../../ledger/state.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { removeUnseen } from "./plain-text.ts";
import { readQuestion } from "./question-text.ts";

/** Words that people write for a yes or a no, and JSON that stands for nothing else. */
const RULINGS: ReadonlyMap<string, "approve" | "deny" | undefined> = new Map([
  ...["approve", "approved", "accept", "accepted", "allow", "yes", "y", "ok", "okay", "true"].map(
    (word) => [word, "approve"] as const,
  ),
  ...["deny", "denied", "reject", "rejected", "refuse", "refused", "no", "n", "nope", "false"].map(
    (word) => [word, "deny"] as const,
  ),
  ["null", undefined],
]);

/** Returns one sentence for whoever answered; `undefined` where the text is an answer, or its question is closed anyway. */
export async function findTextProblem(
  dependencies: ContentSource,
  { question, isWithheld }: { readonly question: Escalation; readonly isWithheld: boolean },
  text: string,
): Promise<string | undefined> {
  if (question.closed) return undefined;
  const options = (await readQuestion(dependencies, question))?.options ?? [];
  if (options.length > 0) return findOptionProblem(options, text, isWithheld);
  return question.answers?.includes("approve") ? findRulingProblem(text) : undefined;
}

function findOptionProblem(
  options: readonly string[],
  text: string,
  isWithheld: boolean,
): string | undefined {
  const answer = text.trim();
  // People are shown an option without what cannot be seen.
  if (options.some((option) => option === text || removeUnseen(option).trim() === answer)) return undefined;
  if (isWithheld)
    return "the question takes exactly one of its options, which are withheld: an operator reads them with `questions show`; deny it where none of them is right";
  const offered = options.map((option) => JSON.stringify(removeUnseen(option))).join(", ");
  return `the question takes exactly one of ${offered}, spelt so; deny it where none of them is right`;
}

function findRulingProblem(text: string): string | undefined {
  const word = removeUnseen(text)
    .trim()
    .replace(/[.!]+$/u, "")
    .toLowerCase();
  if (!RULINGS.has(word)) return undefined;
  const meant = RULINGS.get(word);
  const hint = meant === undefined ? "" : `; to say so, ${meant} it`;
  return `this question is ruled on with approve or deny, and ${JSON.stringify(word)} as a text would be neither${hint}`;
}
