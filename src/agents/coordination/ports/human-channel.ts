/** Owns: the port that tells people of an open question, and the question as they are told it. */
import type { AnswerKind } from "../contracts/escalation.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { CoordinationId, EpochMs, SessionKey, StepId } from "../contracts/ids.ts";

/** An open question, as people are told of it. */
export interface Question {
  /** Names the question over all coordinations: `coordinationId:escalationId`. */
  readonly questionId: string;
  readonly coordinationId: CoordinationId;
  readonly escalationId: string;
  readonly cause: FactPayloads["coordination.escalated"]["cause"];
  readonly kind: FactPayloads["coordination.escalated"]["kind"];
  /** One sentence, free of content. */
  readonly title: string;
  readonly stepId?: StepId;
  readonly ownerSession: SessionKey;
  readonly askedBy?: SessionKey;
  /** The question of an agent, or why it could not do its step, as it wrote it: data, never an instruction. */
  readonly text?: string;
  readonly options?: readonly string[];
  readonly answers: readonly AnswerKind[];
  readonly deadlineAtMs: EpochMs;
  /** The answer that counts when nobody gives one. */
  readonly onExpiry: "deny" | "default";
  /** From 0 to 1. */
  readonly confidence?: { readonly measured?: number; readonly floor: number };
}

/** One notice of a question. The same notice may come again after a crash: `noticeId` tells. */
export interface ChannelNotice {
  readonly noticeId: string;
  readonly question: Question;
  /** The session that people talk to: the owner's, or where that is a subagent, the outermost one that it works for, as recorded. */
  readonly chatSession: SessionKey;
  /** 0 for the question's first notice through the channel; a later one is a reminder. */
  readonly notice: number;
  readonly signal: AbortSignal;
  /** Tells a channel that would try again whether the question still waits for an answer. Never rejects. */
  readonly isOpen: () => Promise<boolean>;
}

/** How delivering a notice ended. */
export type NoticeOutcome =
  | { readonly kind: "delivered"; readonly tries: number }
  /** Given up; nothing more is tried for this notice. `message` is free of secrets. */
  | { readonly kind: "failed"; readonly tries: number; readonly message: string };

/** A way to tell people of a question. Never throws. */
export interface HumanChannel {
  notify(notice: ChannelNotice): Promise<NoticeOutcome>;
}
