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
import { readParentHeader } from "../../src/agents/coordination/workflow/parent-header.ts";
import {
  callOf,
  createCallerWith,
  createCard1,
  createCardAt,
  createPlainReply,
  createRpcReply,
  createWorkingTask,
} from "./a2a-scene.ts";
import { replyJson, PARENT, serve, createSteppingClock, TRACEPARENT, type Reply } from "./outbound-scene.ts";

const createCardFor = (url: string): AgentCard => ({
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

const createPart = (content: Message["parts"][number]["content"]): Message["parts"][number] => ({
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
async function startAgentWith(reply: (message: Message, taskId: string) => Message | Task): Promise<Agent> {
  const agent = { messages: [] as Message[], headers: [] as IncomingHttpHeaders[] };
  const executor: AgentExecutor = {
    execute: (context, bus) => {
      agent.messages.push(context.userMessage);
      const statement = reply(context.userMessage, context.taskId);
      bus.publish("status" in statement ? AgentEvent.task(statement) : AgentEvent.message(statement));
      bus.finished();
      return Promise.resolve();
    },
    cancelTask: () => Promise.resolve(),
  };
  const handler = new DefaultRequestHandler(
    createCardFor("https://unused.example/"),
    new InMemoryTaskStore(),
    executor,
  );
  const rpcHandler = new JsonRpcTransportHandler(handler);
  const server = await serve((response, request) => {
    agent.headers.push(request.headers);
    if (request.path === "/a/.well-known/agent-card.json") {
      replyJson(200, createCard1(`http://${request.headers.host}/a`))(response, request);
      return;
    }
    const context = new ServerCallContext({ user: new UnauthenticatedUser(), requestedVersion: "1.0" });
    void rpcHandler.handle(request.body, context).then((answer) => replyJson(200, answer)(response, request));
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

const createCard03 = (root: string): unknown => ({
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
describe("sending a message to an A2A agent", () => {
  it("carries the trace in the message and in the header, and takes the task's answer", async () => {
    const agent = await startAgentWith(({ contextId }, taskId) =>
      taskOf(taskId, contextId, TaskState.TASK_STATE_COMPLETED, [
        createPart({ $case: "text", value: "done" }),
        createPart({ $case: "data", value: { n: 1 } }),
      ]),
    );
    const tokens = { [new URL(agent.url).origin]: "a-token" };
    const answer = await createCallerWith(
      createSteppingClock(),
      tokens,
    )(callOf(agent.url, { parent: PARENT }));
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
    const agent = await startAgentWith((message) => ({
      ...message,
      role: Role.ROLE_AGENT,
      messageId: "m-2",
    }));
    const answer = await createCallerWith()(callOf(agent.url, { message: { a: [1] } }));
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
      createPlainReply(createCard1, {
        SendMessage: createRpcReply({ result: { task: createWorkingTask(STATES[state]!) } }),
      }),
    );
    expect(await createCallerWith()(callOf(server.url))).toMatchObject({
      kind: "answered",
      ...expected,
      taskId: "t-1",
    });
  });

  it("waits for a task that is at work, longer and longer", async () => {
    const clock = createSteppingClock();
    const states = ["WORKING", "SUBMITTED", "COMPLETED"];
    const server = await serve(
      createPlainReply(createCard1, {
        SendMessage: createRpcReply({ result: { task: createWorkingTask("SUBMITTED") } }),
        GetTask: (response, request) =>
          createRpcReply({ result: createWorkingTask(states.shift()!) })(response, request),
      }),
    );
    expect(await createCallerWith(clock)(callOf(server.url))).toMatchObject({ ok: true, state: "completed" });
    expect(clock.waits).toEqual([250, 500, 1_000]);
  });

  it("speaks to an agent of revision 0.3", async () => {
    const task = { kind: "task", id: "t-3", contextId: "c", status: { state: "rejected" } };
    const server = await serve(
      createPlainReply(createCard03, { "message/send": createRpcReply({ result: task }) }),
    );
    expect(await createCallerWith()(callOf(server.url))).toMatchObject({
      ok: false,
      state: "rejected",
      taskId: "t-3",
    });
    const sent = JSON.parse(server.received.at(-1)!.body) as { params: { message: { metadata: unknown } } };
    expect(sent.params.message.metadata).toMatchObject({ openwop: { traceparent: TRACEPARENT } });
  });

  it("does not go to another origin that a card names, though there is a token for that one", async () => {
    const elsewhere = await serve(createRpcReply({ result: { task: createWorkingTask("COMPLETED") } }));
    const server = await serve(createPlainReply(() => createCard1(elsewhere.url), {}));
    const tokens = { [server.url]: "a-token", [elsewhere.url]: "b-token" };
    const outcome = await createCallerWith(createSteppingClock(), tokens)(callOf(server.url));
    expect(outcome).toMatchObject({ kind: "refused", code: "address_not_allowed" });
    expect(server.received[0]!.headers.authorization).toBe("Bearer a-token");
    expect(elsewhere.received).toEqual([]);
  });

  it.each([
    ["below the host that was named", "/host/a2a", "answered"],
    ["at the address that was named", "/host", "answered"],
    ["at another path of its origin", "/hosted", "refused"],
    ["at a path that leaves it", "/host/%2e%2e/other", "refused"],
  ])("goes only to the host that whoever started the run named: %s", async (_where, path, kind) => {
    const server = await serve(
      createPlainReply((root) => createCardAt(`${root}${path}`), {
        SendMessage: createRpcReply({ result: { task: createWorkingTask("COMPLETED") } }),
      }),
    );
    const peerUrl = `${server.url}/host`;
    expect(await createCallerWith()(callOf(peerUrl, { peerUrl }))).toMatchObject({ kind });
    expect(server.received.filter(({ method }) => method === "POST")).toHaveLength(
      kind === "answered" ? 1 : 0,
    );
  });

  it.each<[string, Reply, object]>([
    ["an agent without a card", replyJson(404, {}), { kind: "refused", code: "rejected", status: 404 }],
    ["a card that is none", replyJson(200, [1]), { kind: "unknown", code: "malformed" }],
    [
      "a card that is no JSON",
      (response) => void response.end("<html>"),
      { kind: "unknown", code: "malformed" },
    ],
    [
      "a failing agent",
      createPlainReply(createCard1, { SendMessage: replyJson(500, {}) }),
      { kind: "unknown", status: 500 },
    ],
    [
      "a refusal",
      createPlainReply(createCard1, {
        SendMessage: createRpcReply({ error: { code: -32004, message: "secret" } }),
      }),
      { kind: "refused", code: "rejected" },
    ],
    ...[-32_603, -32_006, -32_050].map((code): [string, Reply, object] => [
      `an agent that fails with error ${code}`,
      createPlainReply(createCard1, {
        SendMessage: createRpcReply({ error: { code, message: "secret" } }),
      }),
      { kind: "unknown", code: "unavailable" },
    ]),
    [
      "an answer of no protocol",
      createPlainReply(createCard1, { SendMessage: createRpcReply({ result: 1 }) }),
      { kind: "unknown" },
    ],
    [
      "a redirect",
      (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      { kind: "refused", code: "redirected" },
    ],
  ])("survives %s", async (_what, reply, expected) => {
    const server = await serve(reply);
    const outcome = await createCallerWith()(callOf(server.url));
    expect(outcome).toMatchObject(expected);
    expect(JSON.stringify(outcome)).not.toContain("secret");
  });

  it("ends in time, and where another process goes on with it", async () => {
    const clock = createSteppingClock();
    const silent = await serve(
      createPlainReply(createCard1, { SendMessage: () => void setImmediate(() => clock.expire()) }),
    );
    expect(await createCallerWith(clock)(callOf(silent.url))).toMatchObject({
      kind: "unknown",
      code: "timed_out",
    });
    const controller = new AbortController();
    const other = await serve(createPlainReply(createCard1, { SendMessage: () => controller.abort() }));
    const call = callOf(other.url, { signal: controller.signal, isLeftToOthers: () => true });
    expect(await createCallerWith()(call)).toMatchObject({ kind: "unknown", code: "aborted" });
  });

  it("ends with the signal before the message is under way", async () => {
    const controller = new AbortController();
    const server = await serve(() => controller.abort());
    const outcome = await createCallerWith()(callOf(server.url, { signal: controller.signal }));
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
    expect(server.received).toHaveLength(1);
  });
});

const STATES: Readonly<Record<number, string>> = {
  4: "FAILED",
  5: "CANCELED",
  6: "INPUT_REQUIRED",
  7: "REJECTED",
  8: "AUTH_REQUIRED",
};
