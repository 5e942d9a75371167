/** Owns: answers to people's questions that come by webhook, over real HTTP and into a real ledger (ASI07). */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createAnswerCheck } from "../../../src/infra/webhook/answer-check.ts";
import type { UsePlans } from "../../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { takeSignedAnswer } from "../../../src/plugins/openclaw/questions/signed-answer.ts";
import { openQuestionStage, type QuestionStage } from "../../plugin/question-stage.ts";
import { createManualClock, TEST_EPOCH_MS } from "../../support/temp-ledger.ts";
import { sendRequest, type Answer } from "./serve-scene.ts";

const SECRET = "the secret of operations";
const OTHER_SECRET = "the secret of somebody else";
const NOW_S = Math.floor(TEST_EPOCH_MS / 1_000);

let stage: QuestionStage;
let server: Server;
let baseUrl: string;
let questionId: string;

beforeEach(async () => {
  stage = await openQuestionStage();
  questionId = await stage.ask("May I dig?", undefined, { kind: "approval" });
  const config = { url: "https://hooks.example/", allowPrivate: false, timeoutMs: 10_000, triesMax: 6 };
  const webhooks = {
    ops: { ...config, secret: SECRET, answers: true },
    quiet: { ...config, secret: SECRET, answers: false },
  };
  const check = createAnswerCheck({ webhooks, clock: createManualClock() });
  const use = ((work: (...access: unknown[]) => unknown) =>
    stage.use((running, runtime) =>
      Promise.resolve(work({ ...running, signedAnswers: () => Promise.resolve(check) }, runtime)),
    )) as unknown as UsePlans;
  server = createServer((request, response) => {
    void takeSignedAnswer({ use, logger: stage.logger }, request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await stage[Symbol.asyncDispose]();
});

const computeHmac = (text: string, secret: string, encoding: "base64" | "base64url"): string =>
  createHmac("sha256", secret).update(text).digest(encoding);

const writeBody = (fields: Record<string, unknown> = {}): string =>
  JSON.stringify({
    questionId,
    answer: "approve",
    answerToken: computeHmac(`answer:${questionId}`, SECRET, "base64url"),
    ...fields,
  });

interface SignatureFields {
  readonly secret?: string;
  readonly id?: string;
  readonly seconds?: number;
  /** The body that is signed, where another one is sent. */
  readonly signed?: string;
}

function sign(
  body: string,
  { secret = SECRET, id = "m-1", seconds = NOW_S, signed = body }: SignatureFields = {},
): Record<string, string> {
  const signature = computeHmac(`${id}.${seconds}.${signed}`, secret, "base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": `v1,${signature}`,
  };
}

const post = (text: string, headers: Readonly<Record<string, string>>, name = "ops"): Promise<Answer> =>
  sendRequest(baseUrl, `/coordination/answers/${name}`, { method: "POST", token: "", text, headers });

const readAnswers = (): Promise<object[]> => stage.answers("co-1");

it("ASI07-14 a webhook's answer without a signature, or with an empty one", async () => {
  const { "webhook-signature": _, ...unsigned } = sign(writeBody());
  for (const headers of [
    {},
    unsigned,
    { ...unsigned, "webhook-signature": "" },
    { ...unsigned, "webhook-signature": "v1," },
  ])
    expect((await post(writeBody(), headers)).status).toBe(401);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-15 a webhook's answer that is signed with another key", async () => {
  expect((await post(writeBody(), sign(writeBody(), { secret: OTHER_SECRET }))).status).toBe(401);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-16 a webhook's answer whose body was changed on the way", async () => {
  const denied = writeBody({ answer: "deny" });
  expect((await post(writeBody(), sign(denied))).status).toBe(401);
  expect((await post(`${denied} `, sign(denied))).status).toBe(401);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-17 a webhook's answer with a timestamp that is old, or of the future", async () => {
  for (const seconds of [NOW_S - 301, NOW_S + 301, 0, 999_999_999_999])
    expect((await post(writeBody(), sign(writeBody(), { seconds }))).status).toBe(401);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-18 a webhook's answer that is sent a second time", async () => {
  const headers = sign(writeBody());
  expect((await post(writeBody(), headers)).status).toBe(200);
  expect((await post(writeBody(), headers)).status).toBe(409);
  expect(await readAnswers()).toHaveLength(1);
});

it("ASI07-19 a second answer under a new id, with another word", async () => {
  expect((await post(writeBody(), sign(writeBody()))).status).toBe(200);
  const denied = writeBody({ answer: "deny" });
  expect((await post(denied, sign(denied, { id: "m-2" }))).status).toBe(409);
  expect(await readAnswers()).toMatchObject([
    { answer: "approve" },
    { answer: "deny", refused: expect.any(String) as string },
  ]);
  expect((await readAnswers())[0]).not.toHaveProperty("refused");
});

it("ASI07-20 the answer token of one question brought for another", async () => {
  const second = await stage.ask("May I blast?", undefined, { kind: "approval" });
  const body = writeBody({ questionId: second });
  expect((await post(body, sign(body))).status).toBe(403);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-21 an answer by a webhook that may only tell", async () => {
  expect((await post(writeBody(), sign(writeBody()), "quiet")).status).toBe(403);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-22 our own notice sent back as an answer", async () => {
  const notice = JSON.stringify({ type: "coordination.question", version: 1, question: { questionId } });
  expect((await post(notice, sign(notice))).status).toBe(400);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-23 an id or a time that comes twice, one for the signature and one for who looks for repeats", async () => {
  const headers = sign(writeBody());
  for (const [name, other] of [
    ["webhook-id", "m-9"],
    ["webhook-timestamp", String(NOW_S + 1)],
  ] as const)
    for (const values of [
      [headers[name], other],
      [other, headers[name]],
    ])
      expect((await post(writeBody(), { ...headers, [name]: values } as never)).status).toBe(400);
  expect(await readAnswers()).toEqual([]);
});

it("ASI07-24 a signed answer that names itself an operator", async () => {
  const body = writeBody({ by: { kind: "operator", id: "the-owner" } });
  expect((await post(body, sign(body))).status).toBe(400);
  const named = writeBody({ by: { id: "the-owner" } });
  expect((await post(named, sign(named))).status).toBe(200);
  expect(await readAnswers()).toMatchObject([
    { by: { kind: "person", id: "the-owner" }, through: "webhook:ops" },
  ]);
});
