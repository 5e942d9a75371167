/**
 * Owns: whether an answer that came by webhook is one: who signed it, when, and to which question. Does not own: whether it
 * counts, which the coordination decides, nor what the sender is told.
 *
 * W8: what the name and the headers show is looked at before the body is there, so that nobody has to wait for the body of
 *     a message that cannot be an answer.
 * W5: nothing of a message is believed, nor told of, before its signature was found right.
 * W6: an answer brings the token of its question, so that whoever can have messages signed, without holding the secret, must
 *     have got the question; and a notice that is sent back is no answer.
 * W7: an accepted message is not accepted again while its timestamp would still do. After a restart the first answer that
 *     the ledger holds wins.
 */
import type { Answerer, AnswerKind } from "../../agents/coordination/contracts/escalation.ts";
import type { WebhookConfig } from "../../agents/coordination/contracts/config/gates-config.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { ANSWER_BYTES_MAX, parseAnswerBody } from "./answer-body.ts";
import { createSeenIds, type SeenIds } from "./seen-ids.ts";
import {
  createAnswerToken,
  isSameSecret,
  signWebhookMessage,
  type SignedParts,
} from "./webhook-signature.ts";

export interface AnswerCheckDependencies {
  readonly webhooks: Readonly<Record<string, WebhookConfig>>;
  readonly clock: Clock;
  /** How far a timestamp may be off, in either direction. */
  readonly toleranceMs?: number;
}

export interface AnswerMessage {
  /** The webhook whose secret it is signed with. */
  readonly name: string;
  /** As Node.js has them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As it came: one byte more or less, and the signature is another. */
  readonly rawBody: string | Uint8Array;
}

export interface SignedAnswer {
  readonly questionId: string;
  readonly answer: AnswerKind;
  readonly text?: string;
  readonly by: Answerer;
}

export type AnswerObjection =
  "unknown_webhook" | "unsigned" | "bad_signature" | "stale" | "replayed" | "malformed" | "not_allowed";

/** `message` is free of secrets and of what people wrote. */
export interface AnswerRefusal {
  readonly ok: false;
  readonly because: AnswerObjection;
  readonly message: string;
}

export type CheckedAnswer =
  | {
      readonly ok: true;
      readonly answer: SignedAnswer;
      /** Lets the same message come again, where it could not be recorded. */
      readonly forget: () => void;
    }
  | AnswerRefusal;

export interface AnswerCheck {
  /** Why a message cannot be an answer whatever its body is, or nothing. */
  checkHeaders(message: Pick<AnswerMessage, "name" | "headers">): AnswerRefusal | undefined;
  check(message: AnswerMessage): CheckedAnswer;
}

interface Webhook {
  readonly config: WebhookConfig;
  readonly seen: SeenIds;
}

type SignedMessage = SignedParts & { readonly signatures: readonly string[] };

type SignedHeaders = Omit<SignedMessage, "body">;

const TOLERANCE_MS = 300_000;
/** A sender lists one per secret while it changes secrets. */
const SIGNATURES_MAX = 16;

/**
 * Creates the check of answers that come by webhook: whether signature and time are right, and the message was not
 * accepted before. It remembers in memory which messages it accepted.
 */
export function createAnswerCheck({
  webhooks,
  clock,
  toleranceMs = TOLERANCE_MS,
}: AnswerCheckDependencies): AnswerCheck {
  const webhooksByName = new Map<string, Webhook>(
    Object.entries(webhooks).map(([name, config]) => [
      name,
      { config, seen: createSeenIds(() => clock.now()) },
    ]),
  );
  return {
    checkHeaders: ({ name, headers }) => {
      if (!webhooksByName.has(name)) return refuseUnknownWebhook();
      const signed = readSignedHeaders(headers);
      return "because" in signed ? signed : undefined;
    },
    check: ({ name, headers, rawBody }) => {
      const webhook = webhooksByName.get(name);
      if (!webhook) return refuseUnknownWebhook();
      const message = readSignedMessage(headers, Buffer.from(rawBody));
      if ("because" in message) return message;
      return (
        checkSignature(webhook, message) ??
        checkTimestamp(message, clock.now(), toleranceMs) ??
        acceptAnswer(webhook, message, toleranceMs)
      );
    },
  };
}

function createObjection(because: AnswerObjection, message: string): AnswerRefusal {
  return { ok: false, because, message };
}

function refuseUnknownWebhook(): AnswerRefusal {
  return createObjection("unknown_webhook", "There is no webhook of this name.");
}

function readSignedMessage(headers: AnswerMessage["headers"], body: Buffer): SignedMessage | AnswerRefusal {
  const signed = readSignedHeaders(headers);
  if ("because" in signed) return signed;
  if (body.length > ANSWER_BYTES_MAX)
    return createObjection("malformed", `The body is longer than ${ANSWER_BYTES_MAX} bytes.`);
  return { ...signed, body };
}

function readSignedHeaders(headers: AnswerMessage["headers"]): SignedHeaders | AnswerRefusal {
  const [id, timestamp, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    readSingleHeader(headers, name),
  );
  if (id === undefined || timestamp === undefined || signature === undefined)
    return createObjection(
      "unsigned",
      "webhook-id, webhook-timestamp and webhook-signature are needed, each once.",
    );
  if (!/^[\w:@+=/-]{1,256}$/.test(id) || !/^\d{1,12}$/.test(timestamp))
    return createObjection(
      "malformed",
      "webhook-id or webhook-timestamp is not of the form that can be signed.",
    );
  return { id, timestamp, signatures: signature.split(" ", SIGNATURES_MAX) };
}

/** Returns the value of a header; `undefined` where it is missing or there more than once. */
function readSingleHeader(headers: AnswerMessage["headers"], name: string): string | undefined {
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name && value !== undefined ? value : [],
  );
  return values.length === 1 ? values[0] : undefined;
}

function checkSignature({ config }: Webhook, message: SignedMessage): AnswerRefusal | undefined {
  const expected = signWebhookMessage(config.secret, message);
  // All are compared: how long it takes tells nothing of which one was close.
  const isRight = message.signatures.map((each) => isSameSecret(each, expected)).includes(true);
  return isRight ? undefined : createObjection("bad_signature", "No signature is right for this webhook.");
}

function checkTimestamp(
  { timestamp }: SignedMessage,
  nowMs: number,
  toleranceMs: number,
): AnswerRefusal | undefined {
  if (Math.abs(nowMs - Number(timestamp) * 1_000) <= toleranceMs) return undefined;
  const seconds = Math.floor(toleranceMs / 1_000);
  return createObjection("stale", `The timestamp is more than ${seconds} s away from the time here.`);
}

/**
 * Reads a message whose signature and time are right, and remembers its id once it is accepted. Refuses one that was
 * accepted before, is no answer to its question, or is of a webhook whose answers do not count.
 */
function acceptAnswer({ config, seen }: Webhook, message: SignedMessage, toleranceMs: number): CheckedAnswer {
  if (!config.answers) return createObjection("not_allowed", "Answers of this webhook do not count.");
  if (seen.has(message.id))
    return createObjection("replayed", "A message with this webhook-id was accepted already.");
  const read = parseAnswerBody(message.body);
  if (!read.ok) return createObjection("malformed", read.message);
  const { questionId, answerToken, answer, text, by } = read.body;
  if (!isSameSecret(answerToken, createAnswerToken(config.secret, questionId)))
    return createObjection("not_allowed", "The answerToken is not the one of this question.");
  seen.keep(message.id, Number(message.timestamp) * 1_000 + toleranceMs);
  return {
    ok: true,
    answer: { questionId, answer, ...(text === undefined ? {} : { text }), by: { kind: "person", ...by } },
    forget: () => seen.forget(message.id),
  };
}
