/**
 * Owns: whether an answer to a question counts. The first one that may answer counts; whether it comes in time is ruled by the
 * clock of the ledger, not of the channel. The model of a session answers what that session was asked, in its time, and nothing else.
 */
import type { Answerer, AnswerKind, AnswerRefusal } from "../contracts/escalation.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs, SessionKey } from "../contracts/ids.ts";

type AskedQuestion = Pick<
  FactPayloads["coordination.escalated"],
  "answers" | "askedBy" | "askedOf" | "requireDifferentApprover" | "deadlineAtMs"
>;

/** Answers that people could give before questions named them. */
const ANSWERS_BEFORE = ["approve", "deny"] as const;

/**
 * Lists the kinds of answer that a question takes; for a question of 0.1.0, which named none, those of that release.
 */
export function listPossibleAnswers({ answers }: Pick<AskedQuestion, "answers">): readonly AnswerKind[] {
  return answers ?? ANSWERS_BEFORE;
}

/**
 * Returns the reason why an answer to a question does not count (closed, expired, no such answer, or not theirs to
 * give); `undefined` when it counts.
 */
export function findAnswerRefusal(
  question: AskedQuestion & { readonly closed?: unknown; readonly forwardedAtMs?: EpochMs },
  {
    answer,
    by,
    hasText,
    planOwners = [],
    now,
  }: {
    readonly answer: AnswerKind;
    readonly by: Answerer;
    readonly hasText: boolean;
    /** The sessions whose plan the question belongs to, and whose plans are around that. */
    readonly planOwners?: readonly SessionKey[];
    readonly now: EpochMs;
  },
): AnswerRefusal | undefined {
  if (question.closed) return "closed";
  if (now >= question.deadlineAtMs) return "expired";
  const refusedAgent = by.kind === "agent" ? findAgentRefusal(question, by) : undefined;
  if (refusedAgent) return refusedAgent;
  if (!listPossibleAnswers(question).includes(answer) || hasText !== (answer === "answer"))
    return "not_an_answer";
  return question.requireDifferentApprover && isOfSameSession(question, by, planOwners)
    ? "same_session"
    : undefined;
}

/**
 * True for the session that the question is about, and for people in a session whose plan it is, or is in. The model
 * of such a session answers only what it was asked itself.
 */
function isOfSameSession(
  { askedBy }: AskedQuestion,
  { kind, session }: Answerer,
  planOwners: readonly SessionKey[],
): boolean {
  if (session === undefined) return false;
  return session === askedBy || (kind !== "agent" && planOwners.includes(session));
}

/** Returns why what the model of a session answers does not count: it was not asked, or people are asked now. */
function findAgentRefusal(
  { askedOf, forwardedAtMs }: AskedQuestion & { readonly forwardedAtMs?: EpochMs },
  { session }: Answerer,
): AnswerRefusal | undefined {
  if (askedOf === undefined || askedOf !== session) return "not_allowed";
  return forwardedAtMs === undefined ? undefined : "expired";
}
