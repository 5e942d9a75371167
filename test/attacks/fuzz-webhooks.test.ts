/**
 * Answers by webhook with hostile bodies and headers, rightly and wrongly signed: none that is not signed is believed, none is
 * accepted twice, and each is accepted or refused in words. `FUZZ_WEBHOOKS` sets how many, `FUZZ_SEED` the first seed.
 */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { WebhookConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import { createAnswerCheck, type AnswerMessage } from "../../src/infra/webhook/answer-check.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createFakeClock, START_MS } from "../support/fake-clock.ts";
import {
  createHostileText,
  createHostileValue,
  pickOne,
  spoilText,
  type Random,
} from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";

const ANSWERS = chooseCampaignSize("FUZZ_WEBHOOKS", { short: 10_000, long: 300_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const CHECK_MS_MAX = 500;
const SECRET = "the secret of operations";
const QUESTION = "co-1:escalation-2";
const NOW_S = Math.floor(START_MS / 1_000);

const WEBHOOK: WebhookConfig = {
  url: "https://hooks.example/",
  secret: SECRET,
  allowPrivate: false,
  timeoutMs: 10_000,
  triesMax: 6,
  answers: true,
};
const checker = createAnswerCheck({ webhooks: { ops: WEBHOOK }, clock: createFakeClock() });

interface Attempt {
  readonly message: AnswerMessage;
  /** Whether its signature is that of the webhook, over these bytes, at this time. */
  readonly isSigned: boolean;
}

function computeHmac(text: string | Uint8Array, encoding: "base64" | "base64url"): string {
  return createHmac("sha256", SECRET).update(text).digest(encoding);
}

function createBody(random: Random): string | Uint8Array {
  const chance = pickOne(random, [0, 0.1, 0.3]);
  const spoil = (value: unknown): unknown => (random() < chance ? createHostileValue(random) : value);
  const body = {
    questionId: spoil(QUESTION),
    answerToken: spoil(computeHmac(`answer:${QUESTION}`, "base64url")),
    answer: spoil(pickOne(random, ["approve", "deny", "answer"])),
    ...(random() < 0.5 && { text: spoil(createHostileText(random)) }),
    ...(random() < 0.5 && { by: spoil({ id: spoil(createHostileText(random)) }) }),
    ...(random() < 0.3 && { type: spoil("coordination.answer") }),
    ...(random() < chance && { [createHostileText(random)]: createHostileValue(random) }),
  };
  return spoilText(random, spoil(body), chance);
}

function createAttempt(random: Random, seed: number): Attempt {
  const rawBody = createBody(random);
  const id = `msg_${seed}`;
  const isLate = random() < 0.05;
  const seconds = isLate ? NOW_S + 301 : NOW_S;
  const signed = Buffer.concat([Buffer.from(`${id}.${seconds}.`), Buffer.from(rawBody as string)]);
  const right = `v1,${computeHmac(signed, "base64")}`;
  const isForged = random() < 0.3;
  const forged = pickOne(random, [
    right.slice(0, -1),
    right.toLowerCase(),
    right.replace("v1,", "v2,"),
    "v1,",
    "v1,".repeat(10_000),
    createHostileText(random),
  ]);
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": isForged ? forged : right,
    ...(random() < 0.05 && {
      [pickOne(random, ["webhook-id", "webhook-timestamp"])]: createHostileText(random),
    }),
  };
  const isSame = headers["webhook-id"] === id && headers["webhook-timestamp"] === String(seconds);
  const name = random() < 0.95 ? "ops" : createHostileText(random);
  return { message: { name, headers, rawBody }, isSigned: !isForged && !isLate && isSame && name === "ops" };
}

const NOT_BELIEVED: ReadonlySet<string> = new Set(["unknown_webhook", "unsigned", "bad_signature", "stale"]);

/** Describes what is wrong with what became of it. */
function findFault({ message, isSigned }: Attempt): string | undefined {
  const start = performance.now();
  const checked = checker.check(message);
  const ms = performance.now() - start;
  if (ms > CHECK_MS_MAX) return `it took ${Math.round(ms)} ms`;
  if (checked.ok)
    return isSigned ? findAcceptedFault(message, checked.answer.questionId) : "it was accepted unsigned";
  if (checked.message.length < 10) return "its refusal does not say what is wrong";
  // Headers of another form are looked at before the signature.
  const isMisformed = checked.message.startsWith("webhook-id or webhook-timestamp is not of the form");
  if (!isMisformed && NOT_BELIEVED.has(checked.because) === isSigned)
    return `signed: ${isSigned}, refused as ${checked.because}`;
  return undefined;
}

function findAcceptedFault(message: AnswerMessage, questionId: string): string | undefined {
  if (questionId !== QUESTION) return `it answers ${questionId}`;
  return checker.check(message).ok ? "it was accepted twice" : undefined;
}

describe("an answer by webhook", () => {
  it(`is accepted once, signed, or refused in words (${ANSWERS})`, { timeout: 3_600_000 }, () => {
    let accepted = 0;
    for (let seed = SEED; seed < SEED + ANSWERS; seed += 1) {
      const random = createRandom(seed);
      random();
      const attempt = createAttempt(random, seed);
      const { rawBody, headers } = attempt.message;
      const shown = `${JSON.stringify(headers)} ${Buffer.from(rawBody as string).toString()}`.slice(0, 1_000);
      expect(findFault(attempt), `seed ${seed}: ${shown}`).toBeUndefined();
      if (attempt.isSigned) accepted += 1;
    }
    expect(accepted).toBeGreaterThan(ANSWERS / 4);
  });
});
