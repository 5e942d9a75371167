/** Owns: what hosts ask about questions to people, and what they are answered. */
import type { Answerer, AnswerKind, Channel } from "../../contracts/escalation.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { CoordinationId, EpochMs, SessionKey } from "../../contracts/ids.ts";
import type { RefusalCode } from "../../dispatch/decision.ts";

/** Names a question over all coordinations, as people write it. */
export function questionIdOf(coordinationId: CoordinationId, escalationId: string): string {
  return `${coordinationId}:${escalationId}`;
}

/** `undefined` for what names no question. Coordination ids may hold colons, ids of questions do not. */
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
    }
  | {
      readonly kind: "refused";
      readonly code: RefusalCode | "NOT_FOUND" | "TEXT_TOO_LONG";
      /** One sentence for whoever answered. */
      readonly reason: string;
    };

/** What an agent asks people. */
export interface AskRequest {
  readonly askedBy: SessionKey;
  readonly agentId: string;
  readonly kind: "approval" | "clarification";
  readonly question: string;
  readonly options?: readonly string[];
  /** Counts when nobody answers in time. */
  readonly otherwise?: string;
  readonly answerMs?: number;
  readonly traceId?: string;
}

export type Asked =
  | { readonly kind: "asked"; readonly questionId: string; readonly deadlineAtMs: EpochMs }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly reason: string };

/** What became of a question, for the agent that asked it. */
export type QuestionOutcome =
  | { readonly kind: "open" }
  | {
      readonly kind: "closed";
      readonly resolution: FactPayloads["escalation.closed"]["resolution"];
      /** The answer as text; where nobody answered, what was to count otherwise. */
      readonly text?: string;
    };

/** What a host may ask about questions; part of the coordinator. */
export interface QuestionRequests {
  /** The first answer that may count does (E1). @throws CoordinationError when it could not be recorded. */
  answer(request: AnswerRequest): Promise<QuestionAnswered>;
  /** Puts a question to people. @throws CoordinationError when it could not be recorded. */
  ask(request: AskRequest): Promise<Asked>;
  /** Resolves when the question is closed, or with `open` when that takes longer than `waitMs`; what it tells is told then. */
  outcome(questionId: string, waitMs: number, signal?: AbortSignal): Promise<QuestionOutcome>;
}
