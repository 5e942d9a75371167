import { describe, expect, it } from "vitest";
import { START_MS } from "../support/fake-clock.ts";
import { closeConnection, computeHmac, HOUR_MS, startReceiver, send, replyStatus } from "./webhook-scene.ts";

describe("a notice", () => {
  it("is posted once as JSON that says everything of the question and how to answer", async () => {
    const { url, received } = await startReceiver(replyStatus(204));
    const { outcome } = await send({
      webhook: { url },
      answerUrl: "https://gateway.example/answers/ops",
      question: { text: "May I deploy?", options: ["yes", "no"], stepId: "deploy" as never },
    });
    expect(outcome).toEqual({ kind: "delivered", tries: 1 });
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ method: "POST", url: "/hook?key=in-the-query" });
    expect(JSON.parse(String(received[0]?.body))).toEqual({
      type: "coordination.question",
      version: 1,
      noticeId: "co-1:escalation-2:0",
      notice: 0,
      question: {
        questionId: "co-1:escalation-2",
        coordinationId: "co-1",
        escalationId: "escalation-2",
        cause: "confidence",
        kind: "approval",
        title: "A result states a low confidence.",
        stepId: "deploy",
        ownerSession: "agent:main:main",
        text: "May I deploy?",
        options: ["yes", "no"],
        answers: ["approve", "deny"],
        deadlineAtMs: START_MS + HOUR_MS,
        deadline: new Date(START_MS + HOUR_MS).toISOString(),
        onExpiry: "deny",
        confidence: { measured: 0.4, floor: 0.7 },
      },
      answer: {
        url: "https://gateway.example/answers/ops",
        answerToken: computeHmac("answer:co-1:escalation-2", "base64url"),
        choices: ["approve", "deny"],
        how: expect.stringContaining("answerToken") as string,
      },
    });
  });

  it("is signed over its id, its time and its bytes", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    await send({ webhook: { url }, question: { text: "Größe → 10 €?" } });
    const { headers, body } = received[0]!;
    const seconds = Math.floor(START_MS / 1_000);
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "accept-encoding": "identity",
      "webhook-id": "co-1:escalation-2:0",
      "webhook-timestamp": String(seconds),
    });
    const signed = Buffer.concat([Buffer.from(`co-1:escalation-2:0.${seconds}.`), body]);
    expect(headers["webhook-signature"]).toBe(`v1,${computeHmac(signed, "base64")}`);
  });

  it("is signed with the bytes that a secret of the form whsec_ stands for", async () => {
    const key = Buffer.from("0123456789abcdef01234567");
    const { url, received } = await startReceiver(replyStatus(200));
    await send({ webhook: { url, secret: `whsec_${key.toString("base64")}` } });
    const { headers, body } = received[0]!;
    const signed = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${String(body)}`;
    expect(headers["webhook-signature"]).toBe(`v1,${computeHmac(signed, "base64", key)}`);
  });

  it("invites no answer where answers of the webhook do not count", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    await send({ webhook: { url, answers: false } });
    expect(JSON.parse(String(received[0]?.body))).not.toHaveProperty("answer");
  });

  it.each(["pläne:1", "release.1767323045:escalation-1", "a\r\nb", "x".repeat(300)])(
    "has an id that a header and a signature can hold, whatever the coordination is called: %j",
    async (noticeId) => {
      const { url, received } = await startReceiver(replyStatus(200));
      expect((await send({ webhook: { url }, noticeId })).outcome.kind).toBe("delivered");
      expect(received[0]?.headers["webhook-id"]).toMatch(/^notice_[0-9a-f]{64}$/);
      expect(JSON.parse(String(received[0]?.body))).toMatchObject({ noticeId });
    },
  );
});

describe("a notice that is not taken", () => {
  it("comes again with the same id and body, newly signed, after waits that double", async () => {
    const { url, received } = await startReceiver(
      replyStatus(500),
      closeConnection,
      replyStatus(503),
      replyStatus(200),
    );
    const { outcome, waits } = await send({ webhook: { url } });
    expect(outcome).toEqual({ kind: "delivered", tries: 4 });
    expect(waits).toEqual([2_500, 5_000, 10_000]);
    expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(new Set(received.map(({ body }) => String(body))).size).toBe(1);
    expect(new Set(received.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(4);
    expect(new Set(received.map(({ headers }) => headers["webhook-signature"])).size).toBe(4);
  });

  it("waits up to twice as long by chance", async () => {
    const { url } = await startReceiver(replyStatus(500));
    const { waits } = await send({ webhook: { url, triesMax: 9 }, random: () => 0.999_999 });
    expect(waits.map((ms) => Math.round(ms / 1_000))).toEqual([5, 10, 20, 40, 80, 160, 320, 600]);
  });

  it.each([408, 425, 429, 500, 502, 599])(
    "is given up after its tries where they end in status %i",
    async (code) => {
      const { url, received } = await startReceiver(replyStatus(code));
      const { outcome } = await send({ webhook: { url } });
      expect(outcome).toEqual({
        kind: "failed",
        tries: 4,
        message: `The webhook answered with status ${code}.`,
      });
      expect(received).toHaveLength(4);
    },
  );

  it.each([300, 304, 400, 401, 403, 404, 409, 410, 413])("is given up at once at status %i", async (code) => {
    const { url, received } = await startReceiver(replyStatus(code));
    const { outcome } = await send({ webhook: { url } });
    expect(outcome).toEqual({
      kind: "failed",
      tries: 1,
      message: `The webhook answered with status ${code}.`,
    });
    expect(received).toHaveLength(1);
  });

  it.each([301, 302, 303, 307, 308])("does not follow a redirect of status %i", async (code) => {
    const elsewhere = await startReceiver(replyStatus(200));
    const { url } = await startReceiver(replyStatus(code, { location: elsewhere.url }));
    expect((await send({ webhook: { url } })).outcome).toMatchObject({ kind: "failed", tries: 1 });
    expect(elsewhere.received).toEqual([]);
  });

  it.each([
    ["120", 120_000],
    [new Date(START_MS + 90_000).toUTCString(), 89_322],
    // Less than the wait would be anyway.
    ["1", 2_500],
    [new Date(START_MS - 90_000).toUTCString(), 2_500],
    ["-5", 2_500],
    ["1e9", 2_500],
    ["soon", 2_500],
    ["2027", 2_027_000],
    // No longer than an hour.
    ["9999999999", HOUR_MS],
  ])("waits as long as Retry-After asks for, within bounds: %s", async (retryAfter, waitMs) => {
    const { url } = await startReceiver(replyStatus(429, { "retry-after": retryAfter }), replyStatus(200));
    const { outcome, waits } = await send({
      webhook: { url },
      question: { deadlineAtMs: (START_MS + 2 * HOUR_MS) as never },
    });
    expect(outcome).toEqual({ kind: "delivered", tries: 2 });
    expect(waits).toEqual([waitMs]);
  });

  it("is not sent again once its question is closed", async () => {
    const { url, received } = await startReceiver(replyStatus(503));
    const isOpen = () => Promise.resolve(received.length < 2);
    const { outcome, waits, log } = await send({ webhook: { url }, isOpen });
    const message = "The webhook answered with status 503. The question is closed.";
    expect(outcome).toEqual({ kind: "failed", tries: 2, message });
    expect(log.at(-1)).toMatch(/^\{"level":"info",.*"a webhook was given up"\}$/);
    expect(waits).toEqual([2_500, 5_000]);
    expect(received).toHaveLength(2);
  });

  it("is given up when no try is left before the question's deadline", async () => {
    const { url, received } = await startReceiver(replyStatus(503));
    const early = await send({ webhook: { url }, question: { deadlineAtMs: (START_MS + 7_500) as never } });
    const message = "The webhook answered with status 503. The question's time is over.";
    expect(early).toMatchObject({ outcome: { kind: "failed", tries: 2, message }, waits: [2_500] });
    const late = await send({ webhook: { url }, question: { deadlineAtMs: START_MS as never } });
    expect(late.outcome).toEqual({ kind: "failed", tries: 0, message: "The question's time is over." });
    expect(received).toHaveLength(2);
  });
});
