/** Owns: drafting a question to people: its id, its deadline, who is notified of it and who may answer. */
import type { RevisedCommand } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { scheduleNotices } from "../escalation/notices.ts";
import type { OpenCoordination } from "../ledger/state.ts";

type EscalatedPayload = FactPayloads["coordination.escalated"];

/** The subject of a question. Everything else about it follows from the coordination. */
export type EscalationSubject = Pick<EscalatedPayload, "cause" | "kind" | "answers"> &
  Partial<
    Pick<
      EscalatedPayload,
      "stepId" | "confidence" | "askedBy" | "askedOf" | "question" | "conflictId" | "onExpiry"
    >
  > & {
    /** How long people may take, in milliseconds, where that is less than the limit of the coordination. */
    readonly answerMs?: number;
  };

/** The parts of a coordination that a question follows from; also one that is just being opened. */
type QuestionContext = Pick<OpenCoordination, "created"> & Partial<Pick<OpenCoordination, "escalations">>;

const ANSWER_MS = 24 * 3_600_000;

/**
 * Drafts the fact that asks a question of people, or of a parent's session where the question says so, with its id,
 * deadline and notices. `questionsBefore` counts the questions that the same append asks before this one.
 */
export function draftQuestion(
  state: QuestionContext,
  { answerMs, ...question }: EscalationSubject,
  { now, questionsBefore = 0 }: { readonly now: EpochMs; readonly questionsBefore?: number },
): FactDraft & { type: "coordination.escalated" } {
  const { questions = { answerMs: ANSWER_MS } } = state.created;
  const deadlineAtMs = computeAnswerDeadline(state, now, answerMs);
  const notices = question.askedOf ? [] : scheduleNotices(questions, now, deadlineAtMs);
  return {
    type: "coordination.escalated",
    payload: {
      ...question,
      escalationId: createEscalationId(state, questionsBefore),
      deadlineAtMs,
      onExpiry: question.onExpiry ?? "deny",
      ...(questions.requireDifferentApprover && { requireDifferentApprover: true }),
      ...(notices.length > 0 && { notices }),
    },
  };
}

/**
 * Drafts the fact that passes a question on to people after a parent's session was asked first, with a new deadline
 * and notices. `answerMs`: how long people may take at most.
 */
export function draftForwardingToPeople(
  state: QuestionContext,
  { escalationId }: EscalatedPayload,
  now: EpochMs,
  answerMs?: number,
): FactDraft {
  const deadlineAtMs = computeAnswerDeadline(state, now, answerMs);
  const notices = scheduleNotices(state.created.questions ?? {}, now, deadlineAtMs);
  return {
    type: "escalation.forwarded",
    payload: { escalationId, deadlineAtMs, ...(notices.length > 0 && { notices }) },
  };
}

/**
 * Returns the id of the next question of a coordination, by its number; `questionsBefore` counts those that the same
 * append asks before it.
 */
export function createEscalationId({ escalations }: QuestionContext, questionsBefore = 0): string {
  return `escalation-${(escalations?.size ?? 0) + questionsBefore + 1}`;
}

/** When people would be asked, and for what kind of command. */
export interface QuestionTiming {
  readonly now: EpochMs;
  readonly asEarlier?: RevisedCommand["asEarlier"] | undefined;
}

/**
 * True when the plan's deadline has passed, so that a question would be over as soon as it is asked; false in a
 * history of an earlier release, which asked it all the same.
 */
export function isTooLateToAsk({ created }: QuestionContext, { now, asEarlier }: QuestionTiming): boolean {
  return !asEarlier && now >= (created.plan?.deadlineAtMs ?? Infinity);
}

/** Returns until when people may answer: the wished time, cut to the coordination's limit and the plan's deadline. */
function computeAnswerDeadline({ created }: QuestionContext, now: EpochMs, wishedMs = Infinity): EpochMs {
  const { plan, questions } = created;
  const longestMs = plan?.escalateMs ?? questions?.answerMs ?? ANSWER_MS;
  const answerByMs = addMs(now, Math.min(wishedMs, longestMs));
  const deadlineAtMs = plan?.deadlineAtMs;
  return deadlineAtMs !== undefined && deadlineAtMs < answerByMs ? deadlineAtMs : answerByMs;
}
