/** Owns: that a list of questions fits into one answer: their long members are left out where there is no room for them. */
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { countCharsLeft } from "../../platform/write-json.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import { COUNTED_PER_CHAR, type Fields } from "./mcp-tool.ts";

/** Questions as they are listed, with a sentence about what was left out of them; empty where that is nothing. */
export interface FittedQuestions {
  readonly questions: readonly Fields[];
  readonly omission: string;
}

/** A member with more characters is left out of a question that does not fit as a whole. */
const MEMBER_CHARS_MAX = 1_000;

/**
 * Fits questions into an answer that has other data beside them. From the first one on for which there is no room, each is shown
 * without its long members; `elsewhere` says where these are.
 */
export function fitQuestions(
  questions: readonly Fields[],
  beside: Fields,
  elsewhere: string,
): FittedQuestions {
  // Then the answer has none of it.
  if (countCharsLeft(beside, COUNTED_PER_CHAR * MCP_BOUNDS.resultCharsMax) < 0)
    return { questions, omission: "" };
  const shortened = questions.map(shortenQuestion);
  const shortChars = shortened.reduce((sum, question) => sum + writeMember(question).length, 0);
  let left = MCP_BOUNDS.resultCharsMax - writeMember(beside).length - shortChars;
  let whole = 0;
  for (const [at, question] of questions.entries()) {
    left -= countMore(question, shortened[at], left);
    if (left < 0) break;
    whole = at + 1;
  }
  const rest = shortened.slice(whole);
  const omitted = rest.filter((question, at) => question !== questions[whole + at]).length;
  if (omitted === 0) return { questions, omission: "" };
  const subject = `${formatCount(omitted, "question")} ${omitted === 1 ? "is" : "are"} listed`;
  return {
    questions: [...questions.slice(0, whole), ...rest],
    omission: `${subject} without texts that are too long here: ${elsewhere}.`,
  };
}

/** Counts the characters of a question beyond those of its short form; for one that is far too large more than `most`. */
function countMore(question: Fields, short: Fields | undefined, most: number): number {
  if (question === short) return 0;
  if (countCharsLeft(question, COUNTED_PER_CHAR * most) < 0) return Number.POSITIVE_INFINITY;
  return writeMember(question).length - writeMember(short).length;
}

function shortenQuestion(question: Fields): Fields {
  const members = Object.entries(question);
  const short = members.filter(([, member]) => countCharsLeft(member, MEMBER_CHARS_MAX) >= 0);
  return short.length === members.length ? question : Object.fromEntries(short);
}

/** Writes a value as it is written in a list of an answer. */
function writeMember(value: unknown): string {
  return JSON.stringify([[value]], undefined, 2);
}
