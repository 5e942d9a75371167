/**
 * Owns: the words that rule on a question, and what is said to whoever wrote another one. Does not own: what follows from them.
 *
 * W1 only the exact words count: in another case, misspelt, as another type or not there at all, they are no answer, and never
 * the opposite of one.
 */
import { isRecord, type Values } from "./values.ts";

export type Action = "accept" | "reject" | "refine" | "edit-accept";

export type ReadAction =
  { readonly ok: true; readonly action: Action } | { readonly ok: false; readonly message: string };

/** The older vocabulary of approvals (interrupt.md), and what each word agrees with. */
const DECISIONS: ReadonlyMap<unknown, readonly [action: Action, ...alsoSaid: Action[]]> = new Map([
  ["approved", ["accept", "edit-accept"]],
  ["rejected", ["reject", "refine"]],
] as const);

/** Reads `action`, or the older `decision`, as one of the actions that the question offers. */
export function readAction(value: unknown, offered: readonly Action[]): ReadAction {
  if (!isRecord(value)) return notOffered(value, offered);
  const hasAction = isGiven(value, "action");
  if (!isGiven(value, "decision"))
    return hasAction ? offeredAction(value["action"], offered) : notOffered(undefined, offered);
  const meant = DECISIONS.get(value["decision"]);
  if (!meant) return unknownDecision(value["decision"], offered);
  if (!hasAction) return offeredAction(meant[0], offered);
  const read = offeredAction(value["action"], offered);
  return read.ok && !meant.includes(read.action) ? contradiction(value, offered) : read;
}

export function isGiven(value: Values, name: string): boolean {
  return Object.hasOwn(value, name) && value[name] !== undefined;
}

function offeredAction(given: unknown, offered: readonly Action[]): ReadAction {
  const action = offered.find((each) => each === given);
  return action === undefined ? notOffered(given, offered) : { ok: true, action };
}

function notOffered(given: unknown, offered: readonly Action[]): ReadAction {
  return { ok: false, message: `${describeAnswer(given)} is no answer to this question; ${usage(offered)}` };
}

function unknownDecision(given: unknown, offered: readonly Action[]): ReadAction {
  const words = [...DECISIONS.keys()].map(String).join(" or ");
  const message = `${describeAnswer(given)} is no decision, which is exactly ${words}; ${usage(offered)}`;
  return { ok: false, message };
}

function contradiction({ action, decision }: Values, offered: readonly Action[]): ReadAction {
  const message = `the action ${describeAnswer(action)} and the decision ${describeAnswer(decision)} contradict each other; ${usage(offered)}`;
  return { ok: false, message };
}

function usage(offered: readonly Action[]): string {
  return `answer with {"action": ...} and exactly one of ${offered.join(", ")}, spelt so, in lower case`;
}

const SHOWN_CHARS_MAX = 32;

/** Names what was given; a long or unprintable text is not repeated. */
export function describeAnswer(given: unknown): string {
  if (typeof given === "string")
    return given.length <= SHOWN_CHARS_MAX && /^[\x20-\x7e]*$/u.test(given)
      ? JSON.stringify(given)
      : "that text";
  if (given === undefined) return "an answer without an action";
  if (given === null || typeof given === "boolean" || typeof given === "number") return String(given);
  return Array.isArray(given) ? "a list" : "an object";
}
