/** Owns: notices of questions, as channels of the host get them. */
import type { ChannelNotice, Question } from "../../src/agents/coordination/ports/human-channel.ts";
import { OWNER } from "../support/ledger-fixtures.ts";

export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
export const HOUR_MS = 3_600_000;
export const QUESTION_ID = "co-1:escalation-2";

export function noticeOf(
  question: Partial<Record<keyof Question, unknown>> = {},
  chatSession = OWNER,
): ChannelNotice {
  return {
    noticeId: `${QUESTION_ID}:0`,
    notice: 0,
    chatSession,
    signal: new AbortController().signal,
    isOpen: () => Promise.resolve(true),
    question: {
      questionId: QUESTION_ID,
      coordinationId: "co-1",
      escalationId: "escalation-2",
      cause: "confidence",
      kind: "approval",
      stepId: "a",
      ownerSession: OWNER,
      title: "The result of step a states a low confidence.",
      answers: ["approve", "deny", "answer"],
      deadlineAtMs: NOW_MS + HOUR_MS,
      onExpiry: "deny",
      ...question,
    } as Question,
  };
}
