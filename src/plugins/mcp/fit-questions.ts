/** Owns: that a list of questions fits into one answer: their long members are left out where there is no room for them. */
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { countCharsLeft } from "../../platform/write-json.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import { COUNTED_PER_CHAR, type ToolFields } from "./mcp-tool.ts";

/** Questions as they are listed, with a sentence about what was left out of them; empty where that is nothing. */
export interface FittedQuestions {
  readonly questions: readonly ToolFields[];
  readonly omission: string;
}

/** A member with more characters is left out of a question that does not fit as a whole. */
const MEMBER_CHARS_MAX = 1_000;

/**
 * Returns the questions as they fit into an answer that has the data `beside` them: from the first one on for which
 * there is no room, each is without its long members, and `omission` says how many are and that `elsewhere` has them.
 */
export function fitQuestions(
  questions: readonly ToolFields[],
  beside: ToolFields,
  elsewhere: string,
): FittedQuestions {
  // Then the answer has none of it.
  if (countCharsLeft(beside, COUNTED_PER_CHAR * MCP_BOUNDS.resultCharsMax) < 0)
    return { questions, omission: "" };
  const shortened = questions.map(shortenQuestion);
  const shortChars = shortened.reduce((sum, question) => sum + formatListMember(question).length, 0);
  let left = MCP_BOUNDS.resultCharsMax - formatListMember(beside).length - shortChars;
  let wholeCount = 0;
  for (const [at, question] of questions.entries()) {
    left -= countExtraChars(question, shortened[at], left);
    if (left < 0) break;
    wholeCount = at + 1;
  }
  const shortenedRest = shortened.slice(wholeCount);
  const omitted = shortenedRest.filter((question, at) => question !== questions[wholeCount + at]).length;
  if (omitted === 0) return { questions, omission: "" };
  const subject = `${formatCount(omitted, "question")} ${omitted === 1 ? "is" : "are"} listed`;
  return {
    questions: [...questions.slice(0, wholeCount), ...shortenedRest],
    omission: `${subject} without texts that are too long here: ${elsewhere}.`,
  };
}

/** Counts the characters of a question beyond those of its short form; for one that is far too large more than `most`. */
function countExtraChars(question: ToolFields, short: ToolFields | undefined, most: number): number {
  if (question === short) return 0;
  if (countCharsLeft(question, COUNTED_PER_CHAR * most) < 0) return Number.POSITIVE_INFINITY;
  return formatListMember(question).length - formatListMember(short).length;
}

function shortenQuestion(question: ToolFields): ToolFields {
  const members = Object.entries(question);
  const short = members.filter(([, member]) => countCharsLeft(member, MEMBER_CHARS_MAX) >= 0);
  return short.length === members.length ? question : Object.fromEntries(short);
}

/** Writes a value as it is written in a list of an answer. */
function formatListMember(value: unknown): string {
  return JSON.stringify([[value]], undefined, 2);
}
