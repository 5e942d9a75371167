/** Owns: what hosts ask about questions to people, and what they are answered. */
import type { Answerer, AnswerKind, Channel, QuestionText } from "../../contracts/escalation.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { CoordinationId, EpochMs, SessionKey, StepId } from "../../contracts/ids.ts";
import type { RefusalCode } from "../../dispatch/decision.ts";

/** Returns the id by which people name a question among those of all coordinations. */
export function createQuestionId(coordinationId: CoordinationId, escalationId: string): string {
  return `${coordinationId}:${escalationId}`;
}

/**
 * Returns the coordination and the question that an id of `createQuestionId` names; `undefined` where the text is no
 * such id. Coordination ids may hold colons, ids of questions do not.
 */
export function parseQuestionId(
  questionId: string,
): { readonly coordinationId: CoordinationId; readonly escalationId: string } | undefined {
  const at = questionId.lastIndexOf(":");
  if (at < 1 || at === questionId.length - 1) return undefined;
  return {
    coordinationId: questionId.slice(0, at) as CoordinationId,
    escalationId: questionId.slice(at + 1),
  };
}

export interface AnswerRequest {
  readonly questionId: string;
  readonly answer: AnswerKind;
  /** Comes with `answer` and with nothing else: a replacement for a result as text or JSON, or what an agent asked for. */
  readonly text?: string;
  readonly by: Answerer;
  readonly through: Channel;
}

export type QuestionAnswered =
  | {
      readonly kind: "accepted";
      readonly questionId: string;
      readonly resolution: FactPayloads["escalation.closed"]["resolution"];
      /** The option that was chosen, where the question offers some. */
      readonly option?: string;
    }
  | {
      readonly kind: "refused";
      readonly code: RefusalCode | "NOT_FOUND" | "TEXT_TOO_LONG";
      /** One sentence for whoever answered. */
      readonly reason: string;
      /** How the question was closed; absent for one that is not, or is not known. */
      readonly resolution?: FactPayloads["escalation.closed"]["resolution"];
    };

/** The answer of a session's model to its child. */
export interface ParentAnswer {
  readonly questionId: string;
  /** The session that answers, as the host names it (H3). */
  readonly session: SessionKey;
  /** Absent: it does not know, or says no. */
  readonly text?: string;
}

/** An open question that a session is asked by its child. */
export interface QuestionToSession {
  readonly questionId: string;
  readonly deadlineAtMs: EpochMs;
  readonly stepId?: StepId;
  /** Absent where they are withheld, or not kept any more. */
  readonly words?: QuestionText;
  readonly isWithheld: boolean;
}

/** The questions to a session in one coordination that expire first, and how many more are not listed. */
export interface QuestionsToSession {
  readonly questions: readonly QuestionToSession[];
  readonly leftOut: number;
}

/** A question of an agent to people, or to its parent. */
export interface AskRequest {
  readonly askedBy: SessionKey;
  /** Absent: people. */
  readonly to?: "parent";
  readonly agentId: string;
  readonly kind: "approval" | "clarification";
  readonly question: string;
  readonly options?: readonly string[];
  /** Counts when nobody answers in time. */
  readonly otherwise?: string;
  readonly answerMs?: number;
  readonly traceId?: string;
}

export type AskOutcome =
  | { readonly kind: "asked"; readonly questionId: string; readonly deadlineAtMs: EpochMs }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly reason: string };

/** The fate of a question, for the agent that asked it. */
export type QuestionOutcome =
  | { readonly kind: "open" }
  | {
      readonly kind: "closed";
      readonly resolution: FactPayloads["escalation.closed"]["resolution"];
      /** The answer as text; where nobody answered, what was to count otherwise. */
      readonly text?: string;
    };

/** Requests of a host about questions; part of the coordinator. */
export interface QuestionRequests {
  /** The first answer that may count does (E1). @throws CoordinationError when it could not be recorded. */
  answer(request: AnswerRequest): Promise<QuestionAnswered>;
  /** True where the question was settled by this answer of this answerer, of the same kind and text. It records nothing. */
  isCountedAnswer(request: AnswerRequest): Promise<boolean>;
  /** The model of a session answers a question that this very session was asked. @throws CoordinationError as `answer` */
  answerChild(answer: ParentAnswer): Promise<QuestionAnswered>;
  /** Lists open questions of a session's children to it in a coordination, those that expire first, bounded. */
  listQuestionsTo(session: SessionKey, coordinationId: CoordinationId): Promise<QuestionsToSession>;
  /** Puts a question to people, or to the parent of the session that asks. @throws CoordinationError when it could not be recorded. */
  ask(request: AskRequest): Promise<AskOutcome>;
  /** Resolves when the question is closed, or with `open` when that takes longer than `waitMs`; what it tells is told then. */
  outcome(questionId: string, waitMs: number, signal?: AbortSignal): Promise<QuestionOutcome>;
}
