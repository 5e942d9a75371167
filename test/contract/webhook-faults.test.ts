import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import {
  closeConnection,
  computeHmac,
  createMover,
  startRawReceiver,
  startReceiver,
  SECRET,
  send,
  replyStatus,
  TIMEOUT_MS,
  type Answer,
} from "./webhook-scene.ts";

describe("a receiver that misbehaves", () => {
  it("costs one try of its time when it does not answer", async () => {
    const time = createFakeClock();
    const move = createMover(time);
    const { url, received } = await startReceiver(() => move(TIMEOUT_MS));
    const { outcome } = await send({ webhook: { url, triesMax: 2 }, time, move });
    expect(outcome).toEqual({
      kind: "failed",
      tries: 2,
      message: `The webhook did not answer within ${TIMEOUT_MS} ms.`,
    });
    expect(received).toHaveLength(2);
  });

  it("has taken the notice when its status said so, though its answer never ends", async () => {
    const replyEndlessly: Answer = (response) => {
      const writeMore = (): void => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
      };
      response.writeHead(200).on("drain", writeMore);
      writeMore();
    };
    const time = createFakeClock();
    const replySilently: Answer = (response) => {
      response.writeHead(202).write("and then", () => setImmediate(() => void time.advance(TIMEOUT_MS)));
    };
    for (const answer of [replyEndlessly, replySilently]) {
      const { url } = await startReceiver(answer);
      const { outcome } = await send({ webhook: { url }, time });
      expect(outcome).toEqual({ kind: "delivered", tries: 1 });
    }
  });

  it("has taken the notice when its status said so, though the connection breaks behind it", async () => {
    const reset: Answer = (response) => {
      response
        .writeHead(200, { "content-length": "10" })
        .write("x", () => response.socket?.resetAndDestroy());
    };
    const { url } = await startReceiver(reset);
    expect((await send({ webhook: { url } })).outcome).toEqual({ kind: "delivered", tries: 1 });
  });

  it.each([
    ["no HTTP", "220 smtp.example ESMTP\r\n", "HPE_INVALID_CONSTANT"],
    ["nothing", "", "ECONNRESET"],
    ["headers without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}\r\n\r\n`, "HPE_HEADER_OVERFLOW"],
    [
      "an upgrade that nobody asked for",
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
      "ECONNRESET",
    ],
  ])("is a failed try when it sends %s", async (_, reply, code) => {
    const { outcome } = await send({ webhook: { url: await startRawReceiver(reply), triesMax: 1 } });
    const message = `The webhook could not be reached: ${code}.`;
    expect(outcome).toEqual({ kind: "failed", tries: 1, message });
  });

  it("is tried again when its name cannot be resolved", async () => {
    const resolve = (): Promise<string[]> =>
      Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND hooks.example"), { code: "ENOTFOUND" }));
    const { outcome } = await send({ webhook: { url: "https://hooks.example/", triesMax: 2 }, resolve });
    const message = "The webhook could not be reached: ENOTFOUND.";
    expect(outcome).toEqual({ kind: "failed", tries: 2, message });
  });

  it("costs one try of its time when its name is never resolved", async () => {
    const time = createFakeClock();
    const resolve = (): Promise<string[]> => {
      setImmediate(() => void time.advance(TIMEOUT_MS));
      return new Promise(() => undefined);
    };
    const { outcome } = await send({
      webhook: { url: "https://hooks.example/", triesMax: 1 },
      resolve,
      time,
    });
    expect(outcome).toMatchObject({
      kind: "failed",
      tries: 1,
      message: expect.stringMatching(/within/) as string,
    });
  });
});

describe("stopping", () => {
  const message = "The webhook was stopped before the notice was delivered.";

  it("ends a notice before it is sent", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    const { outcome } = await send({ webhook: { url }, signal: AbortSignal.abort() });
    expect(outcome).toEqual({ kind: "failed", tries: 0, message });
    expect(received).toEqual([]);
  });

  it("ends a request that is under way", async () => {
    const stop = new AbortController();
    const { url, received } = await startReceiver(() => stop.abort());
    const { outcome } = await send({ webhook: { url }, signal: stop.signal });
    expect(outcome).toEqual({ kind: "failed", tries: 1, message });
    expect(received).toHaveLength(1);
  });

  it("ends the wait for the next try", async () => {
    const stop = new AbortController();
    const time = createFakeClock();
    const clock: Clock = {
      now: () => time.now(),
      wakeAt: (atMs, run) => {
        if (atMs - time.now() !== TIMEOUT_MS) setImmediate(() => stop.abort());
        return time.wakeAt(atMs, run);
      },
    };
    const { url, received } = await startReceiver(replyStatus(500));
    const { outcome } = await send({ webhook: { url }, signal: stop.signal, clock, time });
    expect(outcome).toEqual({ kind: "failed", tries: 1, message });
    expect(received).toHaveLength(1);
  });
});

describe("the secret and the address", () => {
  it("are in no outcome and no line of the log, whatever goes wrong", async () => {
    const ok = await startReceiver(replyStatus(200));
    const bad = await startReceiver(replyStatus(500), closeConnection, replyStatus(403));
    const failWithSecret = (): Promise<string[]> =>
      Promise.reject(Object.assign(new Error(`${SECRET} in-the-path`), { code: `${SECRET} in-the-code` }));
    const question = { text: "words of an agent", options: ["words"] };
    const sent = [
      await send({ webhook: { url: ok.url }, question }),
      await send({ webhook: { url: bad.url }, question }),
      await send({ webhook: { url: "http://127.0.0.1:1/in-the-path?key=in-the-query" } }),
      await send({ webhook: { url: ok.url, allowPrivate: false } }),
      await send({ webhook: { url: "https://user:in-the-query@hooks.example/" } }),
      await send({ webhook: { url: "https://hooks.example/in-the-path" }, resolve: failWithSecret }),
    ];
    const message = JSON.stringify(sent);
    expect(message).toContain('\\"webhook\\":\\"ops\\"');
    for (const part of [
      SECRET,
      "words",
      "in-the",
      "127.0.0.1",
      "hooks.example",
      "v1,",
      computeHmac("answer:co-1:escalation-2", "base64url"),
    ])
      expect(message).not.toContain(part);
  });
});
