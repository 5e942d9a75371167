/** Owns: what a notice says of a question, as JSON. A field more is no new version; a field less or another meaning is. */
import type { ChannelNotice, Question } from "../../agents/coordination/ports/human-channel.ts";

const VERSION = 1;

const HOW =
  "POST JSON with questionId, answerToken, answer, and text where the answer is a text; by.id names who answered. " +
  "Sign it as this request is signed, with a webhook-id of its own.";

export interface AnswerInvitation {
  readonly token: string;
  /** Where answers are taken, where that is known. */
  readonly url?: string | undefined;
}

/**
 * Returns the JSON body of the notice that tells a webhook of a question. `invitation`: where and with which token to
 * answer; absent where answers of this webhook do not count.
 */
export function formatQuestionBody(notice: ChannelNotice, invitation: AnswerInvitation | undefined): string {
  return JSON.stringify({
    type: "coordination.question",
    version: VERSION,
    noticeId: notice.noticeId,
    notice: notice.notice,
    question: pickQuestionFields(notice.question),
    answer: invitation && {
      url: invitation.url,
      answerToken: invitation.token,
      choices: notice.question.answers,
      how: HOW,
    },
  });
}

/**
 * Returns only the fields of a question that may be sent, each named here, and its deadline as a date, too. A field
 * that questions get later is not sent before it is added here.
 */
function pickQuestionFields(question: Question): Question & { readonly deadline: string } {
  const { stepId, askedBy, text, options, confidence } = question;
  return {
    questionId: question.questionId,
    coordinationId: question.coordinationId,
    escalationId: question.escalationId,
    cause: question.cause,
    kind: question.kind,
    title: question.title,
    ...(stepId === undefined ? {} : { stepId }),
    ownerSession: question.ownerSession,
    ...(askedBy === undefined ? {} : { askedBy }),
    ...(text === undefined ? {} : { text }),
    ...(options === undefined ? {} : { options }),
    answers: question.answers,
    deadlineAtMs: question.deadlineAtMs,
    deadline: new Date(question.deadlineAtMs).toISOString(),
    onExpiry: question.onExpiry,
    ...(confidence === undefined ? {} : { confidence }),
  };
}
