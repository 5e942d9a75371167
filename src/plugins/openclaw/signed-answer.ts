/**
 * Owns: answers to questions that come over HTTP, signed with the secret of a webhook. Does not own: whether the signature is right
 * (`infra/webhook`), whether the answer counts (the ledger).
 *
 * Nothing of a message is believed before its signature is right, and whoever is not known learns nothing.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AnswerObjection } from "../../infra/webhook/answer-check.ts";
import { ANSWER_PATH } from "../answer-path.ts";
import type { UsePlans } from "./plan-access.ts";

const BODY_BYTES_MAX = 1_300_000;
const BODY_MS_MAX = 10_000;

/** Bodies that are read at once: nothing is known of their senders yet. */
const READING_MAX = 8;
let reading = 0;

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

export async function takeSignedAnswer(
  use: UsePlans,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = await replyTo(use, request);
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}

async function replyTo(use: UsePlans, request: IncomingMessage): Promise<Reply> {
  if (request.method !== "POST") return refused(405, "send a signed answer by POST");
  if (!SIGNED_BY.every((header) => typeof request.headers[header] === "string"))
    return refused(401, "the message is not signed as it has to be");
  if (reading >= READING_MAX) return refused(429, "too many answers at once; send it again");
  reading += 1;
  try {
    return await read(use, request);
  } finally {
    reading -= 1;
  }
}

async function read(use: UsePlans, request: IncomingMessage): Promise<Reply> {
  const name = nameIn(request.url ?? "");
  const rawBody = name === undefined ? undefined : await bodyOf(request);
  if (name === undefined) return refused(404, "no webhook is named");
  if (rawBody === undefined) return refused(413, "the body is too large or too slow");
  try {
    return await use(async (plans, { logger }) => {
      const checked = (await plans.signedAnswers()).check({ name, headers: request.headers, rawBody });
      if (!checked.ok) {
        logger.warn({ webhook: name, because: checked.because }, "an answer by webhook was refused");
        return STATUS[checked.because] === 401
          ? refused(401, "the message is not signed as it has to be")
          : refused(STATUS[checked.because], checked.message);
      }
      try {
        const answered = await plans.answer({ ...checked.answer, through: `webhook:${name}` });
        return answered.kind === "accepted"
          ? { status: 200, body: { ok: true, resolution: answered.resolution } }
          : refused(answered.code === "NOT_FOUND" ? 404 : 409, answered.reason);
      } catch (error) {
        // What was not recorded may come again.
        checked.forget();
        throw error;
      }
    });
  } catch {
    return refused(503, "the answer could not be recorded; send it again");
  }
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
