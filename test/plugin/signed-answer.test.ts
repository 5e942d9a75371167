import { createHmac } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { QuestionAnswered } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { createAnswerCheck } from "../../src/infra/webhook/answer-check.ts";
import { takeSignedAnswer } from "../../src/plugins/openclaw/questions/signed-answer.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createManualClock, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { logLines } from "./question-stage.ts";

const SECRET = "the secret of operations";
const QUESTION = "co-1:escalation-2";
const BODY_BYTES_MAX = 1_300_000;

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => vi.useRealTimers());

const computeHmac = (text: string, encoding: "base64" | "base64url"): string =>
  createHmac("sha256", SECRET).update(text).digest(encoding);

const approval = JSON.stringify({
  questionId: QUESTION,
  answer: "approve",
  answerToken: computeHmac(`answer:${QUESTION}`, "base64url"),
});

interface AnswerPost {
  readonly method?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The body never ends. */
  readonly hangs?: true;
}

const signHeaders = (body: string, id = "msg_1"): Readonly<Record<string, string>> => {
  const seconds = String(Math.floor(TEST_EPOCH_MS / 1_000));
  const signature = `v1,${computeHmac(`${id}.${seconds}.${body}`, "base64")}`;
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": signature };
};

type AnswerHandler = () => Promise<QuestionAnswered>;
const acceptAnswer: AnswerHandler = () =>
  Promise.resolve({ kind: "accepted", questionId: QUESTION, resolution: "approved" });

interface HttpReply {
  readonly status: number;
  readonly body: { readonly ok: boolean; readonly message?: string };
}

function route(answer: AnswerHandler = acceptAnswer) {
  const requests: object[] = [];
  const { logger, lines } = logLines();
  const config = { url: "https://hooks.example/", secret: SECRET, allowPrivate: false, answers: true };
  const webhooks = { ops: { ...config, timeoutMs: 10_000, triesMax: 6 } };
  const check = createAnswerCheck({ webhooks, clock: createManualClock() });
  const plans = {
    signedAnswers: () => Promise.resolve(check),
    answer: (request: object) => (requests.push(request), answer()),
  };
  const use = <T>(work: (plans: never, runtime: never) => Promise<T>): Promise<T> =>
    work(plans as never, undefined as never);
  const send = async (sending: AnswerPost = {}): Promise<HttpReply> => {
    const { method = "POST", url = "/coordination/answers/ops", body = approval, hangs } = sending;
    const { headers = signHeaders(approval) } = sending;
    const stream = new PassThrough();
    if (hangs) stream.write(body);
    else stream.end(body);
    const report: { status?: number; body?: string } = {};
    const response = {
      writeHead: (status: number) => void (report.status = status),
      end: (text: string) => void (report.body = text),
    };
    const request = Object.assign(stream, { method, url, headers });
    await takeSignedAnswer(
      { use, logger },
      request as unknown as IncomingMessage,
      response as unknown as ServerResponse,
    );
    return { status: report.status ?? 0, body: JSON.parse(report.body ?? "") as HttpReply["body"] };
  };
  return { requests: requests, lines, send };
}

const NOT_SIGNED = { ok: false, message: "the message is not signed as it has to be" };

describe("a signed answer", () => {
  it("is given to the ledger in the name of its webhook, and nothing is logged of it", async () => {
    const { requests, lines, send } = route();
    expect(await send()).toEqual({ status: 200, body: { ok: true, resolution: "approved" } });
    expect(requests).toEqual([
      { questionId: QUESTION, answer: "approve", by: { kind: "person" }, through: "webhook:ops" },
    ]);
    expect(lines).toEqual([]);
  });

  it("that came already is refused, and the sender that was told is told so", async () => {
    const { requests, send } = route();
    await send();
    expect(await send()).toMatchObject({ status: 409 });
    expect(requests).toHaveLength(1);
  });

  it("that does not count is answered with why, 404 where there is no such question", async () => {
    for (const [code, status] of [
      ["NOT_FOUND", 404],
      ["QUESTION_CLOSED", 409],
    ] as const) {
      const { send } = route(() => Promise.resolve({ kind: "refused", code, reason: "it is over" }));
      expect(await send()).toEqual({ status, body: { ok: false, message: "it is over" } });
    }
  });

  it("that could not be recorded may come again, the very same message", async () => {
    let isFull = true;
    const { requests, lines, send } = route(() =>
      isFull ? Promise.reject(new CoordinationError("LEDGER_FULL", "no space")) : acceptAnswer(),
    );
    expect(await send()).toMatchObject({ status: 503, body: { ok: false } });
    expect(lines).toMatchObject([{ level: "warn", fields: { because: "LEDGER_FULL", status: 503 } }]);
    isFull = false;
    expect(await send()).toMatchObject({ status: 200 });
    expect(requests).toHaveLength(2);
  });
});

describe("a message that is no signed answer", () => {
  it.each<[string, AnswerPost, HttpReply["status"], string]>([
    ["comes by another method", { method: "GET" }, 405, "method"],
    ["has no signature", { headers: {} }, 401, "unsigned"],
    [
      "lacks one of the headers",
      { headers: { ...signHeaders(approval), "webhook-id": undefined as never } },
      401,
      "unsigned",
    ],
    ["has a wrong signature", { headers: signHeaders("another body") }, 401, "bad_signature"],
    ["names a webhook that there is none of", { url: "/coordination/answers/gone" }, 401, "unknown_webhook"],
    ["names no webhook", { url: "/coordination/answers" }, 404, "unnamed"],
    ["names something else", { url: "/coordination/answers/../ops" }, 404, "unnamed"],
    ["is too large", { body: Buffer.alloc(BODY_BYTES_MAX + 1, "x") }, 413, "body"],
    ["is signed and no answer", { body: "secret", headers: signHeaders("secret") }, 400, "malformed"],
  ])("because it %s is refused and logged, without anything of it", async (_, sending, status, because) => {
    const { requests, lines, send } = route();
    const telling = await send(sending);
    expect(telling.status).toBe(status);
    if (status === 401) expect(telling.body).toEqual(NOT_SIGNED);
    expect(lines).toEqual([
      {
        level: "warn",
        message: "an answer by webhook was refused",
        fields: { ...(because !== "unnamed" && { webhook: nameIn(sending) }), because, status },
      },
    ]);
    expect(requests).toEqual([]);
  });

  it("is read up to the bound and not one byte further", async () => {
    const { send, lines } = route();
    await send({ body: Buffer.alloc(BODY_BYTES_MAX, "x") });
    expect(lines).toMatchObject([{ fields: { because: "malformed", status: 400 } }]);
  });

  it("whose body never ends is refused after ten seconds", async () => {
    const { send } = route();
    const pendingAnswer = send({ hangs: true });
    await vi.advanceTimersByTimeAsync(9_999);
    expect(await Promise.race([pendingAnswer, waitUntilSettled()])).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(await pendingAnswer).toMatchObject({ status: 413 });
  });

  it("is refused where as many are read already as may be, and there is room once they are over", async () => {
    const { send, lines } = route();
    const slow = Array.from({ length: 32 }, () => send({ hangs: true }));
    await waitUntilSettled();
    expect(await send()).toMatchObject({ status: 429 });
    expect(lines).toMatchObject([{ fields: { because: "too_many", status: 429 } }]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual(Array(32).fill(413));
    expect(await send()).toMatchObject({ status: 200 });
  });

  it("however long its name is, is logged in a short line", async () => {
    const { send, lines } = route();
    await send({ url: `/coordination/answers/${"a".repeat(100_000)}` });
    expect(JSON.stringify(lines).length).toBeLessThan(1_000);
  });
});

function nameIn({ url }: AnswerPost): string {
  return url?.endsWith("gone") ? "gone" : "ops";
}
