/**
 * Owns: the words that rule on a question, and what is said to whoever wrote another one. Does not own: what follows from them.
 *
 * W1 only the exact words count: in another case, misspelt, as another type or not there at all, they are no answer, and never
 * the opposite of one.
 */
import type { Values } from "./values.ts";
import { isRecord } from "../../std/is-record.ts";

/** A decision that people can make on what they are asked to review. */
export type AnswerAction = "accept" | "reject" | "refine" | "edit-accept";

export type ReadAction =
  { readonly ok: true; readonly action: AnswerAction } | { readonly ok: false; readonly message: string };

/** The older vocabulary of approvals (interrupt.md), and what each word agrees with. */
const DECISIONS: ReadonlyMap<unknown, readonly [action: AnswerAction, ...alsoSaid: AnswerAction[]]> = new Map(
  [
    ["approved", ["accept", "edit-accept"]],
    ["rejected", ["reject", "refine"]],
  ] as const,
);

/**
 * Reads from an answer `action`, or the older `decision`, as one of the actions that the question offers; else returns
 * the problem.
 */
export function readAction(value: unknown, offered: readonly AnswerAction[]): ReadAction {
  if (!isRecord(value)) return refuseUnoffered(value, offered);
  const hasAction = isGiven(value, "action");
  if (!isGiven(value, "decision"))
    return hasAction ? readOfferedAction(value["action"], offered) : refuseUnoffered(undefined, offered);
  const meant = DECISIONS.get(value["decision"]);
  if (!meant) return refuseUnknownDecision(value["decision"], offered);
  if (!hasAction) return readOfferedAction(meant[0], offered);
  const read = readOfferedAction(value["action"], offered);
  return read.ok && !meant.includes(read.action) ? refuseContradiction(value, offered) : read;
}

/** True when an answer has the named member with a value. */
export function isGiven(value: Values, name: string): boolean {
  return Object.hasOwn(value, name) && value[name] !== undefined;
}

function readOfferedAction(word: unknown, offered: readonly AnswerAction[]): ReadAction {
  const action = offered.find((each) => each === word);
  return action === undefined ? refuseUnoffered(word, offered) : { ok: true, action };
}

function refuseUnoffered(word: unknown, offered: readonly AnswerAction[]): ReadAction {
  return {
    ok: false,
    message: `${describeGivenWord(word)} is no answer to this question; ${describeUsage(offered)}`,
  };
}

function refuseUnknownDecision(word: unknown, offered: readonly AnswerAction[]): ReadAction {
  const words = [...DECISIONS.keys()].map(String).join(" or ");
  const message = `${describeGivenWord(word)} is no decision, which is exactly ${words}; ${describeUsage(offered)}`;
  return { ok: false, message };
}

function refuseContradiction({ action, decision }: Values, offered: readonly AnswerAction[]): ReadAction {
  const message = `the action ${describeGivenWord(action)} and the decision ${describeGivenWord(decision)} contradict each other; ${describeUsage(offered)}`;
  return { ok: false, message };
}

function describeUsage(offered: readonly AnswerAction[]): string {
  return `answer with {"action": ...} and exactly one of ${offered.join(", ")}, spelt so, in lower case`;
}

const SHOWN_CHARS_MAX = 32;

/** Returns the words for a value that was given in an answer; a long or unprintable text is not repeated. */
export function describeGivenWord(value: unknown): string {
  if (typeof value === "string")
    return value.length <= SHOWN_CHARS_MAX && /^[\x20-\x7e]*$/u.test(value)
      ? JSON.stringify(value)
      : "that text";
  if (value === undefined) return "an answer without an action";
  if (value === null || typeof value === "boolean" || typeof value === "number") return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}
