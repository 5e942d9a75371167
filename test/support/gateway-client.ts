/*
 * A client of the gateway's WebSocket protocol, version 4: requests and their answers, and events for who listens.
 */
import { randomUUID } from "node:crypto";

export type Json = { [key: string]: unknown };

export type GatewayRequest = {
  readonly method: string;
  readonly params: Json;
  readonly timeoutMs: number;
  /** The first answer "accepted" is passed over and the one after it counts. */
  readonly final?: boolean;
};

export type GatewayClient = {
  request(request: GatewayRequest): Promise<Json>;
  close(): void;
};

/**
 * Capabilities of a client, such as `approvals`, and who hears the events that it is sent for that. `hello` is how the
 * gateway greets it.
 */
export type Listener = {
  readonly caps: readonly string[];
  readonly hear: (event: string, payload: Json) => void;
};

type Connection = { readonly socket: WebSocket; readonly pending: Map<string, PendingRequest> };
type PendingRequest = { readonly final: boolean; resolve(payload: Json): void; reject(error: Error): void };

const CONNECT_TIMEOUT_MS = 15_000;
// This client id and mode keep their scopes on loopback without a paired device.
const IDENTITY = { id: "gateway-client", version: "1.0.0", platform: "test", mode: "backend" };
const SCOPES = ["operator.admin", "operator.read", "operator.write", "operator.approvals"];

const DEAF: Listener = { caps: [], hear: () => undefined };

/** One long-lived connection, opened on first use and again after it was lost. */
export function connectOnUse(port: number, token: string, listener: Listener = DEAF): GatewayClient {
  let current: Promise<Connection> | undefined;
  const connectOnce = (): Promise<Connection> => {
    if (current) return current;
    const onLost = (): void => {
      if (current === opening) current = undefined;
    };
    const opening = openConnection({ port, token, listener, onLost });
    current = opening;
    return opening;
  };
  return {
    request: async (request) => ask(await connectOnce(), request),
    close: () => {
      void current?.then(({ socket }) => socket.close()).catch(() => undefined);
      current = undefined;
    },
  };
}

type ConnectionOptions = {
  readonly port: number;
  readonly token: string;
  readonly listener: Listener;
  readonly onLost: () => void;
};

function openConnection({ port, token, listener, onLost }: ConnectionOptions): Promise<Connection> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  const connection: Connection = { socket, pending: new Map() };
  return new Promise((resolve, reject) => {
    socket.addEventListener("close", ({ code, reason }) => {
      onLost();
      const lostConnection = new Error(`the gateway connection closed: ${code} ${reason}`);
      reject(lostConnection);
      for (const waiting of connection.pending.values()) waiting.reject(lostConnection);
    });
    socket.addEventListener("message", ({ data }) => {
      const frame = JSON.parse(String(data)) as Json;
      if (frame["type"] === "res") answer(connection.pending, frame);
      else if (frame["event"] === "connect.challenge") {
        introduceClient(connection, token, listener.caps).then((hello) => {
          listener.hear("hello", hello);
          resolve(connection);
        }, reject);
      } else listener.hear(String(frame["event"]), (frame["payload"] ?? {}) as Json);
    });
  });
}

function introduceClient(connection: Connection, token: string, caps: readonly string[]): Promise<Json> {
  const params = {
    minProtocol: 4,
    maxProtocol: 4,
    client: IDENTITY,
    role: "operator",
    scopes: SCOPES,
    caps,
    auth: { token },
  };
  return ask(connection, { method: "connect", params, timeoutMs: CONNECT_TIMEOUT_MS });
}

function ask({ socket, pending }: Connection, request: GatewayRequest): Promise<Json> {
  const { method, params, timeoutMs, final = false } = request;
  const id = randomUUID();
  return new Promise<Json>((resolve, reject) => {
    const settleRequest = (): void => {
      clearTimeout(timer);
      pending.delete(id);
    };
    const waiting: PendingRequest = {
      final,
      resolve: (payload) => {
        settleRequest();
        resolve(payload);
      },
      reject: (error) => {
        settleRequest();
        reject(error);
      },
    };
    const timer = setTimeout(
      () => waiting.reject(new Error(`${method} did not answer in ${timeoutMs} ms`)),
      timeoutMs,
    );
    pending.set(id, waiting);
    socket.send(JSON.stringify({ type: "req", id, method, params }));
  });
}

function answer(pending: ReadonlyMap<string, PendingRequest>, frame: Json): void {
  const waiting = pending.get(String(frame["id"]));
  if (!waiting) return;
  const payload = (frame["payload"] ?? {}) as Json;
  if (frame["ok"] !== true) {
    waiting.reject(new Error(`gateway error: ${JSON.stringify(frame["error"])}`, { cause: frame["error"] }));
  } else if (!waiting.final || payload["status"] !== "accepted") waiting.resolve(payload);
}
