/**
 * Owns: answers to questions that come over HTTP, signed with the secret of a webhook. Does not own: whether the signature is right
 * (`infra/webhook`), whether the answer counts (the ledger).
 *
 * Nothing of a message is believed before its signature is right, and whoever is not known learns nothing.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { AnswerMessage, AnswerObjection } from "../../../infra/webhook/answer-check.ts";
import { ANSWER_PATH } from "../../answer-path.ts";
import type { UsePlans } from "../runtime-access/plan-access.ts";

const BODY_BYTES_MAX = 1_300_000;
const BODY_MS_MAX = 10_000;

/** Bodies that are read at once: nothing is known of their senders yet. */
const READING_MAX = 8;
let reading = 0;

const LOGGED_CHARS_MAX = 100;
const NOT_SIGNED = "the message is not signed as it has to be";
const SIGNED_BY = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const STATUS: Readonly<Record<AnswerObjection, number>> = {
  unknown_webhook: 401,
  unsigned: 401,
  bad_signature: 401,
  stale: 401,
  replayed: 409,
  malformed: 400,
  not_allowed: 403,
};

interface Reply {
  readonly status: number;
  readonly body: object;
}

export interface SignedAnswerParts {
  readonly use: UsePlans;
  readonly logger: Logger;
}

export async function takeSignedAnswer(
  parts: SignedAnswerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = await replyTo(parts, request);
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}

async function replyTo(parts: SignedAnswerParts, request: IncomingMessage): Promise<Reply> {
  const name = nameIn(request.url ?? "");
  const stop = (status: number, because: string, message: string): Reply => {
    const webhook = name?.slice(0, LOGGED_CHARS_MAX);
    parts.logger.warn({ ...(webhook && { webhook }), because, status }, "an answer by webhook was refused");
    return refused(status, message);
  };
  if (request.method !== "POST") return stop(405, "method", "send a signed answer by POST");
  if (!SIGNED_BY.every((header) => typeof request.headers[header] === "string"))
    return stop(401, "unsigned", NOT_SIGNED);
  if (name === undefined) return stop(404, "unnamed", "no webhook is named");
  if (reading >= READING_MAX) return stop(429, "too_many", "too many answers at once; send it again");
  reading += 1;
  try {
    const rawBody = await bodyOf(request);
    if (rawBody === undefined) return stop(413, "body", "the body is too large or too slow");
    return await rule(parts, { name, headers: request.headers, rawBody }, stop);
  } catch (error) {
    const because = isCoordinationError(error) ? error.code : "failed";
    return stop(503, because, "the answer could not be recorded; send it again");
  } finally {
    reading -= 1;
  }
}

type Stop = (status: number, because: string, message: string) => Reply;

function rule({ use }: SignedAnswerParts, message: AnswerMessage, stop: Stop): Promise<Reply> {
  return use(async (plans) => {
    const checked = (await plans.signedAnswers()).check(message);
    if (!checked.ok) {
      const status = STATUS[checked.because];
      return stop(status, checked.because, status === 401 ? NOT_SIGNED : checked.message);
    }
    try {
      const answered = await plans.answer({ ...checked.answer, through: `webhook:${message.name}` });
      return answered.kind === "accepted"
        ? { status: 200, body: { ok: true, resolution: answered.resolution } }
        : refused(answered.code === "NOT_FOUND" ? 404 : 409, answered.reason);
    } catch (error) {
      // What was not recorded may come again.
      checked.forget();
      throw error;
    }
  });
}

function refused(status: number, message: string): Reply {
  return { status, body: { ok: false, message } };
}

function nameIn(url: string): string | undefined {
  const [path = ""] = url.split("?");
  const name = path.startsWith(`${ANSWER_PATH}/`) ? path.slice(ANSWER_PATH.length + 1) : "";
  return /^[a-z0-9][a-z0-9_-]*$/u.test(name) ? name : undefined;
}

/** `undefined` for one that is too large, too slow, or breaks off. */
function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => done(undefined), BODY_MS_MAX);
    const done = (body: Buffer | undefined): void => {
      clearTimeout(timer);
      request.removeAllListeners("data");
      request.resume();
      resolve(body);
    };
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) done(undefined);
      else chunks.push(chunk);
    });
    request.once("end", () => done(Buffer.concat(chunks)));
    request.once("error", () => done(undefined));
  });
}
