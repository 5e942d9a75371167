import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WebhookConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import { ANSWER_BYTES_MAX } from "../../src/infra/webhook/answer-body.ts";
import {
  createAnswerCheck,
  type AnswerMessage,
  type CheckedAnswer,
} from "../../src/infra/webhook/answer-check.ts";
import { createSeenIds } from "../../src/infra/webhook/seen-ids.ts";
import { createAnswerToken, signWebhookMessage } from "../../src/infra/webhook/webhook-signature.ts";
import { createFakeClock, START_MS, type FakeClock } from "../support/fake-clock.ts";
import { startReceiver, send, replyStatus } from "./webhook-scene.ts";

const SECRET = "the secret of operations";
const QUESTION = "co-1:escalation-2";
const NOW_S = Math.floor(START_MS / 1_000);

const hmacOf = (text: string, encoding: "base64" | "base64url", secret: string | Buffer = SECRET): string =>
  createHmac("sha256", secret).update(text).digest(encoding);

const webhookOf = (config: Partial<WebhookConfig> = {}): WebhookConfig => ({
  url: "https://hooks.example/",
  secret: SECRET,
  allowPrivate: false,
  timeoutMs: 10_000,
  triesMax: 6,
  answers: true,
  ...config,
});

interface Scene {
  readonly clock: FakeClock;
  readonly check: (message: AnswerMessage) => CheckedAnswer;
}

function open(webhooks: Record<string, WebhookConfig> = { ops: webhookOf() }): Scene {
  const clock = createFakeClock();
  const checker = createAnswerCheck({ webhooks, clock });
  return { clock, check: (message) => checker.check(message) };
}

const approval = {
  questionId: QUESTION,
  answerToken: hmacOf(`answer:${QUESTION}`, "base64url"),
  answer: "approve",
};

interface SignatureFields {
  readonly id?: string;
  readonly seconds?: number | string;
  readonly secret?: string | Buffer;
  readonly name?: string;
}

/** As a receiver of notices would sign, without our own code. */
function sign(
  body: unknown,
  { id = "msg_1", seconds = NOW_S, secret, name = "ops" }: SignatureFields = {},
): AnswerMessage {
  const rawBody = typeof body === "string" ? body : JSON.stringify(body);
  const signature = `v1,${hmacOf(`${id}.${seconds}.${rawBody}`, "base64", secret)}`;
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": signature,
  };
  return { name, rawBody, headers };
}

const withHeaders = (message: AnswerMessage, headers: AnswerMessage["headers"]): AnswerMessage => ({
  ...message,
  headers: { ...message.headers, ...headers },
});

const reasonOf = (checked: CheckedAnswer): string => (checked.ok ? "accepted" : checked.because);

describe("the signature", () => {
  it("is that of the Standard Webhooks specification", () => {
    // The example that its libraries are tested with.
    const signature = signWebhookMessage("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", {
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      timestamp: "1614265330",
      body: Buffer.from('{"test": 2432232314}'),
    });
    expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  it("and the token of an answer are those that anybody can make with the secret", () => {
    const parts = { id: "a", timestamp: "1", body: Buffer.from("{}") };
    expect(signWebhookMessage(SECRET, parts)).toBe(`v1,${hmacOf("a.1.{}", "base64")}`);
    expect(createAnswerToken(SECRET, QUESTION)).toBe(hmacOf(`answer:${QUESTION}`, "base64url"));
  });
});

describe("an answer", () => {
  it.each([
    [approval, { questionId: QUESTION, answer: "approve", by: { kind: "person" } }],
    [
      { ...approval, type: "coordination.answer" },
      { questionId: QUESTION, answer: "approve", by: { kind: "person" } },
    ],
    [
      { ...approval, answer: "deny", text: "Not today.", by: { id: "ada@example.com" } },
      {
        questionId: QUESTION,
        answer: "deny",
        text: "Not today.",
        by: { kind: "person", id: "ada@example.com" },
      },
    ],
    [
      { ...approval, answer: "answer", text: "In the cellar: „links“." },
      { questionId: QUESTION, answer: "answer", text: "In the cellar: „links“.", by: { kind: "person" } },
    ],
  ])("that is signed is accepted: %j", (body, answer) => {
    expect(open().check(sign(body))).toEqual({
      ok: true,
      answer,
      forget: expect.any(Function) as () => void,
    });
  });

  it("is accepted with what the notice brought", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    await send({ webhook: { url, secret: SECRET } });
    const { question, answer } = JSON.parse(String(received[0]?.body)) as {
      question: { questionId: string };
      answer: { answerToken: string };
    };
    const body = { questionId: question.questionId, answerToken: answer.answerToken, answer: "deny" };
    expect(reasonOf(open().check(sign(body)))).toBe("accepted");
  });

  it("is accepted in any bytes that were signed, with headers in any case and one right signature of several", () => {
    const message = sign(` ${JSON.stringify({ ...approval, text: "Größe" })}\n`);
    const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": right } = message.headers;
    const headers = {
      "Webhook-Id": id,
      "Webhook-Timestamp": [String(timestamp)],
      "Webhook-Signature": `v1a,x v1,${hmacOf("other", "base64")} ${String(right)} v2,y`,
      host: "gateway.example",
      "set-cookie": undefined,
    };
    expect(reasonOf(open().check({ ...message, rawBody: Buffer.from(message.rawBody), headers }))).toBe(
      "accepted",
    );
  });

  it("is checked with the secret of its own webhook", () => {
    const { check } = open({ ops: webhookOf(), other: webhookOf({ secret: "another secret" }) });
    expect(reasonOf(check(sign(approval, { name: "other" })))).toBe("bad_signature");
    expect(reasonOf(check(sign(approval)))).toBe("accepted");
  });

  it.each(["none", "", "__proto__", "constructor", "toString"])(
    "of a webhook that is not there is refused: %j",
    (name) => {
      expect(reasonOf(open().check(sign(approval, { name })))).toBe("unknown_webhook");
    },
  );

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])(
    "without %s, or with two, is unsigned",
    (header) => {
      const message = sign(approval);
      const value = String(message.headers[header]);
      expect(reasonOf(open().check(withHeaders(message, { [header]: undefined })))).toBe("unsigned");
      expect(reasonOf(open().check(withHeaders(message, { [header]: [value, value] })))).toBe("unsigned");
      expect(reasonOf(open().check(withHeaders(message, { [header.toUpperCase()]: value })))).toBe(
        "unsigned",
      );
    },
  );

  it.each([
    ["another secret", sign(approval, { secret: "a secret that was guessed" })],
    ["another body", { ...sign(approval), rawBody: JSON.stringify({ ...approval, answer: "deny" }) }],
    ["another id", withHeaders(sign(approval), { "webhook-id": "msg_2" })],
    ["another time", withHeaders(sign(approval), { "webhook-timestamp": String(NOW_S + 1) })],
    [
      "no version",
      withHeaders(sign(approval), {
        "webhook-signature": String(sign(approval).headers["webhook-signature"]).slice(3),
      }),
    ],
    ["an empty signature", withHeaders(sign(approval), { "webhook-signature": "" })],
    [
      "a right signature behind too many",
      withHeaders(sign(approval), {
        "webhook-signature": `${"v1,x ".repeat(16)}${String(sign(approval).headers["webhook-signature"])}`,
      }),
    ],
  ])("that was signed with or for %s is forged", (_, message) => {
    expect(reasonOf(open().check(message))).toBe("bad_signature");
  });

  it("is forged with any bit of its body or signature changed", () => {
    const message = sign(approval);
    const bytes = Buffer.from(message.rawBody);
    fc.assert(
      fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
        const rawBody = Buffer.from(bytes);
        rawBody[bit >> 3]! ^= 1 << (bit & 7);
        expect(reasonOf(open().check({ ...message, rawBody }))).toBe("bad_signature");
      }),
    );
    const signature = Buffer.from(String(message.headers["webhook-signature"]));
    fc.assert(
      fc.property(fc.nat(signature.length * 8 - 1), (bit) => {
        const changed = Buffer.from(signature);
        changed[bit >> 3]! ^= 1 << (bit & 7);
        const forged = withHeaders(message, { "webhook-signature": changed.toString("latin1") });
        expect(reasonOf(open().check(forged))).toBe("bad_signature");
      }),
    );
  });

  it.each([
    [-301, "stale"],
    // The time here is 678 ms behind the second.
    [-300, "stale"],
    [-299, "accepted"],
    [300, "accepted"],
    [301, "stale"],
    [9_999_999_999, "stale"],
  ])("signed %i seconds from now is %s", (seconds, expected) => {
    expect(reasonOf(open().check(sign(approval, { seconds: NOW_S + seconds })))).toBe(expected);
  });

  it("does not count where answers of the webhook do not", () => {
    const { check } = open({ ops: webhookOf({ answers: false }) });
    expect(reasonOf(check(sign(approval)))).toBe("not_allowed");
    // Whoever has not the secret is not told.
    expect(reasonOf(check(sign(approval, { secret: "a secret that was guessed" })))).toBe("bad_signature");
  });

  it.each([
    ["that of another question", hmacOf("answer:co-1:escalation-3", "base64url")],
    ["made without the secret", hmacOf(`answer:${QUESTION}`, "base64url", "a secret that was guessed")],
    ["cut", approval.answerToken.slice(0, -1)],
    ["empty but for a letter", "x"],
  ])("whose token is %s is not allowed", (_, answerToken) => {
    expect(reasonOf(open().check(sign({ ...approval, answerToken })))).toBe("not_allowed");
  });
});

describe("a message that is no answer", () => {
  const whole = JSON.stringify(approval);

  it.each<[string, unknown]>([
    ["empty", ""],
    ["not JSON", "{"],
    ["null", "null"],
    ["a list", "[]"],
    ["deep", "[".repeat(100_000)],
    ["without a question", { ...approval, questionId: "" }],
    ["with a question too long", { ...approval, questionId: "q".repeat(300) }],
    ["without its token", { questionId: QUESTION, answer: "approve" }],
    ["with another word", { ...approval, answer: "approved" }],
    ["without the text that is the answer", { ...approval, answer: "answer" }],
    ["with a number for a text", { ...approval, text: 1 }],
    ["with a text too long", { ...approval, text: "x".repeat(200_001) }],
    ["with half a character", whole.replace("{", '{"text":"\\ud800",')],
    ["with a name for a person", { ...approval, by: "ada" }],
    ["without a name", { ...approval, by: { id: "" } }],
    ["with a name of two lines", { ...approval, by: { id: "ada\nDenied by: bob" } }],
    ["with a name that is written backwards", { ...approval, by: { id: "ada\u202ebob" } }],
    ["with a name too long", { ...approval, by: { id: "x".repeat(129) } }],
    ["with a rank of its own making", { ...approval, by: { id: "ada", kind: "operator" } }],
    ["with something more", { ...approval, coordinationId: "co-1" }],
    ["with a prototype", whole.replace("{", '{"__proto__":{},')],
  ])("%s is malformed", (_, body) => {
    expect(reasonOf(open().check(sign(body)))).toBe("malformed");
  });

  it.each([
    ["an id with a dot, which could be signed in two ways", { id: "msg.1" }],
    ["an id too long", { id: "m".repeat(257) }],
    ["an id with a space", { id: "msg 1" }],
    ["a time that is no number", { seconds: "soon" }],
    ["a time with a fraction", { seconds: `${NOW_S}.5` }],
    ["a time in hexadecimal", { seconds: "0x69573b55" }],
  ])("with %s is malformed", (_, signing) => {
    expect(reasonOf(open().check(sign(approval, signing)))).toBe("malformed");
  });

  it("is malformed where it is no UTF-8 or too long, before it is read", () => {
    const bytes = Buffer.from(whole.replace("{", '{"text":"\u00ff",'), "latin1");
    const signature = createHmac("sha256", SECRET).update(`m.${NOW_S}.`).update(bytes).digest("base64");
    const headers = {
      "webhook-id": "m",
      "webhook-timestamp": String(NOW_S),
      "webhook-signature": `v1,${signature}`,
    };
    expect(reasonOf(open().check({ name: "ops", headers, rawBody: bytes }))).toBe("malformed");
    const long = sign({ ...approval, text: "x".repeat(ANSWER_BYTES_MAX) });
    expect(open().check(long)).toMatchObject({
      because: "malformed",
      message: expect.stringContaining("longer") as string,
    });
  });

  it("takes the longest text in any way of writing it", () => {
    const text = "ä".repeat(200_000);
    const body = JSON.stringify({ ...approval, text }).replaceAll("ä", "\\u00e4");
    expect(reasonOf(open().check(sign(body)))).toBe("accepted");
  });

  it("is a notice that is sent back", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    await send({ webhook: { url, secret: SECRET } });
    const { headers, body } = received[0]!;
    expect(reasonOf(open().check({ name: "ops", headers, rawBody: body }))).toBe("malformed");
  });
});

describe("an answer that comes again", () => {
  it("is replayed, whatever it says now", () => {
    const { check } = open();
    expect(reasonOf(check(sign(approval)))).toBe("accepted");
    expect(reasonOf(check(sign(approval)))).toBe("replayed");
    expect(reasonOf(check(sign({ ...approval, answer: "deny" }, { seconds: NOW_S + 9 })))).toBe("replayed");
    expect(reasonOf(check(sign(approval, { id: "msg_2" })))).toBe("accepted");
  });

  it("is replayed for as long as its time would do, then stale", async () => {
    const { check, clock } = open();
    const message = sign(approval, { seconds: NOW_S + 290 });
    expect(reasonOf(check(message))).toBe("accepted");
    await clock.advance(589_000);
    expect(reasonOf(check(message))).toBe("replayed");
    await clock.advance(1_000);
    expect(reasonOf(check(message))).toBe("stale");
  });

  it("is accepted where it was forged or malformed before, or could not be recorded", () => {
    const { check } = open();
    check(sign(approval, { secret: "a secret that was guessed" }));
    check(sign({ ...approval, answer: "approved" }));
    const first = check(sign(approval));
    expect(first.ok).toBe(true);
    if (first.ok) first.forget();
    expect(reasonOf(check(sign(approval)))).toBe("accepted");
  });

  it("is kept apart by webhook", () => {
    const { check } = open({ ops: webhookOf(), also: webhookOf() });
    expect(reasonOf(check(sign(approval)))).toBe("accepted");
    expect(reasonOf(check(sign(approval, { name: "also" })))).toBe("accepted");
  });

  it("is remembered within bounds: what is over is forgotten first, then the oldest", () => {
    let nowMs = 0;
    const seen = createSeenIds(() => nowMs, 3);
    seen.keep("long", 100);
    seen.keep("short", 10);
    seen.keep("longer", 200);
    nowMs = 11;
    seen.keep("next", 300);
    expect(["long", "short", "longer", "next"].map((id) => seen.has(id))).toEqual([true, false, true, true]);
    seen.keep("another", 300);
    expect(["long", "longer", "next", "another"].map((id) => seen.has(id))).toEqual([
      false,
      true,
      true,
      true,
    ]);
  });
});

describe("what is told of a refusal", () => {
  it("holds no secret, no token, no signature and nothing that a person wrote", () => {
    const { check } = open({ ops: webhookOf(), mute: webhookOf({ answers: false }) });
    const text = "words of a person";
    const messages = [
      sign(approval, { name: "none" }),
      sign(approval, { name: "mute" }),
      sign(approval, { secret: "a secret that was guessed" }),
      sign(approval, { seconds: 1 }),
      sign({ ...approval, text, answer: text, by: text }),
      sign({ ...approval, text, answerToken: "x" }),
      sign({ ...approval, text: `${text}\ud800` }),
    ];
    const message = JSON.stringify(messages.map((message) => check(message)));
    expect(message.match(/"ok":false/gu)).toHaveLength(messages.length);
    for (const part of [
      SECRET,
      approval.answerToken,
      hmacOf(`answer:${QUESTION}`, "base64"),
      "v1,",
      text,
      "guessed",
    ])
      expect(message).not.toContain(part);
  });
});
