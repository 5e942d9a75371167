/**
 * Owns: texts that a question does not take for an answer in words: a bare yes or no where people approve or deny, and anything
 * but the offered answers where there are some. Whoever wrote "no" must not have approved.
 */
import { canNumberOptions } from "../../contracts/escalation.ts";
import type { Escalation } from "../../ledger/state.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { findOption } from "./chosen-option.ts";
import { removeUnseen } from "./plain-text.ts";
import { readQuestionText } from "./question-text.ts";

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

/** A text as it is given to a question. */
export interface GivenText {
  readonly question: Escalation;
  readonly text: string;
  readonly isWithheld: boolean;
  /** Whether it came by a chat, which shows options with their numbers. */
  readonly isByChat: boolean;
}

/** The text that counts, and the option where it is one; or one sentence for whoever answered. */
export type ReadText = { readonly text: string; readonly option?: string } | { readonly problem: string };

/**
 * Returns the text of an answer, with options the one that is meant, or the problem for which the answer is not taken.
 * A question that is closed anyway takes every text.
 */
export async function readAnswerText(dependencies: ContentSource, submitted: GivenText): Promise<ReadText> {
  const { question, text } = submitted;
  if (question.closed) return { text };
  const options = (await readQuestionText(dependencies, question))?.options ?? [];
  if (options.length > 0) return readChosenOption(options, submitted);
  const problem = question.answers?.includes("approve") ? findRulingProblem(text) : undefined;
  return problem === undefined ? { text } : { problem };
}

/**
 * Reads the text as one of the options of its question; a problem names the options that may be chosen, unless they
 * are withheld.
 */
function readChosenOption(
  options: readonly string[],
  { text, isWithheld, isByChat }: Omit<GivenText, "question">,
): ReadText {
  const isShownInChat = isByChat && !isWithheld;
  const option = findOption(options, text, { isShownInChat });
  if (option !== undefined) return { text: option, option };
  if (isWithheld)
    return {
      problem:
        "the question takes exactly one of its options, which are withheld: an operator reads them with `questions show`; deny it where none of them is right",
    };
  const offered = options.map((each) => JSON.stringify(removeUnseen(each))).join(", ");
  return {
    problem:
      isShownInChat && canNumberOptions(options)
        ? `the question takes one of its options, or the number of one (1 to ${options.length}): ${offered}; deny it where none of them is right`
        : `the question takes exactly one of ${offered}, spelt so; deny it where none of them is right`,
  };
}

/** Says why a bare yes or no is no answer in words; `undefined` for any other text. */
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
