import { type AgentCard, type Message, type Task, Role, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
  UnauthenticatedUser,
  type AgentExecutor,
} from "@a2a-js/sdk/server";
import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import type { A2aCall } from "../../src/agents/coordination/ports/outbound.ts";
import { readParentHeader } from "../../src/agents/coordination/workflow/parent-header.ts";
import { createA2aCaller } from "../../src/infra/a2a/a2a-caller.ts";
import { withTokens } from "../../src/infra/http/tokens.ts";
import {
  json,
  never,
  PARENT,
  serve,
  steppingClock,
  testFetch,
  TIMEOUT_MS,
  TRACEPARENT,
  type Reply,
} from "./outbound-scene.ts";

const cardFor = (url: string): AgentCard => ({
  name: "agent",
  description: "",
  version: "1",
  supportedInterfaces: [{ url, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
  provider: undefined,
  capabilities: { streaming: false, pushNotifications: false, extensions: [], extendedAgentCard: false },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
  signatures: [],
});

const part = (content: Message["parts"][number]["content"]): Message["parts"][number] => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType: "",
});

interface Agent {
  readonly url: string;
  readonly messages: Message[];
  readonly headers: IncomingHttpHeaders[];
}

/** The official server's handlers, below a path. */
async function agentWith(reply: (message: Message, taskId: string) => Message | Task): Promise<Agent> {
  const agent = { messages: [] as Message[], headers: [] as IncomingHttpHeaders[] };
  const executor: AgentExecutor = {
    execute: (context, bus) => {
      agent.messages.push(context.userMessage);
      const said = reply(context.userMessage, context.taskId);
      bus.publish("status" in said ? AgentEvent.task(said) : AgentEvent.message(said));
      bus.finished();
      return Promise.resolve();
    },
    cancelTask: () => Promise.resolve(),
  };
  const handler = new DefaultRequestHandler(
    cardFor("https://unused.example/"),
    new InMemoryTaskStore(),
    executor,
  );
  const rpcHandler = new JsonRpcTransportHandler(handler);
  const server = await serve((response, request) => {
    agent.headers.push(request.headers);
    if (request.path === "/a/.well-known/agent-card.json") {
      json(200, card1(`http://${request.headers.host}/a`))(response, request);
      return;
    }
    const context = new ServerCallContext({ user: new UnauthenticatedUser(), requestedVersion: "1.0" });
    void rpcHandler.handle(request.body, context).then((answer) => json(200, answer)(response, request));
  });
  return { ...agent, url: `${server.url}/a` };
}

const taskOf = (id: string, contextId: string, state: TaskState, parts: Message["parts"] = []): Task => ({
  id,
  contextId,
  status: { state, message: undefined, timestamp: undefined },
  artifacts: [{ artifactId: "1", name: "", description: "", parts, metadata: undefined, extensions: [] }],
  history: [],
  metadata: undefined,
});

function callerWith(clock = steppingClock(), tokens: Record<string, string> = {}) {
  const fetch = withTokens(testFetch(clock), tokens, () => undefined);
  return createA2aCaller({ fetch, clock, timeoutMs: TIMEOUT_MS });
}

const callOf = (url: string, more: Partial<A2aCall> = {}): A2aCall => ({
  url,
  skill: "echo",
  message: "hello",
  messageId: "m-1",
  traceparent: TRACEPARENT,
  signal: never(),
  ...more,
});

/** An agent without the official server: a card, and what it replies to a JSON-RPC method. */
const plain =
  (card: (root: string) => unknown, replies: Readonly<Record<string, Reply>>): Reply =>
  (response, request) => {
    if (request.method === "GET") json(200, card(`http://${request.headers.host}`))(response, request);
    else replies[(JSON.parse(request.body) as { method: string }).method]!(response, request);
  };
const card1 = (root: string): unknown => ({
  name: "x",
  description: "",
  version: "1",
  supportedInterfaces: [{ url: `${root}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: false },
  skills: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
});
const card03 = (root: string): unknown => ({
  protocolVersion: "0.3.0",
  name: "x",
  description: "",
  url: `${root}/rpc`,
  version: "1",
  capabilities: { streaming: false, pushNotifications: false },
  skills: [],
  defaultInputModes: ["text"],
  defaultOutputModes: ["text"],
  preferredTransport: "JSONRPC",
});
const rpc =
  (content: object): Reply =>
  (response, request) => {
    const { id } = JSON.parse(request.body) as { id: unknown };
    json(200, { jsonrpc: "2.0", id, ...content })(response, request);
  };
const working = (state: string): object => ({
  id: "t-1",
  contextId: "c",
  status: { state: `TASK_STATE_${state}` },
  artifacts: [],
  history: [],
});

describe("sending a message to an A2A agent", () => {
  it("carries the trace in the message and in the header, and takes the task's answer", async () => {
    const agent = await agentWith(({ contextId }, taskId) =>
      taskOf(taskId, contextId, TaskState.TASK_STATE_COMPLETED, [
        part({ $case: "text", value: "done" }),
        part({ $case: "data", value: { n: 1 } }),
      ]),
    );
    const tokens = { [new URL(agent.url).origin]: "a-token" };
    const answer = await callerWith(steppingClock(), tokens)(callOf(agent.url, { parent: PARENT }));
    expect(answer).toMatchObject({
      kind: "answered",
      ok: true,
      state: "completed",
      text: "done",
      data: [{ n: 1 }],
    });
    const [message] = agent.messages;
    expect(message).toMatchObject({
      messageId: "m-1",
      parts: [{ content: { $case: "text", value: "hello" } }],
      metadata: { skillId: "echo", openwop: { traceparent: TRACEPARENT } },
    });
    expect(agent.headers.at(-1)).toMatchObject({ traceparent: TRACEPARENT, authorization: "Bearer a-token" });
    expect(readParentHeader(String(agent.headers.at(-1)?.["openwop-parent"]))).toEqual(PARENT);
  });

  it("takes a message for an answer, and sends data as data", async () => {
    const agent = await agentWith((message) => ({ ...message, role: Role.ROLE_AGENT, messageId: "m-2" }));
    const answer = await callerWith()(callOf(agent.url, { message: { a: [1] } }));
    expect(answer).toMatchObject({ ok: true, state: "message", data: [{ a: [1] }], text: "" });
  });

  it.each<[number, object]>([
    [4, { ok: false, state: "failed" }],
    [5, { ok: false, state: "cancelled" }],
    [6, { ok: true, state: "input-required" }],
    [7, { ok: false, state: "rejected" }],
    [8, { ok: true, state: "auth-required" }],
  ])("tells the state %d", async (state, expected) => {
    const server = await serve(
      plain(card1, { SendMessage: rpc({ result: { task: working(STATES[state]!) } }) }),
    );
    expect(await callerWith()(callOf(server.url))).toMatchObject({
      kind: "answered",
      ...expected,
      taskId: "t-1",
    });
  });

  it("waits for a task that is at work, longer and longer", async () => {
    const clock = steppingClock();
    const states = ["WORKING", "SUBMITTED", "COMPLETED"];
    const server = await serve(
      plain(card1, {
        SendMessage: rpc({ result: { task: working("SUBMITTED") } }),
        GetTask: (response, request) => rpc({ result: working(states.shift()!) })(response, request),
      }),
    );
    expect(await callerWith(clock)(callOf(server.url))).toMatchObject({ ok: true, state: "completed" });
    expect(clock.waits).toEqual([250, 500, 1_000]);
  });

  it("speaks to an agent of revision 0.3", async () => {
    const task = { kind: "task", id: "t-3", contextId: "c", status: { state: "rejected" } };
    const server = await serve(plain(card03, { "message/send": rpc({ result: task }) }));
    expect(await callerWith()(callOf(server.url))).toMatchObject({
      ok: false,
      state: "rejected",
      taskId: "t-3",
    });
    const sent = JSON.parse(server.received.at(-1)!.body) as { params: { message: { metadata: unknown } } };
    expect(sent.params.message.metadata).toMatchObject({ openwop: { traceparent: TRACEPARENT } });
  });

  it("takes no token to where a card points", async () => {
    const elsewhere = await serve(rpc({ result: { task: working("COMPLETED") } }));
    const server = await serve(plain(() => card1(elsewhere.url), {}));
    await callerWith(steppingClock(), { [server.url]: "a-token" })(callOf(server.url));
    expect(server.received[0]!.headers.authorization).toBe("Bearer a-token");
    expect(elsewhere.received[0]!.headers.authorization).toBeUndefined();
  });

  it("does not go where a card points, if that is private", async () => {
    const inside = await serve(rpc({ result: { task: working("COMPLETED") } }));
    const server = await serve(plain(() => card1(inside.url), {}));
    const clock = steppingClock();
    const fetch = testFetch(clock, { allowPrivate: [server.url] });
    const outcome = await createA2aCaller({ fetch, clock, timeoutMs: TIMEOUT_MS })(callOf(server.url));
    expect(outcome).toMatchObject({ kind: "refused", code: "address_not_allowed" });
    expect(inside.received).toEqual([]);
  });

  it.each<[string, Reply, object]>([
    ["an agent without a card", json(404, {}), { kind: "refused", code: "rejected", status: 404 }],
    ["a card that is none", json(200, [1]), { kind: "unknown", code: "malformed" }],
    [
      "a card that is no JSON",
      (response) => void response.end("<html>"),
      { kind: "unknown", code: "malformed" },
    ],
    ["a failing agent", plain(card1, { SendMessage: json(500, {}) }), { kind: "unknown", status: 500 }],
    [
      "a refusal",
      plain(card1, { SendMessage: rpc({ error: { code: -32004, message: "secret" } }) }),
      { kind: "refused", code: "rejected" },
    ],
    ["an answer of no protocol", plain(card1, { SendMessage: rpc({ result: 1 }) }), { kind: "unknown" }],
    [
      "a redirect",
      (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      { kind: "refused", code: "redirected" },
    ],
  ])("survives %s", async (_what, reply, expected) => {
    const server = await serve(reply);
    const outcome = await callerWith()(callOf(server.url));
    expect(outcome).toMatchObject(expected);
    expect(JSON.stringify(outcome)).not.toContain("secret");
  });

  it("ends in time, and with the signal", async () => {
    const clock = steppingClock();
    const silent = await serve(plain(card1, { SendMessage: () => void setImmediate(() => clock.expire()) }));
    expect(await callerWith(clock)(callOf(silent.url))).toMatchObject({ kind: "unknown", code: "timed_out" });
    const controller = new AbortController();
    const other = await serve(plain(card1, { SendMessage: () => controller.abort() }));
    const outcome = await callerWith()(callOf(other.url, { signal: controller.signal }));
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
  });
});

const STATES: Readonly<Record<number, string>> = {
  4: "FAILED",
  5: "CANCELED",
  6: "INPUT_REQUIRED",
  7: "REJECTED",
  8: "AUTH_REQUIRED",
};
