/** Owns: sending notices to real servers of this process, with a clock whose time is a value. */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished } from "vitest";
import type { WebhookConfig } from "../../src/agents/coordination/contracts/config/gates-config.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { ChannelNotice, NoticeOutcome } from "../../src/agents/coordination/ports/human-channel.ts";
import { createWebhookChannel, type WebhookDependencies } from "../../src/infra/webhook/webhook-channel.ts";
import { createFakeClock, START_MS, type FakeClock } from "../support/fake-clock.ts";

export const SECRET = "a secret of the operator's";
/** No wait between tries is as long, so a test can tell the two. */
export const TIMEOUT_MS = 9_876;
export const HOUR_MS = 3_600_000;

/** A request that the receiver got, with the bytes of its body. */
export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export type Answer = (response: ServerResponse) => void;

export interface Receiver {
  readonly url: string;
  readonly received: ReceivedRequest[];
}

/** A server that gives these answers in turn, the last one again and again. */
export async function startReceiver(...answers: readonly Answer[]): Promise<Receiver> {
  const received: ReceivedRequest[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const { method, url, headers } = request;
      received.push({ method, url, headers, body });
      (answers[received.length - 1] ?? answers.at(-1))?.(response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=in-the-query`,
    received,
  };
}

/** A server that speaks no HTTP, or too much of it. */
export async function startRawReceiver(reply: string): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(reply));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

export const replyStatus =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(code, headers).end();
  };
export const closeConnection: Answer = (response) => void response.destroy();

/** Moves a clock once it is not moved by anybody else any more: two who move it at once would put it back. */
export function createMover(time: FakeClock): (ms: number) => void {
  let moved = Promise.resolve();
  return (ms) => {
    moved = moved.then(() => time.advance(ms));
  };
}

/** A clock that moves by itself through the waits between tries, and only through those. */
function createSteppingClock(
  inner: FakeClock,
  move: (ms: number) => void,
): Clock & { readonly waits: number[] } {
  const waits: number[] = [];
  return {
    waits,
    now: () => inner.now(),
    wakeAt: (atMs, run) => {
      const ms = atMs - inner.now();
      if (ms !== TIMEOUT_MS) {
        waits.push(ms);
        setImmediate(() => move(ms));
      }
      return inner.wakeAt(atMs, run);
    },
  };
}

/** How the sending of a notice ended, the waits between its tries, and its log. */
export interface SendReport {
  readonly outcome: NoticeOutcome;
  readonly waits: readonly number[];
  readonly log: readonly string[];
}

export interface Scene extends Partial<WebhookDependencies> {
  readonly webhook: Partial<WebhookConfig> & { readonly url: string };
  readonly signal?: AbortSignal | undefined;
  readonly question?: Partial<ChannelNotice["question"]> | undefined;
  readonly noticeId?: string | undefined;
  readonly isOpen?: ChannelNotice["isOpen"] | undefined;
  /** A clock that the test moves, too, by `move`. */
  readonly time?: FakeClock;
  readonly move?: (ms: number) => void;
}

export async function send({
  webhook,
  signal,
  question,
  noticeId,
  isOpen,
  time,
  move,
  ...dependencies
}: Scene): Promise<SendReport> {
  const inner = time ?? createFakeClock();
  const clock = createSteppingClock(inner, move ?? createMover(inner));
  const log: string[] = [];
  const recordAt =
    (level: string) =>
    (fields: object, message: string): void =>
      void log.push(JSON.stringify({ level, ...fields, message }));
  const channel = createWebhookChannel({
    name: "ops",
    config: {
      secret: SECRET,
      allowPrivate: true,
      timeoutMs: TIMEOUT_MS,
      triesMax: 4,
      answers: true,
      ...webhook,
    },
    clock,
    logger: {
      debug: recordAt("debug"),
      info: recordAt("info"),
      warn: recordAt("warn"),
      error: recordAt("error"),
    },
    random: () => 0,
    ...dependencies,
  });
  const outcome = await channel.notify(createNotice({ signal, question, noticeId, isOpen }));
  expect(inner.pending).toBe(0);
  return { outcome, waits: clock.waits, log };
}

function createNotice({
  signal,
  question,
  noticeId,
  isOpen = () => Promise.resolve(true),
}: Pick<Scene, "signal" | "question" | "noticeId" | "isOpen">): ChannelNotice {
  return {
    noticeId: noticeId ?? "co-1:escalation-2:0",
    notice: 0,
    chatSession: "agent:main:main" as ChannelNotice["chatSession"],
    signal: signal ?? new AbortController().signal,
    isOpen,
    question: {
      questionId: "co-1:escalation-2",
      coordinationId: "co-1",
      escalationId: "escalation-2",
      cause: "confidence",
      kind: "approval",
      title: "A result states a low confidence.",
      ownerSession: "agent:main:main",
      answers: ["approve", "deny"],
      deadlineAtMs: START_MS + HOUR_MS,
      onExpiry: "deny",
      confidence: { measured: 0.4, floor: 0.7 },
      ...question,
    } as ChannelNotice["question"],
  };
}

export const computeHmac = (
  text: string | Buffer,
  encoding: "base64" | "base64url",
  secret: string | Buffer = SECRET,
): string => createHmac("sha256", secret).update(text).digest(encoding);
