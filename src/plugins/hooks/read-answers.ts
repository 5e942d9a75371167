/**
 * Owns: reading the answers of hooks by hand: each field once, bounded, strict. An answer may be a trap (a getter, a proxy), and
 * a misspelt field of a gate must not be passed over. Problems are told without a word of the answer.
 */
import { HOOK_LIMITS } from "./hook-limits.ts";
import type { ArbitrateAnswer, DecideAnswer, EscalateAnswer, VerifyAnswer } from "./hook-types.ts";

/** A value that was read from an answer, or why it could not be. */
export type ReadResult<T> =
  { readonly kind: "read"; readonly value: T } | { readonly kind: "malformed"; readonly why: string };

/** The fields of a hook's answer, unchecked. */
type HookAnswerFields = Readonly<Record<string, unknown>>;

const CRITERION = /^[A-Za-z0-9@][A-Za-z0-9._:@/-]*$/;

class Malformed extends Error {}

/**
 * Returns what an `arbitrate` hook answered as a checked award with its reason, `undefined` where it has no opinion,
 * or the problem with a malformed answer.
 */
export function readRuling(answer: unknown): ReadResult<ArbitrateAnswer | undefined> {
  return tryRead(() => {
    if (answer === undefined) return undefined;
    const { award, reason } = pickFields(answer, ["award", "reason"]);
    return {
      award: readOneOf("award", award, ["requester", "holder"]),
      reason: readSentence("reason", reason),
    };
  });
}

/**
 * Returns what a `verify` hook answered as a checked verdict with its criteria, or the problem with a malformed
 * answer.
 */
export function readVerdict(answer: unknown): ReadResult<VerifyAnswer> {
  return tryRead(() => {
    const fields = pickFields(answer, ["verdict", "criteria", "confidence", "target"]);
    const { target } = fields;
    if (target !== undefined && typeof target !== "string") throw new Malformed("`target` is no text");
    return {
      verdict: readOneOf("verdict", fields["verdict"], ["pass", "fail", "revise"]),
      criteria: readCriteria(fields["criteria"]),
      ...readConfidence(fields),
      ...(target !== undefined && { target }),
    };
  });
}

/**
 * Returns what a `decide` hook answered as a checked action, `undefined` where it has no opinion, or the problem with
 * a malformed answer.
 */
export function readDecision(answer: unknown): ReadResult<DecideAnswer | undefined> {
  return tryRead(() => {
    if (answer === undefined) return undefined;
    const fields = pickFields(answer, ["action", "reason", "confidence"]);
    const { reason } = fields;
    return {
      action: readOneOf("action", fields["action"], ["allow", "deny"]),
      ...(reason !== undefined && { reason: readSentence("reason", reason) }),
      ...readConfidence(fields),
    };
  });
}

/**
 * Returns the answer of people that an `escalate` hook passed on, checked and bounded, or the problem with a malformed
 * one.
 */
export function readPeoplesAnswer(value: unknown): ReadResult<EscalateAnswer> {
  return tryRead(() => {
    const fields = pickFields(value, ["answer", "text", "by"]);
    const answer = readOneOf("answer", fields["answer"], ["approve", "deny", "answer"]);
    const text = readOptionalText("text", fields["text"], HOOK_LIMITS.answerCharsMax);
    const by = readName("by", fields["by"], HOOK_LIMITS.answererCharsMax);
    if (answer === "answer" && text === undefined) throw new Malformed("an `answer` has a `text`");
    return {
      answer,
      ...(text !== undefined && { text }),
      ...(by !== undefined && { by }),
    };
  });
}

/** Returns what `read` reads, or why the answer is malformed. */
function tryRead<T>(read: () => T): ReadResult<T> {
  try {
    return { kind: "read", value: read() };
  } catch (error) {
    return { kind: "malformed", why: error instanceof Malformed ? error.message : "it cannot be read" };
  }
}

/** Reads each of the named fields once. @throws Malformed where there are others */
function pickFields(answer: unknown, names: readonly string[]): HookAnswerFields {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer))
    throw new Malformed("it is no object");
  const unknown = Reflect.ownKeys(answer).find((key) => typeof key !== "string" || !names.includes(key));
  if (unknown !== undefined) throw new Malformed(`it has fields other than ${names.join(", ")}`);
  return Object.fromEntries(names.map((name) => [name, (answer as HookAnswerFields)[name]]));
}

function readOneOf<const T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === value);
  if (found === undefined) throw new Malformed(`\`${name}\` is none of ${allowed.join(", ")}`);
  return found;
}

function readConfidence({ confidence }: HookAnswerFields): { readonly confidence?: number } {
  if (confidence === undefined) return {};
  if (typeof confidence !== "number" || !(confidence >= 0 && confidence <= 1))
    throw new Malformed("`confidence` is no number from 0 to 1");
  return { confidence };
}

function readCriteria(criteria: unknown): readonly string[] {
  if (criteria === undefined) return [];
  if (!Array.isArray(criteria)) throw new Malformed("`criteria` is no list");
  const { length } = criteria;
  if (!(length <= HOOK_LIMITS.criteriaMax))
    throw new Malformed(`\`criteria\` has more than ${HOOK_LIMITS.criteriaMax} keys`);
  return Array.from({ length }, (_, index) => readCriterion(criteria[index]));
}

function readCriterion(key: unknown): string {
  if (typeof key !== "string" || key.length > HOOK_LIMITS.keyCharsMax || !CRITERION.test(key))
    throw new Malformed(
      `\`criteria\` has a key that is not a letter, a digit or @, and then at most ${HOOK_LIMITS.keyCharsMax - 1} of A-Z a-z 0-9 . _ : @ / -`,
    );
  return key;
}

function readSentence(name: string, value: unknown): string {
  if (typeof value !== "string") throw new Malformed(`\`${name}\` is no text`);
  const line = cutToLine(value, HOOK_LIMITS.reasonCharsMax);
  if (line === "") throw new Malformed(`\`${name}\` is empty`);
  return line;
}

function readOptionalText(name: string, value: unknown, charsMax: number): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw new Malformed(`\`${name}\` is no text`);
  if (value.trim() === "" || value.length > charsMax)
    throw new Malformed(`\`${name}\` is empty or longer than ${charsMax} characters`);
  return value;
}

/**
 * Returns who answered, as one line cut to `charsMax`; `undefined` where there is nothing to see, so that no answer is
 * lost for an empty name. Throws Malformed where the name is no text.
 */
function readName(name: string, value: unknown, charsMax: number): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw new Malformed(`\`${name}\` is no text`);
  return cutToLine(value, charsMax) || undefined;
}

/** Joins a text into one line without control characters, because people and models are shown it, and cuts that. */
function cutToLine(text: string, charsMax: number): string {
  const line = text.slice(0, 2 * charsMax).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
  return line.trim().slice(0, charsMax).toWellFormed();
}
