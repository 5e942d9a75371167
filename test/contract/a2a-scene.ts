/** Owns: a caller of A2A agents, and agents that reply as told, without the official server. */
import type { A2aCall } from "../../src/agents/coordination/ports/outbound.ts";
import { createA2aCaller } from "../../src/infra/a2a/a2a-caller.ts";
import { withTokens } from "../../src/infra/http/tokens.ts";
import {
  createSteppingClock,
  createUnendingSignal,
  replyJson,
  testFetch,
  TIMEOUT_MS,
  TRACEPARENT,
  type Reply,
} from "./outbound-scene.ts";

export function createCallerWith(clock = createSteppingClock(), tokens: Record<string, string> = {}) {
  const fetch = withTokens(testFetch(clock), tokens);
  return createA2aCaller({ fetch, clock, timeoutMs: TIMEOUT_MS });
}

export const callOf = (url: string, more: Partial<A2aCall> = {}): A2aCall => ({
  url,
  skill: "echo",
  message: "hello",
  messageId: "m-1",
  traceparent: TRACEPARENT,
  signal: createUnendingSignal(),
  isLeftToOthers: () => false,
  ...more,
});

/** An agent without the official server: a card, and what it replies to a JSON-RPC method. */
export const createPlainReply =
  (card: (root: string) => unknown, replies: Readonly<Record<string, Reply>>): Reply =>
  (response, request) => {
    if (request.method === "GET") replyJson(200, card(`http://${request.headers.host}`))(response, request);
    else replies[(JSON.parse(request.body) as { method: string }).method]!(response, request);
  };

export const createCard1 = (root: string): unknown => createCardAt(`${root}/rpc`);

export const createCardAt = (address: string): unknown => ({
  name: "x",
  description: "",
  version: "1",
  supportedInterfaces: [{ url: address, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: false },
  skills: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
});

export const createRpcReply =
  (content: object): Reply =>
  (response, request) => {
    const { id } = JSON.parse(request.body) as { id: unknown };
    replyJson(200, { jsonrpc: "2.0", id, ...content })(response, request);
  };

export const createWorkingTask = (state: string): object => ({
  id: "t-1",
  contextId: "c",
  status: { state: `TASK_STATE_${state}` },
  artifacts: [],
  history: [],
});
