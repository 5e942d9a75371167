/** Owns: real servers of this process for the clients to call, and a clock that goes through waits by itself. */
import type { CallingRun } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { PeerRunRequest } from "../../src/agents/coordination/ports/outbound.ts";
import {
  createSafeFetch,
  type SafeFetch,
  type SafeFetchDependencies,
} from "../../src/infra/http/safe-fetch.ts";
import { START_MS } from "../support/fake-clock.ts";

/** No wait between tries is as long, so the clock can tell the two. */
export const TIMEOUT_MS = 98_765;
export const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
export const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;
export const PARENT: CallingRun = {
  runId: "run-parent",
  hostId: "host-a",
  cause: "core.dispatch",
  wellKnownUrl: "https://a.example/.well-known/openwop",
};

export interface SteppingClock extends Clock {
  readonly waits: number[];
  /** Ends the time of whatever is under way. */
  expire(): void;
  readonly underWay: number;
}

/** Waits pass at once; times of calls pass when the test says so. */
export function createSteppingClock(): SteppingClock {
  let nowMs = START_MS;
  const times = new Set<() => void>();
  const waits: number[] = [];
  return {
    waits,
    get underWay() {
      return times.size;
    },
    now: () => nowMs as EpochMs,
    expire: () => {
      for (const run of [...times]) run();
    },
    wakeAt: (atMs, run) => {
      if (atMs - nowMs === TIMEOUT_MS) {
        times.add(run);
        return () => void times.delete(run);
      }
      waits.push(atMs - nowMs);
      const soon = setImmediate(() => {
        nowMs = Math.max(nowMs, atMs);
        run();
      });
      return () => clearImmediate(soon);
    },
  };
}

export function testFetch(clock: Clock, dependencies: Partial<SafeFetchDependencies> = {}): SafeFetch {
  return createSafeFetch({
    clock,
    allowPrivate: true,
    timeoutMs: TIMEOUT_MS,
    bytesMax: 1_000_000,
    ...dependencies,
  });
}

/** A request that the server got. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Server {
  readonly url: string;
  readonly received: ReceivedRequest[];
}

export type Reply = (response: ServerResponse, request: ReceivedRequest) => void;

export async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that replies as told, and keeps what it got. */
export async function serve(reply: Reply): Promise<Server> {
  const received: ReceivedRequest[] = [];
  const url = await listen((request, response) => {
    void text(request).then((body) => {
      const { method = "", url: path = "", headers } = request;
      const got = { method, path, headers, body };
      received.push(got);
      reply(response, got);
    });
  });
  return { url, received };
}

/** Replies in turn, the last one again and again. */
export function replyInTurn(...replies: readonly Reply[]): Reply {
  let at = 0;
  return (response, request) => {
    const reply = replies[Math.min(at, replies.length - 1)]!;
    at += 1;
    reply(response, request);
  };
}

export const replyJson =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  };

export const replyEndlessly: Reply = (response) => {
  response.writeHead(200, { "content-type": "application/json" });
  const writeMore = (): void => {
    while (response.write(Buffer.alloc(65_536, " ")));
  };
  response.on("drain", writeMore);
  response.on("error", () => undefined);
  writeMore();
};

/** A server of raw bytes; `started` resolves when something was asked. */
export async function startRawServer(speak: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => speak(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export const createUnendingSignal = (): AbortSignal => new AbortController().signal;

export const PEER_RUN: PeerRunRequest = {
  workflowId: "wf",
  inputs: {},
  idempotencyKey: "run:node:1",
  parent: PARENT,
  traceparent: TRACEPARENT,
  signal: createUnendingSignal(),
};
