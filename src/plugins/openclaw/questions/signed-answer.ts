/**
 * Owns: answers to questions that come over HTTP, signed with the secret of a webhook. Does not own: whether the signature is right
 * (`infra/webhook`), whether the answer counts (the ledger).
 *
 * Nothing of a message is believed before its signature is right, and whoever is not known learns nothing. No body is waited for
 * before the webhook and the headers of a signature are there; and of the bodies that are waited for, the slowest gives
 * its place to the next: a signed answer comes at once.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { AnswerMessage, AnswerObjection, AnswerRefusal } from "../../../infra/webhook/answer-check.ts";
import { ANSWER_PATH } from "../../answer-path.ts";
import type { UsePlans } from "../runtime-access/plan-access.ts";

const BODY_BYTES_MAX = 1_300_000;
const BODY_MS_MAX = 10_000;

/** Bodies that are read at once: nothing is known of their senders yet. */
const READING_MAX = 32;
/** A body that takes longer gives its place to another message, where there is no place left. */
const SLOW_BODY_MS = 500;

interface BodyReading {
  readonly startedAtMs: number;
  readonly giveUp: () => void;
}

/** The one that began first comes first. */
const readings = new Set<BodyReading>();

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

/** The status and body that a webhook's answer is replied to with. */
interface WebhookReply {
  readonly status: number;
  readonly body: object;
}

export interface SignedAnswerDependencies {
  readonly use: UsePlans;
  readonly logger: Logger;
}

/**
 * Checks the signed answer to a question in an HTTP request, records it, and sends the response; one that is refused
 * also closes the connection.
 */
export async function takeSignedAnswer(
  dependencies: SignedAnswerDependencies,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = await replyToSignedAnswer(dependencies, request);
  // The rest of a refused message's body is not waited for.
  const ending = status === 200 ? {} : { connection: "close" };
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store", ...ending });
  response.end(JSON.stringify(body));
}

/**
 * Checks a request before its body is read, then its signature, and records the answer. Returns the reply, and logs a
 * refusal unless it is the ledger's.
 */
async function replyToSignedAnswer(
  dependencies: SignedAnswerDependencies,
  request: IncomingMessage,
): Promise<WebhookReply> {
  const name = readWebhookName(request.url ?? "");
  const stop = (status: number, because: string, message: string): WebhookReply => {
    const webhook = name?.slice(0, LOGGED_CHARS_MAX);
    dependencies.logger.warn(
      { ...(webhook && { webhook }), because, status },
      "an answer by webhook was refused",
    );
    return createRefusedReply(status, message);
  };
  if (request.method !== "POST") return stop(405, "method", "send a signed answer by POST");
  if (!SIGNED_BY.every((header) => typeof request.headers[header] === "string"))
    return stop(401, "unsigned", NOT_SIGNED);
  if (name === undefined) return stop(404, "unnamed", "no webhook is named");
  try {
    const { headers } = request;
    const hopeless = await dependencies.use(async (plans) =>
      (await plans.signedAnswers()).checkHeaders({ name, headers }),
    );
    if (hopeless) return refuseForObjection(hopeless, stop);
    if (!takeReadingPlace()) return stop(429, "too_many", "too many answers at once; send it again");
    const rawBody = await readBoundedBody(request);
    if (rawBody === undefined) return stop(413, "body", "the body is too large or too slow");
    return await recordSignedAnswer(dependencies, { name, headers, rawBody }, stop);
  } catch (error) {
    const because = isCoordinationError(error) ? error.code : "failed";
    return stop(503, because, "the answer could not be recorded; send it again");
  }
}

/** Creates the reply to an answer that is refused, and notes why. */
type RefusalReply = (status: number, because: string, message: string) => WebhookReply;

function refuseForObjection({ because, message }: AnswerRefusal, stop: RefusalReply): WebhookReply {
  const status = STATUS[because];
  return stop(status, because, status === 401 ? NOT_SIGNED : message);
}

/**
 * True where one more body may be read; where no place is left, the body that began first gives up its own if it has
 * taken 500 ms.
 */
function takeReadingPlace(): boolean {
  const [oldest] = readings;
  if (readings.size < READING_MAX || !oldest) return true;
  if (performance.now() - oldest.startedAtMs < SLOW_BODY_MS) return false;
  oldest.giveUp();
  return true;
}

/** Checks the signature, gives the answer to its question, and returns the reply. */
function recordSignedAnswer(
  { use }: SignedAnswerDependencies,
  message: AnswerMessage,
  stop: RefusalReply,
): Promise<WebhookReply> {
  return use(async (plans) => {
    const checked = (await plans.signedAnswers()).check(message);
    if (!checked.ok) return refuseForObjection(checked, stop);
    try {
      const answered = await plans.answer({ ...checked.answer, through: `webhook:${message.name}` });
      return answered.kind === "accepted"
        ? { status: 200, body: { ok: true, resolution: answered.resolution } }
        : createRefusedReply(answered.code === "NOT_FOUND" ? 404 : 409, answered.reason);
    } catch (error) {
      // An answer that was not recorded may come again.
      checked.forget();
      throw error;
    }
  });
}

function createRefusedReply(status: number, message: string): WebhookReply {
  return { status, body: { ok: false, message } };
}

function readWebhookName(url: string): string | undefined {
  const [path = ""] = url.split("?");
  const name = path.startsWith(`${ANSWER_PATH}/`) ? path.slice(ANSWER_PATH.length + 1) : "";
  return /^[a-z0-9][a-z0-9_-]*$/u.test(name) ? name : undefined;
}

/** Reads the body of a request; `undefined` for one that is too large, too slow, or breaks off. */
function readBoundedBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => finish(undefined), BODY_MS_MAX);
    const reading = { startedAtMs: performance.now(), giveUp: () => finish(undefined) };
    readings.add(reading);
    const finish = (body: Buffer | undefined): void => {
      clearTimeout(timer);
      readings.delete(reading);
      request.removeAllListeners("data");
      request.resume();
      resolve(body);
    };
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) finish(undefined);
      else chunks.push(chunk);
    });
    request.once("end", () => finish(Buffer.concat(chunks)));
    request.once("error", () => finish(undefined));
  });
}
