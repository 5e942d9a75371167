/** Owns: sending signed answers to the address that takes them, whole or with a body that never ends. */
import { createHmac } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { onTestFinished, vi } from "vitest";
import { createAnswerCheck } from "../../src/infra/webhook/answer-check.ts";
import { takeSignedAnswer } from "../../src/plugins/openclaw/questions/signed-answer.ts";
import { createManualClock, TEST_EPOCH_MS } from "../support/temp-ledger.ts";

const SECRET = "the secret of operations";
const QUESTION = "co-1:escalation-2";

/** The status of a response, and its connection header. */
export interface ResponseHead {
  readonly status: number;
  readonly connection?: string;
}

interface RequestHead {
  readonly url?: string;
  /** In place of the right ones. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

export interface SlowAnswers {
  /** A signed answer. */
  readonly send: () => Promise<ResponseHead>;
  /** Headers of one, and a body that never ends. */
  readonly hang: (sending: RequestHead) => Promise<ResponseHead>;
  /** Lets time pass. */
  readonly pass: (ms: number) => Promise<void>;
}

export function startSlowAnswers(): SlowAnswers {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const config = { url: "https://hooks.example/", secret: SECRET, allowPrivate: false, answers: true };
  const webhooks = { ops: { ...config, timeoutMs: 10_000, triesMax: 6 } };
  const check = createAnswerCheck({ webhooks, clock: createManualClock() });
  const plans = {
    signedAnswers: () => Promise.resolve(check),
    answer: () => Promise.resolve({ kind: "accepted", questionId: QUESTION, resolution: "approved" }),
  };
  const use = <T>(work: (value: never, runtime: never) => Promise<T>): Promise<T> =>
    work(plans as never, undefined as never);
  const doNothing = (): void => undefined;
  const logger = { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing };
  const ask = async (sending: RequestHead, isWhole: boolean): Promise<ResponseHead> => {
    const stream = new PassThrough();
    if (isWhole) stream.end(BODY);
    const report: { status: number; connection?: string } = { status: 0 };
    const response = {
      writeHead: (status: number, headers: Readonly<Record<string, string>>) => {
        report.status = status;
        if (headers["connection"] !== undefined) report.connection = headers["connection"];
      },
      end: doNothing,
    };
    const { url = "/coordination/answers/ops", headers = {} } = sending;
    const request = Object.assign(stream, {
      method: "POST",
      url,
      headers: { ...signHeaders(BODY), ...headers },
    });
    await takeSignedAnswer(
      { use, logger },
      request as unknown as IncomingMessage,
      response as unknown as ServerResponse,
    );
    return report;
  };
  return {
    send: () => ask({}, true),
    hang: (sending) => ask(sending, false),
    pass: async (ms) => {
      await vi.advanceTimersByTimeAsync(ms);
    },
  };
}

const computeHmac = (text: string, encoding: "base64" | "base64url"): string =>
  createHmac("sha256", SECRET).update(text).digest(encoding);

const BODY = JSON.stringify({
  questionId: QUESTION,
  answer: "approve",
  answerToken: computeHmac(`answer:${QUESTION}`, "base64url"),
});

function signHeaders(body: string): Readonly<Record<string, string>> {
  const seconds = String(Math.floor(TEST_EPOCH_MS / 1_000));
  const signature = `v1,${computeHmac(`msg_1.${seconds}.${body}`, "base64")}`;
  return { "webhook-id": "msg_1", "webhook-timestamp": seconds, "webhook-signature": signature };
}
