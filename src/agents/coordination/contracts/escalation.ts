/**
 * Owns: questions to people: what may be answered, by whom, through what, and who is told when, and what is recorded of
 * it.
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { contentRefSchema, escalationId, requesterSchema } from "./fact-fields.ts";
import { epochMsSchema, sessionKeySchema } from "./ids.ts";

/** `approve` and `deny` rule on what is held; `answer` brings a text: a replacement for a result, or what an agent asked for. */
export const answerKindSchema = z.enum(["approve", "deny", "answer"]);
/** A kind of answer to a question. */
export type AnswerKind = z.infer<typeof answerKindSchema>;

/**
 * True for a recorded question that only records that a plan stopped at its budget: its policy asks nobody, so there
 * is no answer to it.
 */
export function isBudgetStop({
  cause,
  answers = [],
}: {
  readonly cause: string;
  readonly answers?: readonly AnswerKind[] | undefined;
}): boolean {
  return cause === "budget" && answers.length === 0;
}

/**
 * Where a question is told and where its answer came from: `chat`, `cli`, `gateway`, `host`, `session` (a session that was asked
 * in place of people), `webhook:NAME`, `plugin:ID`.
 */
export const channelSchema = z
  .string()
  .min(1)
  .max(BOUNDS.nameCharsMax + "webhook:".length)
  .regex(/^(?:chat|cli|gateway|host|session|webhook:[a-z0-9][a-z0-9_-]*|plugin:[a-z0-9][a-z0-9._@/-]*)$/);
/** Where people are notified: `chat`, `host`, `webhook:NAME` or `plugin:ID`. */
export type Channel = z.infer<typeof channelSchema>;

/** Who answered, as the channel vouches for it: never what a model wrote. `agent`: the model of a session that was asked. */
export const answererSchema = z.object({
  kind: z.enum(["operator", "person", "plugin", "agent"]),
  /** The channel's name for the person. */
  id: z.string().min(1).max(BOUNDS.idCharsMax).optional(),
  /** The session in which the answer was given. */
  session: sessionKeySchema.optional(),
});
/** Who answered, as the channel knows them. */
export type Answerer = z.infer<typeof answererSchema>;

/** Telling somebody of an open question: at first, as a reminder, or somebody else when nobody answered. */
export const noticeSchema = z.object({ channel: channelSchema, atMs: epochMsSchema });
/** One notice of a question: the channel, and how many milliseconds after asking. */
export type Notice = z.infer<typeof noticeSchema>;

/** Why an answer did not count. */
export const answerRefusalSchema = z.enum([
  "closed",
  "expired",
  /** The question takes other answers. */
  "not_an_answer",
  /** Whoever asked may not answer. */
  "same_session",
  "not_allowed",
]);
/** Why an answer does not count. */
export type AnswerRefusal = z.infer<typeof answerRefusalSchema>;

/** Rules for every question of a coordination, from its opening on. */
export const questionPolicySchema = z.object({
  /** How long a question stays open. */
  answerMs: z.int().min(1).max(BOUNDS.durationMsMax),
  notify: z
    .array(z.object({ channel: channelSchema, afterMs: z.int().min(0).max(BOUNDS.durationMsMax) }))
    .max(BOUNDS.noticesMax)
    .optional(),
  requireDifferentApprover: z.literal(true).optional(),
});
/** How a question is asked: its channels, its deadline, and what counts when nobody answers. */
export type QuestionPolicy = z.infer<typeof questionPolicySchema>;

/** The words of an agent's question, as they are kept beside the log. */
export const questionTextSchema = z.object({
  question: z.string().max(BOUNDS.questionCharsMax),
  options: z.array(z.string().max(BOUNDS.questionCharsMax)).max(BOUNDS.optionsMax).optional(),
  /** Counts when nobody answers in time. */
  otherwise: z.string().max(BOUNDS.questionCharsMax).optional(),
});
/** The words of a question, which lie beside the log. */
export type QuestionText = z.infer<typeof questionTextSchema>;

/** True when no option of a question has a number in it, so that people can choose one by its place from 1 on. */
export function canNumberOptions(options: readonly string[]): boolean {
  return !options.some((option) => /\p{N}/u.test(option));
}

/** The payload schemas of the facts about a question that was asked. */
export const QUESTION_FACTS = {
  /** Somebody answered a question, whether or not that counted. The first one that may answer counts. */
  "escalation.answered": z.object({
    escalationId,
    answer: answerKindSchema,
    text: contentRefSchema.optional(),
    by: answererSchema,
    through: channelSchema,
    refused: answerRefusalSchema.optional(),
  }),
  /** Somebody was told of an open question. A notice that failed is not tried again. */
  "escalation.notified": z.object({
    escalationId,
    /** Its place among the question's notices. */
    notice: z.int().min(0).max(BOUNDS.noticesMax),
    channel: channelSchema,
    outcome: z.enum(["delivered", "failed"]),
    tries: z.int().min(1).max(1_000).optional(),
  }),
  /** The session that was asked in place of people gave no answer in time, or who asks asked people the same: now they are asked. */
  "escalation.forwarded": z.object({
    escalationId,
    /** Until when people may answer. */
    deadlineAtMs: epochMsSchema,
    notices: z.array(noticeSchema).max(BOUNDS.noticesMax).optional(),
  }),
  "escalation.closed": z.object({
    escalationId,
    resolution: z.enum(["retried", "continued", "expired", "cancelled", "approved", "denied", "answered"]),
    by: requesterSchema.optional(),
  }),
} as const;
