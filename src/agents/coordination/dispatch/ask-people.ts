/** Owns: how a question to people is put: its id, its deadline, who is told of it and who may answer. */
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { noticesFor } from "../escalation/notices.ts";
import type { OpenCoordination } from "../ledger/state.ts";

type Asked = FactPayloads["coordination.escalated"];

/** What the question is about; the rest follows from the coordination. */
export type Question = Pick<Asked, "cause" | "kind" | "answers"> &
  Partial<Pick<Asked, "stepId" | "confidence" | "askedBy" | "question" | "conflictId" | "onExpiry">> & {
    /** Sooner than the coordination's own limit. */
    readonly answerMs?: number;
  };

/** A coordination, or one that is just being opened. */
type Asking = Pick<OpenCoordination, "created"> & Partial<Pick<OpenCoordination, "escalations">>;

const ANSWER_MS = 24 * 3_600_000;

/** `after`: questions that are put in the same append, before this one. */
export function asking(
  state: Asking,
  { answerMs, ...question }: Question,
  { now, after = 0 }: { readonly now: EpochMs; readonly after?: number },
): FactDraft & { type: "coordination.escalated" } {
  const { questions = { answerMs: ANSWER_MS } } = state.created;
  const latest = answerBy(state, now);
  const wished = answerMs === undefined ? latest : addMs(now, answerMs);
  const deadlineAtMs = wished < latest ? wished : latest;
  const notices = noticesFor(questions, now, deadlineAtMs);
  return {
    type: "coordination.escalated",
    payload: {
      ...question,
      escalationId: nextEscalationId(state, after),
      deadlineAtMs,
      onExpiry: question.onExpiry ?? "deny",
      ...(questions.requireDifferentApprover && { requireDifferentApprover: true }),
      ...(notices.length > 0 && { notices }),
    },
  };
}

export function nextEscalationId({ escalations }: Asking, after = 0): string {
  return `escalation-${(escalations?.size ?? 0) + after + 1}`;
}

/** A question stays open for its time, and no longer than the plan runs. */
function answerBy({ created }: Asking, now: EpochMs): EpochMs {
  const { plan, questions } = created;
  const byMs = addMs(now, plan?.escalateMs ?? questions?.answerMs ?? ANSWER_MS);
  const deadlineAtMs = plan?.deadlineAtMs;
  return deadlineAtMs !== undefined && deadlineAtMs < byMs ? deadlineAtMs : byMs;
}
