/**
 * Owns: telling people of a question by a signed request, tried again until it was taken, is given up or the question is closed.
 * Does not own: what becomes of a notice that was given up (a fact of the ledger), or of an answer (`answer-check.ts`).
 *
 * W3: a notice has one webhook-id and one body over all its tries, so that a receiver can tell it came again.
 * W4: neither the secret nor the URL, which may hold one, is in a message, a log line or an error.
 */
import { createHash } from "node:crypto";
import type { WebhookConfig } from "../../agents/coordination/contracts/config/gates-config.ts";
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  ChannelNotice,
  HumanChannel,
  NoticeOutcome,
} from "../../agents/coordination/ports/human-channel.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";
import { readSafeErrorCode } from "../http/pinned-request.ts";
import { resolveAllAddresses, type ResolveName } from "../http/resolve-name.ts";
import { raceWithAbort } from "../http/waiting.ts";
import { sendPinnedPost, type PostAnswer } from "./pinned-post.ts";
import { formatQuestionBody } from "./question-body.ts";
import { isWorthAnotherTry, computeWebhookWaitMs } from "./retry-wait.ts";
import { createAnswerToken, signWebhookMessage } from "./webhook-signature.ts";
import { resolveTargetAddresses, readWebhookTarget } from "./webhook-target.ts";

export interface WebhookDependencies {
  readonly name: string;
  readonly config: WebhookConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For the jitter: at least 0 and less than 1. */
  readonly random?: () => number;
  /** Where answers are taken, where that is known. */
  readonly answerUrl?: string;
  readonly resolve?: ResolveName;
}

/** The parts of a message that are the same in every try. */
interface WebhookMessage {
  readonly url: URL;
  readonly id: string;
  readonly body: Uint8Array;
}

type TryOutcome =
  | { readonly kind: "delivered" }
  | { readonly kind: "again"; readonly message: string; readonly retryAfter?: string | undefined }
  | { readonly kind: "never"; readonly message: string };

const STOPPED = "The webhook was stopped before the notice was delivered.";
const CLOSED = "The question is closed.";
const TOO_LATE = "The question's time is over.";

/**
 * Creates the channel that tells people of questions by posting to one webhook. The outcome is logged and returned; a
 * failure is never thrown.
 */
export function createWebhookChannel(dependencies: WebhookDependencies): HumanChannel {
  return {
    notify: async (notice) => {
      const outcome = await deliverNotice(dependencies, notice).catch((error: unknown) => {
        const message = `The webhook failed: ${readSafeErrorCode(error)}.`;
        return { kind: "failed" as const, tries: 0, message };
      });
      await logOutcome(dependencies, notice, outcome);
      return outcome;
    },
  };
}

/** Sends a notice until it is taken, given up, or of no use any more. */
async function deliverNotice(
  dependencies: WebhookDependencies,
  notice: ChannelNotice,
): Promise<NoticeOutcome> {
  const { clock, config } = dependencies;
  const target = readWebhookTarget(config);
  if (target.kind === "refused") return createFailedOutcome(0, target.message);
  const message = createNoticeMessage(dependencies, notice, target.url);
  let tries = 0;
  let obstacle = findObstacle(notice, clock.now());
  while (obstacle === undefined) {
    const outcome = await sendOnce(dependencies, message, notice.signal);
    tries += 1;
    if (outcome.kind === "delivered") return { kind: "delivered", tries };
    if (outcome.kind === "never" || tries >= config.triesMax)
      return createFailedOutcome(tries, outcome.message);
    const waitMs = chooseWaitMs(dependencies, tries, outcome.retryAfter);
    obstacle = findObstacle(notice, clock.now() + waitMs);
    if (obstacle !== undefined) return createFailedOutcome(tries, `${outcome.message} ${obstacle}`);
    await waitForDuration(clock, waitMs, notice.signal);
    obstacle = findObstacle(notice, clock.now());
    if (obstacle === undefined && !(await notice.isOpen())) obstacle = `${outcome.message} ${CLOSED}`;
  }
  return createFailedOutcome(tries, obstacle);
}

/** Returns why it is of no use to try at that time; `undefined` when it is. */
function findObstacle({ signal, question }: ChannelNotice, atMs: number): string | undefined {
  if (signal.aborted) return STOPPED;
  return atMs >= question.deadlineAtMs ? TOO_LATE : undefined;
}

function createNoticeMessage(
  { config, answerUrl }: WebhookDependencies,
  notice: ChannelNotice,
  url: URL,
): WebhookMessage {
  const token = createAnswerToken(config.secret, notice.question.questionId);
  const body = formatQuestionBody(notice, config.answers ? { token, url: answerUrl } : undefined);
  return { url, id: createWebhookId(notice.noticeId), body: Buffer.from(body) };
}

/**
 * Returns the id of a notice, or its hash where it may not be signed. It may hold what a plan calls itself, which may
 * be more than a header or a signature takes.
 */
function createWebhookId(noticeId: string): string {
  if (/^[\w:@-]{1,256}$/.test(noticeId)) return noticeId;
  return `notice_${createHash("sha256").update(noticeId).digest("hex")}`;
}

/**
 * Sends the message once, within the time of one try. Returns whether it was taken, and if not, whether to try again.
 */
async function sendOnce(
  { config, clock, resolve = resolveAllAddresses }: WebhookDependencies,
  message: WebhookMessage,
  signal: AbortSignal,
): Promise<TryOutcome> {
  const timeout = new AbortController();
  const cancel = clock.wakeAt(addMs(clock.now(), config.timeoutMs), () => timeout.abort());
  const endOfTry = AbortSignal.any([signal, timeout.signal]);
  const describeSilence = (code: string): TryOutcome => {
    if (signal.aborted) return { kind: "never", message: STOPPED };
    return {
      kind: "again",
      message: timeout.signal.aborted ? describeTimeout(config) : describeUnreached(code),
    };
  };
  try {
    const target = await raceWithAbort(
      resolveTargetAddresses(message.url, config.allowPrivate, resolve),
      endOfTry,
    );
    if (target.kind === "refused") return { kind: "never", message: target.message };
    const headers = createSignedHeaders(config.secret, message, Math.floor(clock.now() / 1_000));
    const { url, body } = message;
    const answer = await sendPinnedPost({
      url,
      addresses: target.addresses,
      headers,
      body,
      signal: endOfTry,
    });
    return answer.kind === "none" ? describeSilence(answer.code) : judgeStatus(answer);
  } catch (error) {
    return describeSilence(readSafeErrorCode(error));
  } finally {
    cancel();
  }
}

function createSignedHeaders(
  secret: string,
  { id, body }: WebhookMessage,
  seconds: number,
): Record<string, string> {
  const timestamp = String(seconds);
  return {
    "content-type": "application/json",
    "user-agent": "openclaw-coordination",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signWebhookMessage(secret, { id, timestamp, body }),
  };
}

/** Returns what a status of the receiver's means: delivered, to be tried again, or never. */
function judgeStatus({ status, retryAfter }: Extract<PostAnswer, { kind: "status" }>): TryOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  const message = `The webhook answered with status ${status}.`;
  return isWorthAnotherTry(status) ? { kind: "again", message, retryAfter } : { kind: "never", message };
}

function describeTimeout({ timeoutMs }: WebhookConfig): string {
  return `The webhook did not answer within ${timeoutMs} ms.`;
}

function describeUnreached(code: string): string {
  return `The webhook could not be reached: ${code}.`;
}

/** Returns the wait before the next try in ms, and logs it. */
function chooseWaitMs(
  { name, clock, logger, random = Math.random }: WebhookDependencies,
  tries: number,
  retryAfter: string | undefined,
): number {
  const waitMs = computeWebhookWaitMs({ tries, retryAfter, nowMs: clock.now(), fraction: random() });
  logger.debug({ webhook: name, tries, waitMs }, "a webhook failed and is tried again");
  return waitMs;
}

function createFailedOutcome(tries: number, message: string): NoticeOutcome {
  return { kind: "failed", tries, message };
}

/** Logs how a notice ended. A webhook that was given up for a closed question is no reason to warn. */
async function logOutcome(
  { name, logger }: WebhookDependencies,
  { question, isOpen }: ChannelNotice,
  outcome: NoticeOutcome,
): Promise<void> {
  const { coordinationId, escalationId } = question;
  const fields = { webhook: name, coordinationId, escalationId, tries: outcome.tries };
  if (outcome.kind === "delivered") {
    logger.info(fields, "a webhook took a notice");
    return;
  }
  const level = (await isOpen()) ? "warn" : "info";
  logger[level]({ ...fields, reason: outcome.message }, "a webhook was given up");
}
